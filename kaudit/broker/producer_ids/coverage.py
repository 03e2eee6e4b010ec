"""Which grant an id came from, and which ids were granted more than once."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.broker.producer_ids.allocation_rules import Step, StepKind
from kaudit.broker.producer_ids.blocks import MAX_PRODUCER_ID, MIN_INT64
from kaudit.model.producer_ids import BlockEntry, BlockOverlap, EntryKind


class _Holders(Struct, frozen=True):
    """The grants of a stretch of ids, newest first, as a list that shares its tail with other stretches."""

    grant: BlockEntry
    older: "_Holders | None"


class _Stretch(Struct, frozen=True):
    first: int
    last: int
    holders: _Holders


class Coverage:
    """The ids granted, as disjoint stretches. Built once per history; memory grows with the number of grants.

    A step that repeats a grant counts once, see StepKind.REPEATED. Blocks that end before they start cover nothing.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self._stretches: list[_Stretch] = []
        self._starts: list[int] = []
        self.overlaps: list[BlockOverlap] = []
        for step in steps:
            if step.entry.kind is EntryKind.GRANTED and step.kind is not StepKind.REPEATED:
                self._grant(step.entry)
        self._firsts = np.array([stretch.first for stretch in self._stretches], dtype=np.int64)
        self._lasts = np.array([stretch.last for stretch in self._stretches], dtype=np.int64)

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The lowest and highest id granted, None when none was."""
        return (self._stretches[0].first, self._stretches[-1].last) if self._stretches else None

    def holders(self, producer_id: int) -> tuple[BlockEntry, ...]:
        """List the grants the id lies in, oldest first: none, one, or several when blocks overlap."""
        index = bisect_right(self._starts, producer_id) - 1
        if index < 0 or self._stretches[index].last < producer_id:
            return ()
        found: list[BlockEntry] = []
        node: _Holders | None = self._stretches[index].holders
        while node is not None:
            found.append(node.grant)
            node = node.older
        return tuple(reversed(found))

    def contains(self, producer_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell for each id whether any grant holds it."""
        if not self._stretches:
            return np.zeros(len(producer_ids), dtype=np.bool_)
        index = np.searchsorted(self._firsts, producer_ids, side="right") - 1
        inside: NDArray[np.bool_] = (index >= 0) & (producer_ids <= self._lasts[np.maximum(index, 0)])
        return inside

    def _grant(self, entry: BlockEntry) -> None:
        assert entry.start is not None
        assert entry.end is not None
        # Ids are int64: what a forged block claims beyond them cannot be seen in any log.
        start, end = max(entry.start, MIN_INT64), min(entry.end, MAX_PRODUCER_ID)
        if end < start:
            return
        low = bisect_right(self._starts, start) - 1
        if low < 0 or self._stretches[low].last < start:
            low += 1
        high = bisect_right(self._starts, end)
        touched = self._stretches[low:high]
        replacement = list(_laid_over(touched, entry, start, end))
        self._stretches[low:high] = replacement
        self._starts[low:high] = [stretch.first for stretch in replacement]
        for stretch in touched:
            self._note(stretch, entry, max(stretch.first, start), min(stretch.last, end))

    def _note(self, stretch: _Stretch, entry: BlockEntry, first: int, last: int) -> None:
        earlier = stretch.holders.grant
        known = self.overlaps[-1] if self.overlaps else None
        if known and known.later is entry and known.earlier is earlier and known.last + 1 == first:
            self.overlaps[-1] = BlockOverlap(earlier, entry, known.first, last)
        else:
            self.overlaps.append(BlockOverlap(earlier, entry, first, last))


def _laid_over(touched: list[_Stretch], entry: BlockEntry, start: int, end: int) -> Iterator[_Stretch]:
    """Lay the grant over the stretches it touches: these are split, the holes between them filled."""
    free = start
    for stretch in touched:
        if stretch.first < start:
            yield _Stretch(stretch.first, start - 1, stretch.holders)
        first, last = max(stretch.first, start), min(stretch.last, end)
        if free < first:
            yield _Stretch(free, first - 1, _Holders(entry, None))
        yield _Stretch(first, last, _Holders(entry, stretch.holders))
        free = last + 1
        if stretch.last > end:
            yield _Stretch(end + 1, stretch.last, stretch.holders)
    if free <= end:
        yield _Stretch(free, end, _Holders(entry, None))
