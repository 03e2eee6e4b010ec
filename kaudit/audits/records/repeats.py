"""Records of a partition that equal earlier ones: a bucket of identities at a time, however far back these are.

The functions are scheduled as those of `diff --by records` are: `match_repeats` for every bucket of records, then `count_keys` for
every bucket of keys. What repeats what is written under the places of the repeats, so that it is listed in the order of the log.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.records.places import NOWHERE, null_value, numbers_of
from kaudit.audits.records.spill import Rows, Spill
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.content_rows import NO_KEY
from kaudit.reading.record_content import mixed
from kaudit.source.layout import PartitionDirectory

REPEATED = np.dtype([(name, "<u8") for name in ("place", "first", "committed")] + [("copy", "<u4"), ("copies", "<u4")])
"""A record that equals earlier ones: the places of the first of these, and of the first that read_committed consumers are given
(NOWHERE without one); its number among them, 2 for the first repeat, and how many there are in the partition. 32 bytes."""
KEYED = np.dtype([("key", "<u8"), ("place", "<u8"), ("repeats", "?")])
"""A record with a key, mixed with the number of its partition. 17 bytes, written when the 32 of the record have been removed."""
MOST_ROWS = 1 << 20
"""Rows that are matched at once; a bucket with more is split."""
_MORE_BITS = 4


class SpilledTask(Struct, frozen=True):
    """A bucket of rows."""

    number: int
    rows: Spill

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return self.rows.size(self.number) * int(self.rows.dtype.itemsize)

    @property
    def directories(self) -> Sequence[PartitionDirectory]:
        """None of the log is read."""
        return ()


class RepeatTask(SpilledTask, frozen=True):
    """A bucket of records whose identities have `bits` in common; `cuts` are the places after which the next part of the log begins, as of ReadPartition."""

    bits: int
    repeated: Spill
    keyed: Spill
    cuts: NDArray[np.uint64]
    key_bits: int
    partitions: int


class KeyTask(SpilledTask, frozen=True):
    """A bucket of keys."""

    partitions: int


def match_repeats(task: RepeatTask, options: object, open_source: OpenSource) -> NDArray[np.int64]:  # noqa: ARG001 - as every job
    """Write what repeats what of a bucket, remove its rows, and return by number of partition how many records have no key."""
    without_key = np.zeros(task.partitions, dtype=np.int64)
    for rows, frequent in _buckets(task.rows, task.number, task.bits):
        keyed = rows["key"] != NO_KEY
        without_key += np.bincount(numbers_of(rows["place"][~keyed]), minlength=len(without_key))
        found = _repeats(rows) if frequent is None else frequent.repeats(rows["place"])
        task.repeated.append(np.searchsorted(task.cuts, found["place"], side="right"), found)
        own = rows.take(np.flatnonzero(keyed))
        keys = np.empty(len(own), dtype=KEYED)
        keys["key"], keys["place"] = mixed(own["key"], numbers_of(own["place"])), own["place"]
        keys["repeats"] = np.isin(own["place"], found["place"])
        # a repeat counts only where no earlier record has its key
        if len(found):
            order, begins = equal_rows(keys["place"], keys["key"])
            keys = keys[order[begins | ~keys["repeats"][order]]]
        task.keyed.append((keys["key"] >> np.uint64(64 - task.key_bits)).astype(np.int64), keys)
    return without_key


def count_keys(task: KeyTask, options: object, open_source: OpenSource) -> NDArray[np.int64]:  # noqa: ARG001 - as every job
    """Return by number of partition how many records have the key of an earlier one and repeat none; remove the rows."""
    rows = task.rows.read(task.number)
    task.rows.remove(task.number)
    rows = rows.take(np.flatnonzero(_shared(rows["key"])))
    order, begins = equal_rows(rows["place"], rows["key"])
    known = order[~begins & ~rows["repeats"][order]]
    return np.bincount(numbers_of(rows["place"][known]), minlength=task.partitions)


def _buckets(spill: Spill, number: int, bits: int) -> "Iterator[tuple[Rows, _Frequent | None]]":
    """Yield the rows of a bucket and remove them: those of one identity together, or in parts where they do not fit into memory."""
    if spill.size(number) <= MOST_ROWS:
        yield spill.read(number), None
    elif _is_one(spill, number):
        frequent = _Frequent(spill.size(number))
        for rows in spill.parts(number):
            yield rows, frequent
    else:
        parts = replace(spill, name=f"{spill.name}-{number}")
        shift, mask = np.uint64(64 - bits - _MORE_BITS), np.uint64((1 << _MORE_BITS) - 1)
        for rows in spill.parts(number):
            parts.append(((rows["high"] >> shift) & mask).astype(np.int64), rows)
        spill.remove(number)
        for part in parts.numbers():
            yield from _buckets(parts, part, bits + _MORE_BITS)
        return
    spill.remove(number)


def _is_one(spill: Spill, number: int) -> bool:
    """Return whether all rows have one value in the part of the identity that buckets are split by."""
    first: np.uint64 | None = None
    for rows in spill.parts(number):
        first = rows["high"][0] if first is None else first
        if (rows["high"] != first).any():
            return False
    return True


def equal_rows(places: NDArray[Any], *identity: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the order of rows in which equal ones are together, by their places, and which rows of it equal none before them."""
    order = np.lexsort((places, *identity[::-1]))
    begins = np.zeros(len(order), dtype=np.bool_)
    begins[:1] = True
    for column in identity:
        ordered = column[order]
        begins[1:] |= ordered[1:] != ordered[:-1]
    return order, begins


def _shared(column: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which rows have a value that others have, too: most have not, and to sort values costs a third of sorting rows by them."""
    ordered = np.sort(column)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(again):
        return np.zeros(len(column), dtype=np.bool_)
    found: NDArray[np.bool_] = again[np.minimum(np.searchsorted(again, column), len(again) - 1)] == column
    return found


def _repeats(rows: Rows) -> Rows:
    """Return the rows that equal others before them, as REPEATED."""
    rows = rows.take(np.flatnonzero(_shared(rows["high"])))
    order, begins = equal_rows(rows["place"], rows["high"], rows["low"])
    sizes = np.diff(np.append(np.flatnonzero(begins), len(rows)))
    places = rows["place"][order[np.repeat(sizes > 1, sizes)]]
    sizes = sizes[sizes > 1]
    starts = np.cumsum(sizes) - sizes
    found = np.empty(len(places), dtype=REPEATED)
    found["place"], found["first"] = places, np.repeat(places[starts], sizes)
    found["copies"], found["copy"] = np.repeat(sizes, sizes), np.arange(len(places)) - np.repeat(starts, sizes) + 1
    given = np.where(null_value(places), NOWHERE, places)
    firsts = np.repeat(np.minimum.reduceat(given, starts) if len(starts) else given, sizes)
    found["committed"] = np.where(firsts < places, firsts, NOWHERE)
    return found[found["copy"] > 1]


class _Frequent:
    """Equal records that do not fit into memory: parts of them, in the order of the log."""

    def __init__(self, copies: int) -> None:
        self._copies = copies
        self._seen = 0
        self._first = self._committed = NOWHERE

    def repeats(self, places: NDArray[np.uint64]) -> Rows:
        """Take the next part; return those that have others before them, as REPEATED."""
        found = np.empty(len(places), dtype=REPEATED)
        self._first = places[0] if self._seen == 0 else self._first
        found["place"], found["first"] = places, self._first
        found["copies"], found["copy"] = self._copies, self._seen + 1 + np.arange(len(places))
        if self._committed == NOWHERE:
            given = np.where(null_value(places), NOWHERE, places)
            self._committed = given.min()
        found["committed"] = np.where(self._committed < places, self._committed, NOWHERE)
        self._seen += len(places)
        return found[found["copy"] > 1]
