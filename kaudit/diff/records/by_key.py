"""What depends on the other records of a key: their order, and what the log cleaner may have removed. Rows go through files by key."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.diff.records.matching import Rows
from kaudit.diff.records.places import NOWHERE, null_value
from kaudit.diff.records.side import GROUPED, NO_GROUPS, descents
from kaudit.diff.records.spill import Spill
from kaudit.reading.content_rows import NO_KEY
from kaudit.reading.record_content import mixed

_GROUP_ROWS = 1 << 19
"""Rows of one file: no file has more keys, however many rows a key has."""


class RowsByKey:
    """Rows of PLACED or COPIED with a key, in files by key, in the order in which they were added."""

    def __init__(self, spill: Spill, expected: int) -> None:
        self._spill = spill
        self._shift = np.uint64(64 - max((expected // _GROUP_ROWS).bit_length(), 1))

    def add(self, rows: Rows, within: NDArray[Any]) -> None:
        """Take rows; those of a key belong together where `within` (shape (n,)) is the same, too."""
        keyed = rows["key"] != NO_KEY
        rows, within = rows[keyed], within[keyed]
        grouped = np.empty(len(rows), dtype=GROUPED)
        for name in ("place", "other", "key"):
            grouped[name] = rows[name]
        grouped["group"] = mixed(rows["key"], within)
        self._spill.append((grouped["group"] >> self._shift).astype(np.int64), grouped)

    def moved(self) -> Iterator[tuple[Rows, Rows]]:
        """Yield rows that the other side has before the row of their key that precedes them, and these; remove all."""
        for number in self._spill.numbers():
            lasts = NO_GROUPS
            for rows in self._spill.parts(number):
                later, earlier, lasts = descents(rows, rows["group"], lasts)
                yield later, earlier
            self._spill.remove(number)

    def superseded(self) -> Iterator[NDArray[np.uint64]]:
        """Yield the places of rows that the other side lacks and its log cleaner may have removed; remove all.

        A cleaner removes a record once its log has a later one of the key, and one with a null value after delete.retention.ms
        (LogCleaner): that later one is on the other side, or has a null value and is gone, too.
        """
        for number in self._spill.numbers():
            lasts = NO_GROUPS
            for rows in self._spill.parts(number):
                known = rows[(rows["other"] != NOWHERE) | null_value(rows["place"])]
                both = np.concatenate([lasts, known])
                both = both[np.argsort(both["group"], kind="stable")]
                lasts = both[np.append(both["group"][1:] != both["group"][:-1], True)[: len(both)]]
            for rows in self._spill.parts(number):
                lost = rows[rows["other"] == NOWHERE]
                at = np.searchsorted(lasts["group"], lost["group"])
                found = at < len(lasts)
                at = at.clip(max=max(len(lasts) - 1, 0))
                if found.any():
                    found &= (lasts["group"][at] == lost["group"]) & (lasts["place"][at] >= lost["place"])
                    yield lost["place"][found]
            self._spill.remove(number)
