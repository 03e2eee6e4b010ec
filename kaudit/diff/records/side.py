"""The records of one side in the order of their places, each with what the other side has of it, to ranges."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.audits.records.places import numbers_of
from kaudit.audits.records.spill import Rows, Spill

PLACED = np.dtype([("place", "<u8"), ("other", "<u8"), ("key", "<u8")])
"""A record of the source, its place in the target (NOWHERE without one), its key's hash."""
COPIED = np.dtype([("place", "<u8"), ("other", "<u8"), ("earlier", "<u8"), ("key", "<u8")])
"""A record of the target, its place in the source, and of one that is there again the place of the first; NOWHERE without one."""


def sorted_rows(spill: Spill, beside: Spill | None = None) -> Iterator[tuple[Rows, Rows]]:
    """Yield all rows in the order of their places, each part complete between two cuts; and what `beside` has under its number."""
    for number in spill.numbers():
        rows = spill.read(number)
        yield rows[np.argsort(rows["place"], kind="stable")], rows[:0] if beside is None else beside.read(number)


class Run(NamedTuple):
    """Neighbouring records of one kind in one partition: rows of what they were found in, and how many in all."""

    rows: Rows
    records: int


class Runs:
    """Joins neighbours of one kind to runs, over the ends of parts; keeps the rows of at most `most` runs, and counts the records of all.

    A run's rows are its first and its last one, and those with the extreme values of `extremes`.
    """

    def __init__(self, most: int, extremes: Sequence[str] = ()) -> None:
        self.runs: list[Run] = []
        self.records = 0
        self.more = 0
        self._most = most
        self._extremes = extremes
        self._open: Run | None = None

    def feed(self, rows: Rows, chosen: NDArray[np.bool_]) -> None:
        """Take a part in order, and which of its rows are of this kind."""
        at = np.flatnonzero(chosen)
        self.records += len(at)
        if not len(at):
            self._close()
            return
        numbers = numbers_of(rows["place"][at])
        breaks = np.flatnonzero((np.diff(at) > 1) | (np.diff(numbers) != 0)) + 1
        goes_on = self._open is not None and at[0] == 0 and numbers_of(self._open.rows["place"][-1:])[0] == numbers[0]
        if not goes_on:
            self._close()
        edges = [0, *breaks.tolist(), len(at)]
        last = len(edges) - 2
        index = 0
        while index <= last:
            if self._open is None and len(self.runs) >= self._most and index < last:
                self.more += last - index  # only the last one may go on in the next part
                index = last
            own = rows[at[edges[index] : edges[index + 1]]]
            before = self._open
            self._open = Run(
                self._ends(own if before is None else np.concatenate([before.rows, own])),
                len(own) + (0 if before is None else before.records),
            )
            if index < last or at[-1] < len(rows) - 1:
                self._close()
            index += 1

    def finish(self) -> list[Run]:
        """Return the runs."""
        self._close()
        return self.runs

    def _close(self) -> None:
        if self._open is None:
            return
        if len(self.runs) < self._most:
            self.runs.append(self._open)
        else:
            self.more += 1
        self._open = None

    def _ends(self, rows: Rows) -> Rows:
        extremes = [find(rows[name]) for name in self._extremes for find in (np.argmin, np.argmax)]
        return rows[sorted({0, len(rows) - 1, *map(int, extremes)})]


def descents(rows: Rows, groups: NDArray[Any], before: Rows) -> tuple[Rows, Rows, Rows]:
    """Return the rows whose `other` is lower than that of the row of their group before them, and these; and each group's last row.

    `groups`: a number for each row, `rows` in the order of their places; `before` are the last rows of groups of earlier parts, with their
    numbers in `group`.
    """
    own = np.empty(len(rows), dtype=GROUPED)
    for name in PLACED.names or ():
        own[name] = rows[name]
    own["group"] = groups
    known = before[np.isin(before["group"], own["group"])] if len(before) else before
    both = np.concatenate([known, own])
    both = both[np.argsort(both["group"], kind="stable")]
    same = both["group"][1:] == both["group"][:-1]
    lower = np.flatnonzero(same & (both["other"][1:] < both["other"][:-1])) + 1
    lasts = both[np.append(~same, True)[: len(both)]]
    others = before[~np.isin(before["group"], lasts["group"])] if len(before) else before
    return both[lower], both[lower - 1], np.concatenate([others, lasts])


GROUPED = np.dtype([*PLACED.descr, ("group", "<u8")])
NO_GROUPS = np.empty(0, dtype=GROUPED)
