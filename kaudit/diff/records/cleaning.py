"""Records without one equal on a side where the log cleaner has been: which of them it may have removed."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from kaudit.audits.records.places import NOWHERE, null_value, numbers_of
from kaudit.audits.records.spill import Rows, Spill
from kaudit.reading.content_rows import NO_KEY
from kaudit.reading.record_content import mixed

KEYED = np.dtype([("place", "<u8"), ("group", "<u8"), ("stays", "?")])
"""A record, its key and partition as one number, and whether no later record explains its absence: it is there, or a tombstone."""
REMOVED = np.dtype([("place", "<u8")])
"""A record that the cleaner of the other side may have removed."""
_NONE = np.empty(0, dtype=np.uint64)

Outside = Callable[[NDArray[np.uint64]], NDArray[np.bool_]]


def note_keys(rows: Rows, outside: Outside, keyed: Spill, shift: np.uint64) -> NDArray[np.uint64]:
    """Write rows (place, other, key) under the first bits of their keys; return the places of those the cleaner removes without a key.

    `after` says which places lie after the last that both sides have: nothing has removed them. A tombstone may go by itself when
    delete.retention.ms has passed. Source: LogCleaner, Cleaner.shouldRetainRecord.
    """
    both = rows["other"] != NOWHERE
    removable = ~both & ~outside(rows["place"])
    named = rows["key"] != NO_KEY
    own = np.empty(int(np.count_nonzero(named)), dtype=KEYED)
    own["place"] = rows["place"][named]
    own["group"] = mixed(rows["key"][named], numbers_of(own["place"]).astype(np.uint64))
    own["stays"] = (both | (removable & null_value(rows["place"])))[named]
    keyed.append((own["group"] >> shift).astype(np.int64), own)
    found: NDArray[np.uint64] = rows["place"][removable & ~named]
    return found


def superseded(keyed: Spill, number: int, outside: Outside) -> Iterator[NDArray[np.uint64]]:
    """Yield the places of records of these keys that are followed by one of their key, and of tombstones; memory is one row a key."""
    groups, lasts = _NONE, _NONE
    for rows in keyed.parts(number):
        staying = rows[rows["stays"]]
        groups, lasts = _greatest(np.append(groups, staying["group"]), np.append(lasts, staying["place"]))
    for rows in keyed.parts(number) if len(groups) else ():
        at = np.minimum(np.searchsorted(groups, rows["group"]), len(groups) - 1)
        followed = (groups[at] == rows["group"]) & (rows["place"] <= lasts[at])
        yield rows["place"][followed & ~outside(rows["place"])]


def _greatest(groups: NDArray[np.uint64], places: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return each group once, ascending, with its greatest place."""
    order = np.lexsort((places, groups))
    groups, places = groups[order], places[order]
    last = np.append(groups[1:] != groups[:-1], True)[: len(groups)]
    return groups[last], places[last]
