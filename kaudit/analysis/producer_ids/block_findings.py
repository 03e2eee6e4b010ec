"""Holding the producer ids of the logs against the blocks they came from: the facts behind KA401 to KA403 and KA406."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.analysis.producer_ids.partition_producer_ids import PartitionProducerIds
from kaudit.analysis.producer_ids.source_blocks import Blocks
from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.analysis.sequences.rescan import FirstBatch, Questions, Seen, rescan
from kaudit.broker.producer_ids.allocation_verdicts import (
    Unallocated,
    find_malformed,
    find_near_end,
    find_shared_blocks,
    find_unallocated,
)
from kaudit.checks.allocation import Appearance, report_unallocated
from kaudit.checks.blocks import report_malformed, report_near_end, report_shared
from kaudit.checks.context import Context
from kaudit.model.finding import Finding
from kaudit.model.result import NotAudited

MAX_LISTED_IDS = 1000
"""Unallocated ids reported one by one; a history of another cluster would accuse all of a million."""
_YOUNGER_IDS = 10_000
"""Ids this far beyond a history that ends before them are of grants it could not show, not of nobody."""


class BlockAudit(Struct):
    """Judges one history, and by it the ids of the partitions that go by it, by their numbers among all."""

    blocks: Blocks
    parts: Mapping[int, PartitionProducerIds]
    open_source: OpenSource
    unlisted: list[NotAudited] = field(default_factory=list)

    def findings(self, context_of: Callable[[int], Context]) -> list[Finding]:
        """Report what the history tells, by itself and of the ids."""
        blocks = self.blocks
        ids = _union(part.producer_ids for part in self.parts.values())
        findings = [report_malformed(found) for found in find_malformed(blocks.history)]
        findings += [report_near_end(found) for found in find_near_end(blocks.steps)]
        findings += [report_shared(found) for found in find_shared_blocks(blocks.steps, blocks.coverage, ids)]
        return findings + self._unallocated(ids, context_of)

    def _unallocated(self, ids: NDArray[np.int64], context_of: Callable[[int], Context]) -> list[Finding]:
        blocks = self.blocks
        outside = [found.producer_id for found in _find(blocks, ids, None)]
        if len(outside) > MAX_LISTED_IDS:
            more = f"{len(outside) - MAX_LISTED_IDS:,} more producer ids outside every known block are not reported one by one (KA401)"
            self.unlisted.append(NotAudited(blocks.origin, more))
        wanted = np.array(outside[:MAX_LISTED_IDS], dtype=np.int64)
        placed = self._first_places(wanted, negative=any(step.exhausted for step in blocks.steps))
        known = np.array(sorted(placed), dtype=np.int64)
        times = np.array([placed[number][1].timestamp for number in known.tolist()], dtype=np.int64)
        findings: list[Finding] = []
        for found in _find(blocks, known, times):
            number, first = placed[found.producer_id]
            if _merely_younger(found, blocks):
                continue
            count = sum(bool((part.producer_ids == found.producer_id).any()) for part in self.parts.values())
            seen = Appearance(
                first.offset,
                first.last_offset,
                first.timestamp,
                first.producer_epoch,
                first.position,
                first.segment,
                max(count, 1),
            )
            findings.append(report_unallocated(context_of(number), found, seen, blocks.following, blocks.origin))
        return findings

    def _first_places(self, wanted: NDArray[np.int64], *, negative: bool) -> dict[int, tuple[int, FirstBatch]]:
        """Find each id's first batch in the first partition that has it; negative ids wherever they are."""
        placed: dict[int, tuple[int, FirstBatch]] = {}
        for number, part in self.parts.items():
            missing = wanted[~np.isin(wanted, list(placed))] if placed else wanted
            here = missing[np.isin(missing, part.producer_ids)]
            # only an exhausted counter hands out ids below 0, which rows do not keep
            questions = Questions(first_of=here, negative=negative and part.counts.without_producer > 0)
            seen: Seen = rescan(part.directory, self.open_source, questions)
            for producer_id, first in seen.first.items():
                placed.setdefault(producer_id, (number, first))
        return placed


def _find(blocks: Blocks, ids: NDArray[np.int64], times: NDArray[np.int64] | None) -> Iterable[Unallocated]:
    return find_unallocated(blocks.history, blocks.coverage, ids, times, complete=blocks.complete)


def _merely_younger(found: Unallocated, blocks: Blocks) -> bool:
    """Tell whether the id is of a block granted after a live copy of the history was made: that is no fault."""
    start = blocks.following[0] if blocks.following is not None else None
    return found.after_history is True and start is not None and start <= found.producer_id < start + _YOUNGER_IDS


def _union(arrays: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    held = [array for array in arrays if len(array)]
    return np.unique(np.concatenate(held)) if held else np.empty(0, dtype=np.int64)
