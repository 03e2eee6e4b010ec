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
    """The grants of a range of ids, newest first, as a list that shares its tail with other ranges."""

    grant: BlockEntry
    older: "_Holders | None"


class _IdRange(Struct, frozen=True):
    first: int
    last: int
    holders: _Holders


class Coverage:
    """The ids granted, as disjoint ranges. Built once per history; memory grows with the number of grants.

    A step that repeats a grant counts once, see StepKind.REPEATED. Blocks that end before they start cover nothing.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self._ranges: list[_IdRange] = []
        self._starts: list[int] = []
        self.overlaps: list[BlockOverlap] = []
        for step in steps:
            if step.entry.kind is EntryKind.GRANTED and step.kind is not StepKind.REPEATED:
                self._grant(step.entry)
        self._firsts = np.array([part.first for part in self._ranges], dtype=np.int64)
        self._lasts = np.array([part.last for part in self._ranges], dtype=np.int64)

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The lowest and highest id granted, None when none was."""
        return (self._ranges[0].first, self._ranges[-1].last) if self._ranges else None

    def holders(self, producer_id: int) -> tuple[BlockEntry, ...]:
        """List the grants the id lies in, oldest first: none, one, or several when blocks overlap."""
        index = bisect_right(self._starts, producer_id) - 1
        if index < 0 or self._ranges[index].last < producer_id:
            return ()
        found: list[BlockEntry] = []
        node: _Holders | None = self._ranges[index].holders
        while node is not None:
            found.append(node.grant)
            node = node.older
        return tuple(reversed(found))

    def contains(self, producer_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each id whether any grant holds it."""
        if not self._ranges:
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
        if low < 0 or self._ranges[low].last < start:
            low += 1
        high = bisect_right(self._starts, end)
        touched = self._ranges[low:high]
        replacement = list(_laid_over(touched, entry, start, end))
        self._ranges[low:high] = replacement
        self._starts[low:high] = [part.first for part in replacement]
        for part in touched:
            self._note(part, entry, max(part.first, start), min(part.last, end))

    def _note(self, part: _IdRange, entry: BlockEntry, first: int, last: int) -> None:
        earlier = part.holders.grant
        known = self.overlaps[-1] if self.overlaps else None
        if known and known.later is entry and known.earlier is earlier and known.last + 1 == first:
            self.overlaps[-1] = BlockOverlap(earlier, entry, known.first, last)
        else:
            self.overlaps.append(BlockOverlap(earlier, entry, first, last))


def _laid_over(touched: list[_IdRange], entry: BlockEntry, start: int, end: int) -> Iterator[_IdRange]:
    """Lay the grant over the ranges it touches: these are split, the holes between them filled."""
    free = start
    for part in touched:
        if part.first < start:
            yield _IdRange(part.first, start - 1, part.holders)
        first, last = max(part.first, start), min(part.last, end)
        if free < first:
            yield _IdRange(free, first - 1, _Holders(entry, None))
        yield _IdRange(first, last, _Holders(entry, part.holders))
        free = last + 1
        if part.last > end:
            yield _IdRange(end + 1, part.last, part.holders)
    if free <= end:
        yield _IdRange(free, end, _Holders(entry, None))
