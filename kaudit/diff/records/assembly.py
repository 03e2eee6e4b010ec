"""The matched records of all pairs of topics to their ledgers: one pass over each side, in the order of the log."""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.records.places import NOWHERE, numbers_of
from kaudit.audits.records.reading import ReadPartition
from kaudit.audits.records.spill import Spill
from kaudit.diff.records.bucket import Counted, MatchedBucket
from kaudit.diff.records.cleaning import KEYED, REMOVED, note_keys, superseded
from kaudit.diff.records.ledger import LedgerBuilder, Side, TopicPair, pair_groups
from kaudit.diff.records.matching import Begins, Bounds, Rows
from kaudit.diff.records.side import COPIED, GROUPED, NO_GROUPS, PLACED, descents, sorted_rows
from kaudit.diff.records.topics import Pairing
from kaudit.diff.records.windows import ORDER_CROSSES, Narrowed
from kaudit.model.ledger import SideCounts, TopicLedger
from kaudit.reading.content_rows import NO_KEY
from kaudit.reading.record_content import mixed

_GROUP_ROWS = 1 << 19
"""Records whose keys are compared at once, where the order differs."""


class Assembly(Struct, frozen=True):
    """What was read of both sides of these pairs, compared by the identity called so. Numbers of partitions are those of the pairings."""

    pairings: Sequence[Pairing]
    identity: str
    read_committed: bool
    read: tuple[Sequence[ReadPartition], Sequence[ReadPartition]]
    narrowed: Narrowed | None = None
    """What was not read again, as both sides have the same."""

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return sum(len(pairing.partitions) for pairing in self.pairings)

    @property
    def of_number(self) -> NDArray[np.int64]:
        """The index of the pair that each partition is of, shape (partitions,)."""
        return np.repeat(np.arange(len(self.pairings)), [len(pairing.partitions) for pairing in self.pairings])

    @property
    def cut_off(self) -> bool:
        """Whether records before the first one have been removed from a partition."""
        return any(one.starts_late for read in self.read for one in read)

    def without_logs(self) -> "Assembly":
        """Return this without the directories, which have been read."""
        return replace(self, pairings=[replace(pairing, sources={}, targets={}) for pairing in self.pairings])

    def cuts(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return for both sides the places after which the next part of about CUT_RECORDS records begins."""
        source, target = (np.array(sorted(cut for one in read for cut in one.cuts), np.uint64) for read in self.read)
        return source, target

    def spills(self, directory: Path) -> tuple[Spill, Spill]:
        """Return where the rows of `ledgers` are written, under the numbers of the parts that `cuts` makes."""
        return Spill(str(directory), "placed", PLACED), Spill(str(directory), "copied", COPIED)

    def joined(self, found: Iterable[MatchedBucket]) -> MatchedBucket:
        """Return what these buckets have found as that of one."""
        bounds = Bounds.empty(self.partitions), Bounds.empty(self.partitions)
        counted: list[Counted] = []
        for bucket in found:
            counted += bucket.counted
            for side, own in zip(bounds, bucket.bounds, strict=True):
                side.merge(own)
        if self.narrowed is not None:
            source, target = (each.at(self.narrowed.ends()) for each in self.narrowed.equal)
            bounds[0].include(source, target)
            bounds[1].include(target, source)
        return MatchedBucket(bounds, counted)

    def begins(self, found: MatchedBucket) -> Begins:
        """Return by number where the other side's first record is, on source and target, as `Bounds.begins`."""
        removed = [self._of_topic([(one.number, one.starts_late) for one in read]) for read in self.read]
        return found.bounds[0].begins(removed[1]), found.bounds[1].begins(removed[0])

    def ledgers(self, directory: Path, found: MatchedBucket, begins: Begins) -> list[TopicLedger]:
        """Return the ledger of each pair, of what is in the spills of a directory; their maps of offsets are files there."""
        placed, copied = self.spills(directory)
        cuts, of_number = self.cuts(), self.of_number
        source, target = (self._side(*side) for side in zip(self.read, found.bounds, begins, strict=True))
        builders = [LedgerBuilder(source, target, directory / f"map.{index}") for index in range(len(self.pairings))]
        for counted in found.counted:
            builders[of_number[counted.number]].add_counted(counted)
        removed = _removed(placed, source, target, cuts[0])
        crossing: set[int] = set()
        for rows, own_removed in self._in_order(placed, removed, cuts[0], 0):
            for index, own in _by_pair(rows, of_number):
                builders[index].add_source(own, own_removed)
                crossing |= {index} if self._crosses(own) else set()
        _order(placed, builders, of_number)
        removed = _removed(copied, target, source, cuts[1])
        for rows, own_removed in self._in_order(copied, removed, cuts[1], 1):
            for index, own in _by_pair(rows, of_number):
                builders[index].add_target(own, own_removed)
        return [
            self._with_windows(index, builder.ledger(self._topics(self.pairings[index])), crosses=index in crossing)
            for index, builder in enumerate(builders)
        ]

    def _in_order(
        self, spill: Spill, removed: Spill, cuts: NDArray[np.uint64], side: int
    ) -> Iterator[tuple[Rows, Rows]]:
        """Yield all rows of a side in the order of its places, those of equal windows too."""
        if self.narrowed is None:
            yield from sorted_rows(spill, removed)
            return
        own, other = self.narrowed.equal[side], self.narrowed.equal[1 - side]
        edges = [0, *own.ranks(cuts).tolist(), int(own.before[-1])]
        for number, (first, stop) in enumerate(pairwise(edges)):
            ranks = np.arange(first, stop)
            equal = np.empty(len(ranks), dtype=spill.dtype)
            equal["place"], equal["other"], equal["key"] = own.at(ranks), other.at(ranks), NO_KEY
            if "earlier" in spill.dtype.names:
                equal["earlier"] = NOWHERE
            rows = np.concatenate([spill.read(number), equal])
            yield rows[np.argsort(rows["place"], kind="stable")], removed.read(number)

    def _crosses(self, rows: Rows) -> bool:
        """Whether a record of PLACED lies among others of equal windows in the target than in the source."""
        if self.narrowed is None:
            return False
        rows = rows[(rows["other"] != NOWHERE) & (numbers_of(rows["place"]) == numbers_of(rows["other"]))]
        source, target = self.narrowed.equal
        return not np.array_equal(source.ranks(rows["place"]), target.ranks(rows["other"]))

    def _with_windows(self, index: int, ledger: TopicLedger, *, crosses: bool) -> TopicLedger:
        if self.narrowed is None:
            return ledger
        windows = self.narrowed.windows[index]
        return replace(ledger, windows=replace(windows, compared_whole=ORDER_CROSSES) if crosses else windows)

    def _topics(self, pairing: Pairing) -> TopicPair:
        numbers = set(pairing.numbers.values())
        counts = (
            reduce(SideCounts.__add__, (one.counts for one in read if one.number in numbers), SideCounts())
            for read in self.read
        )
        return TopicPair(pairing.source, pairing.target, self.identity, self.read_committed, *counts)

    def _of_topic(self, found: Sequence[tuple[int, bool]]) -> NDArray[np.bool_]:
        """Return by number what holds for one partition of its topic: partitions of two topics need not correspond."""
        topics, of_number = np.zeros(len(self.pairings), dtype=np.bool_), self.of_number
        for number, holds in found:
            topics[of_number[number]] |= holds
        by_number: NDArray[np.bool_] = topics[of_number]
        return by_number

    def _side(self, read: Sequence[ReadPartition], bounds: Bounds, begins: NDArray[np.uint64]) -> Side:
        bases = np.zeros(self.partitions, dtype=np.int64)
        for one in read:
            bases[one.number] = one.first_offset
        partitions = np.concatenate([np.array(pairing.partitions, dtype=np.int64) for pairing in self.pairings])
        return Side(partitions, bases, bounds, begins, self._of_topic([(one.number, one.cleaned) for one in read]))


def _removed(rows_of: Spill, own: Side, other: Side, cuts: NDArray[np.uint64]) -> Spill:
    """Find the records that the other side's log cleaner may have removed: places under the numbers of the parts they are in."""
    keyed, found = (replace(rows_of, name=f"{rows_of.name}-{name}", dtype=dtype) for name, dtype in _OF_CLEANER)

    def write(places: NDArray[np.uint64]) -> None:
        found.append(np.searchsorted(cuts, places, side="right"), places.view(REMOVED))

    shift = _group_shift(rows_of)
    for number in rows_of.numbers() if other.cleaned.any() else ():
        for rows in rows_of.parts(number):
            write(note_keys(rows[other.cleaned[numbers_of(rows["place"])]], own.bounds.outside, keyed, shift))
    for number in keyed.numbers():
        for places in superseded(keyed, number, own.bounds.outside):
            write(places)
        keyed.remove(number)
    return found


_OF_CLEANER = (("keys", KEYED), ("removed", REMOVED))


def _order(placed: Spill, builders: Sequence[LedgerBuilder], of_number: NDArray[np.int64]) -> None:
    """Find the records whose order within their key differs, in the partitions where any order does."""
    groups = np.array(sorted(set().union(*(builder.disordered for builder in builders))), dtype=np.uint64)
    keyed, shift = replace(placed, name="keyed", dtype=GROUPED), _group_shift(placed)
    for number in placed.numbers():
        rows = placed.read(number) if len(groups) else np.empty(0, dtype=PLACED)
        placed.remove(number)  # nobody reads it again, and what takes its place has as many bytes
        rows = rows[np.argsort(rows["place"], kind="stable")]
        own = rows[(rows["other"] != NOWHERE) & (rows["key"] != NO_KEY)]
        own = own[np.isin(pair_groups(own), groups)]
        grouped = np.empty(len(own), dtype=GROUPED)
        for name in PLACED.names or ():
            grouped[name] = own[name]
        grouped["group"] = mixed(own["key"], pair_groups(own))
        keyed.append((grouped["group"] >> shift).astype(np.int64), grouped)
    for number in keyed.numbers():
        lasts = NO_GROUPS
        for rows in keyed.parts(number):
            later, earlier, lasts = descents(rows, rows["group"], lasts)
            order = np.argsort(later["place"], kind="stable")
            for index in np.unique(of_number[numbers_of(later["place"])]).tolist():
                own = order[of_number[numbers_of(later["place"][order])] == index]
                builders[index].add_moved(later[own], earlier[own])
        keyed.remove(number)


def _group_shift(rows_of: Spill) -> np.uint64:
    """Return by how much a hash is shifted to number groups of about _GROUP_ROWS rows."""
    total = sum(rows_of.size(number) for number in rows_of.numbers())
    return np.uint64(64 - max((total // _GROUP_ROWS).bit_length(), 1))


def _by_pair(rows: Rows, of_number: NDArray[Any]) -> Iterator[tuple[int, Rows]]:
    """Cut rows in the order of their places where another pair of topics begins."""
    if not len(rows):
        return
    pairs = of_number[numbers_of(rows["place"])]
    starts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        yield int(pairs[start]), rows[start:stop]
