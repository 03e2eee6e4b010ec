"""The producer ids of the logs compared with the blocks they were allocated from, and the histories of blocks themselves."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.audits.producer_ids.block_sources import ClusterBlocks
from kaudit.audits.sequences.rescan import Questions, Rescan
from kaudit.broker.producer_ids.allocation_faults import (
    find_malformed,
    find_near_end,
    find_shared_blocks,
    find_unallocated,
)
from kaudit.model.producer_ids import FirstBatch, MalformedBlock, NearEnd, SharedBlock, Unallocated, UnallocatedId
from kaudit.model.result import NotAudited
from kaudit.partition.audit import PartitionAudit

MAX_LISTED_IDS = 1000
"""Unallocated ids reported one by one: with the history of another cluster all of a million would be."""
_YOUNGER_IDS = 10_000
"""Ids up to this far beyond the end of a history may be of later grants, which it could not show."""


class BlockAudit(Struct):
    """One history, and its partitions by their numbers among all."""

    blocks: ClusterBlocks
    parts: Mapping[int, PartitionAudit]
    rescan: Rescan
    unlisted: list[NotAudited] = field(default_factory=list)

    def of_history(self) -> Iterator[MalformedBlock | NearEnd | SharedBlock]:
        """Yield what the history shows by itself, with the ids of the logs that it concerns."""
        yield from find_malformed(self.blocks.history)
        yield from find_near_end(self.blocks.steps)
        yield from find_shared_blocks(self.blocks.steps, self.blocks.coverage, self._ids())

    def unallocated(self) -> Iterator[tuple[int, UnallocatedId]]:
        """Yield the ids that no block holds, each with the number of the first partition that has it."""
        blocks = self.blocks
        outside = [found.producer_id for found in self._find(self._ids(), None)]
        if len(outside) > MAX_LISTED_IDS:
            more = f"{len(outside) - MAX_LISTED_IDS:,} more producer ids outside every known block"
            self.unlisted.append(NotAudited(blocks.origin, f"{more} are not reported one by one"))
        wanted = np.array(outside[:MAX_LISTED_IDS], dtype=np.int64)
        placed = self._first_batches(wanted, negative=any(step.exhausted for step in blocks.steps))
        known = np.array(sorted(placed), dtype=np.int64)
        times = np.array([placed[producer_id][1].timestamp for producer_id in known.tolist()], dtype=np.int64)
        for found in self._find(known, times):
            if self._merely_younger(found):
                continue
            number, first = placed[found.producer_id]
            count = sum(bool((part.producer_ids == found.producer_id).any()) for part in self.parts.values())
            yield number, UnallocatedId(found, first, max(count, 1), blocks.following, blocks.origin)

    def _ids(self) -> NDArray[np.int64]:
        held = [part.producer_ids for part in self.parts.values() if len(part.producer_ids)]
        return np.unique(np.concatenate(held)) if held else np.empty(0, dtype=np.int64)

    def _find(self, ids: NDArray[np.int64], times: NDArray[np.int64] | None) -> Iterable[Unallocated]:
        blocks = self.blocks
        return find_unallocated(blocks.history, blocks.coverage, ids, times, complete=blocks.complete)

    def _first_batches(self, wanted: NDArray[np.int64], *, negative: bool) -> dict[int, tuple[int, FirstBatch]]:
        """Find each id's first batch in the first partition that has it; negative ids wherever they are."""
        asked: list[tuple[int, Questions]] = []
        missing = wanted
        for number, part in self.parts.items():
            has = np.isin(missing, part.producer_ids)
            # only an exhausted counter hands out ids below 0, which rows do not keep
            questions = Questions(first_of=missing[has], negative=negative and part.counts.without_producer > 0)
            if questions:
                asked.append((number, questions))
            missing = missing[~has]
        answers = self.rescan([(self.parts[number].directory, questions) for number, questions in asked])
        placed: dict[int, tuple[int, FirstBatch]] = {}
        for (number, _), seen in zip(asked, answers, strict=True):
            for producer_id, first in seen.first.items():
                placed.setdefault(producer_id, (number, first))
        return placed

    def _merely_younger(self, found: Unallocated) -> bool:
        """Whether the id is of a block granted after a live copy of the history was made: that is healthy."""
        following = self.blocks.following
        start = following[0] if following is not None else None
        return found.after_history is True and start is not None and start <= found.producer_id < start + _YOUNGER_IDS
