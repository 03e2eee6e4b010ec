"""Rows of both sides with the same identities, matched: in numpy, a bucket of identities at a time."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.audits.records.places import NOWHERE, numbers_of
from kaudit.audits.records.repeats import equal_rows

Rows = NDArray[Any]
Indexes = NDArray[np.intp]
Begins = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""`Bounds.begins` of source and target."""
_NONE = np.empty(0, dtype=np.intp)


class Bounds(NamedTuple):
    """Of one side, by number of partition, shape (n,): where its records are that have one equal on the other side.

    `first` and `last` places; `lead`, the first place of the other side's partition with one equal in this side's, and `begin`, where that
    one is here; and `alone`, the first place of a record without one. NOWHERE, and 0 as `last`, without any.
    """

    first: NDArray[np.uint64]
    last: NDArray[np.uint64]
    lead: NDArray[np.uint64]
    begin: NDArray[np.uint64]
    alone: NDArray[np.uint64]

    @classmethod
    def empty(cls, partitions: int) -> "Bounds":
        """Return the bounds of no records."""
        first, lead, begin, alone = (np.full(partitions, NOWHERE) for _ in range(4))
        return cls(first, np.zeros(partitions, dtype=np.uint64), lead, begin, alone)

    def leave_out(self, own: NDArray[np.uint64]) -> None:
        """Take the places of records that the other side does not have."""
        np.minimum.at(self.alone, numbers_of(own), own)

    def include(self, own: NDArray[np.uint64], others: NDArray[np.uint64]) -> None:
        """Take the places of records that both sides have, here and on the other side."""
        numbers = numbers_of(own)
        np.minimum.at(self.first, numbers, own)
        np.maximum.at(self.last, numbers, own)
        same = np.flatnonzero(numbers == numbers_of(others))
        same = same[np.lexsort((own[same], others[same]))]
        found, at = np.unique(numbers[same], return_index=True)
        self._lead(found, others[same[at]], own[same[at]])

    def merge(self, other: "Bounds") -> None:
        """Take the bounds of more records."""
        np.minimum(self.first, other.first, out=self.first)
        np.maximum(self.last, other.last, out=self.last)
        np.minimum(self.alone, other.alone, out=self.alone)
        self._lead(np.arange(len(other.lead)), other.lead, other.begin)

    def _lead(self, numbers: NDArray[np.int64], lead: NDArray[np.uint64], begin: NDArray[np.uint64]) -> None:
        sooner = (lead < self.lead[numbers]) | ((lead == self.lead[numbers]) & (begin < self.begin[numbers]))
        self.lead[numbers[sooner]], self.begin[numbers[sooner]] = lead[sooner], begin[sooner]

    def begins(self, removed: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """Return by number the place before which records may be `removed` (n,) from the other side; 0 where none are.

        That is where the other side's first record is, which may be there again later: not the first of this side that the other has.
        Without a record before it that the other side does not have, it has begun later than this side.
        """
        found: NDArray[np.uint64] = np.where(self.begin != NOWHERE, self.begin, self.first)
        found[~removed | (found == NOWHERE) | (self.alone > found)] = 0
        return found

    def outside(self, found: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which places lie after the last of their partition, or in one without any."""
        alone: NDArray[np.bool_] = self.first[numbers_of(found)] == NOWHERE
        return alone | self.after(found)

    def after(self, found: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which places lie after the last of their partition, where there is one."""
        numbers = numbers_of(found)
        later: NDArray[np.bool_] = (found > self.last[numbers]) & (self.first[numbers] != NOWHERE)
        return later


class Matched(NamedTuple):
    """Indexes of rows: `pairs` of source and target; `missing` sources and `surplus` targets have no partner.

    `copied` says of each surplus row which pair it repeats, an index of `pairs`, -1 where the source has no such record; `repeated` then
    which target row before it, -1 where none.
    """

    source: Indexes
    target: Indexes
    missing: Indexes
    surplus: Indexes
    copied: Indexes
    repeated: Indexes


def match_single(source: Rows, target: Rows) -> tuple[Matched, Indexes, Indexes]:
    """Match identities that each side has at most once; return also the indexes of all other rows of both sides."""
    highs = np.concatenate([source["high"], target["high"]])
    order = np.argsort(highs, kind="stable")
    starts, sizes = _groups([highs[order]])
    alone = order[starts[sizes == 1]]
    single_source, single_target = alone[alone < len(source)], alone[alone >= len(source)] - len(source)
    two = starts[sizes == 2]
    # sources come first: of two rows the first is the source's if there is one, and the second the target's
    one, other = order[two], order[two + 1] - len(source)
    same = (one < len(source)) & (other >= 0)
    one, other = one[same], other[same]
    same = source["low"][one] == target["low"][other]
    one, other = one[same], other[same]
    none = np.full(len(single_target), -1, dtype=np.intp)
    matched = Matched(one, other, single_source, single_target, none, none)
    return matched, _others(len(source), one, single_source), _others(len(target), other, single_target)


def _groups(columns: Sequence[NDArray[Any]]) -> tuple[Indexes, Indexes]:
    """Return where equal rows of these ordered columns begin, and how many there are of each."""
    begins = np.ones(len(columns[0]), dtype=np.bool_)
    begins[1:] = False
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(begins)
    return starts, np.diff(np.append(starts, len(begins)))


def _others(count: int, *taken: Indexes) -> Indexes:
    left = np.ones(count, dtype=np.bool_)
    for some in taken:
        left[some] = False
    return np.flatnonzero(left)


def match_groups(source: Rows, target: Rows, begins: Begins) -> Matched:
    """Match all rows: equal ones in their order, those of partitions with one number first, then the others.

    Rows before `begins`, of source and target as `Bounds.begins` has them, come last: their partners may have been removed.
    """
    rows = _Sides(source, target, begins)
    first_source, first_target = rows.pairs(np.arange(len(rows.high)), by_number=True)
    left = _others(len(rows.high), first_source, first_target)
    more_source, more_target = rows.pairs(left, by_number=False)
    pairs = np.concatenate([first_source, more_source]), np.concatenate([first_target, more_target])
    rest = _others(len(rows.high), *pairs)
    missing, surplus = rest[rest < len(source)], rest[rest >= len(source)]
    copied = rows.copied(pairs[0], surplus)
    repeated = rows.repeated(surplus, copied)
    return Matched(pairs[0], pairs[1] - len(source), missing, surplus - len(source), copied, repeated)


class _Sides:
    """Rows of both sides, sources first, as columns that are sorted by."""

    def __init__(self, source: Rows, target: Rows, begins: Begins) -> None:
        self.high, self.low, self.place = (
            np.concatenate([source[name], target[name]]) for name in ("high", "low", "place")
        )
        self.number = numbers_of(self.place)
        self.is_target = np.arange(len(self.high)) >= len(source)
        self._targets = len(source)
        late = [
            rows["place"] < own[numbers_of(rows["place"])] for rows, own in zip((source, target), begins, strict=True)
        ]
        self.late = np.concatenate(late)

    def pairs(self, chosen: Indexes, *, by_number: bool) -> tuple[Indexes, Indexes]:
        """Return the rows that pair up among those chosen: the n-th source with the n-th target of each group."""
        if not len(chosen):
            return _NONE, _NONE
        number = self.number[chosen] if by_number else np.zeros(len(chosen), dtype=np.int64)
        high, low, is_target = self.high[chosen], self.low[chosen], self.is_target[chosen]
        order = np.lexsort((self.place[chosen], self.late[chosen], is_target, number, low, high))
        starts, sizes = _groups([column[order] for column in (high, low, number)])
        sources = np.add.reduceat(~is_target[order], starts, dtype=np.intp)
        rank = np.arange(len(order)) - np.repeat(starts, sizes)
        paired = np.flatnonzero(rank < np.repeat(np.minimum(sources, sizes - sources), sizes))
        partners = paired + np.repeat(sources, sizes)[paired]
        return chosen[order[paired]], chosen[order[partners]]

    def copied(self, sources: Indexes, surplus: Indexes) -> Indexes:
        """Return which pair each surplus row repeats: the last one with its identity, of its partition if there is one."""
        if not len(surplus) or not len(sources):
            return np.full(len(surplus), -1, dtype=np.intp)
        order = np.lexsort((self.place[sources], self.number[sources], self.low[sources], self.high[sources]))
        best = np.full(len(surplus), -1, dtype=np.intp)
        for names in (("high", "low"), ("high", "low", "number")):
            keys = [getattr(self, name)[sources[order]] for name in names]
            wanted = [getattr(self, name)[surplus] for name in names]
            at = np.searchsorted(np.rec.fromarrays(keys), np.rec.fromarrays(wanted), side="right") - 1
            same = at >= 0
            for column, want in zip(keys, wanted, strict=True):
                same &= column[np.maximum(at, 0)] == want
            best = np.where(same, order[at], best)
        return best

    def repeated(self, surplus: Indexes, copied: Indexes) -> Indexes:
        """Return which target row before it each surplus row repeats that no pair has: the first of its identity."""
        found = np.full(len(surplus), -1, dtype=np.intp)
        alone = np.flatnonzero(copied < 0)
        rows = surplus[alone]
        order, begins = equal_rows(self.place[rows], self.high[rows], self.low[rows])
        first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
        again = np.flatnonzero(~begins)
        found[alone[order[again]]] = rows[order[first[again]]] - self._targets
        return found
