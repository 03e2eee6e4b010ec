"""Holding the producer ids of the logs against the blocks they came from: the facts behind KA401 to KA405."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.checks.allocation import Appearance, report_unallocated
from kaudit.checks.blocks import report_malformed, report_near_end, report_shared
from kaudit.checks.context import Context
from kaudit.checks.flood import Population, report_flood
from kaudit.checks.sharing import Sharing, believable, facts_of_weave, report_sharing, suspects, without_woven
from kaudit.model.finding import Finding
from kaudit.model.result import NotAudited
from kaudit.pipeline.blocks import BlockBook, Blocks
from kaudit.pipeline.read import OpenSource
from kaudit.pipeline.rows import Counts
from kaudit.pipeline.second_look import FirstBatch, Questions, Seen, look_again
from kaudit.replay.allocation.history import BlockEntry
from kaudit.replay.allocation.interleaving import find_woven
from kaudit.replay.allocation.verdicts import (
    Unallocated,
    find_malformed,
    find_near_end,
    find_shared_blocks,
    find_unallocated,
)
from kaudit.replay.judge import Fact
from kaudit.source.layout import PartitionDirectory

MAX_LISTED_IDS = 1000
"""Unallocated ids reported one by one; a history of another cluster would accuse all of a million."""
_YOUNGER_IDS = 10_000
"""Ids this far beyond a history that ends before them are of grants it could not show, not of nobody."""


class Inhabitants(Struct, frozen=True):
    """The producer ids of one partition replica, each once, and what the checks here need of it.

    `producer_ids` may be left out where no history of blocks is known; `producers` is how many there are.
    """

    directory: PartitionDirectory
    producer_ids: NDArray[np.int64]
    producers: int
    facts: Sequence[Fact]
    counts: Counts


class AllocationAudit(Struct):
    """Judges the ids of all partitions. `unlisted` tells of findings left out for their number."""

    book: BlockBook
    open_source: OpenSource
    unlisted: list[NotAudited] = field(default_factory=list)

    def partition_findings(self, part: Inhabitants, context: Context) -> tuple[list[Finding], Sequence[Fact]]:
        """Report what one partition alone tells; return it with the facts that are left for the other checks."""
        found = self._woven(part)
        blocks = self.book.of(part.directory.log_dir)
        holders: dict[int, Sequence[BlockEntry]] = {}
        if blocks is not None:
            holders = {sharing.producer_id: blocks.coverage.holders(sharing.producer_id) for sharing in found}
        counts = part.counts
        population = Population(
            part.producers,
            counts.batches - counts.legacy_batches - counts.without_producer,
            counts.min_timestamp,
            counts.max_timestamp,
        )
        findings = report_sharing(context, found, holders) + report_flood(context, population)
        return findings, without_woven(part.facts, found) if found else part.facts

    def _woven(self, part: Inhabitants) -> list[Sharing]:
        chosen = suspects(part.facts)
        if not chosen:
            return []
        seen = look_again(part.directory, self.open_source, Questions(chains=chosen))
        found: list[Sharing] = []
        for producer_id, epoch in chosen:
            woven = find_woven(seen.chain(producer_id, epoch))
            if woven is None:
                continue
            own = facts_of_weave(part.facts, producer_id, epoch, woven)
            sharing = Sharing(producer_id, epoch, woven, own, log_append_time=part.counts.log_append_time > 0)
            if own and believable(sharing):
                found.append(sharing)
        return found

    def cluster_findings(self, parts: Sequence[Inhabitants], context_of: Callable[[int], Context]) -> list[Finding]:
        """Report what the histories tell, by themselves and of the ids of all partitions that go by them."""
        findings: list[Finding] = []
        for blocks in self.book.books:
            own = [number for number, part in enumerate(parts) if self.book.of(part.directory.log_dir) is blocks]
            ids = _union(parts[number].producer_ids for number in own)
            findings += [report_malformed(found) for found in find_malformed(blocks.history)]
            findings += [report_near_end(found) for found in find_near_end(blocks.steps)]
            findings += [report_shared(found) for found in find_shared_blocks(blocks.steps, blocks.coverage, ids)]
            findings += self._unallocated(blocks, ids, {number: parts[number] for number in own}, context_of)
        return findings

    def _unallocated(
        self,
        blocks: Blocks,
        ids: NDArray[np.int64],
        parts: Mapping[int, Inhabitants],
        context_of: Callable[[int], Context],
    ) -> list[Finding]:
        outside = [found.producer_id for found in _find(blocks, ids, None)]
        if len(outside) > MAX_LISTED_IDS:
            more = f"{len(outside) - MAX_LISTED_IDS} more producer ids are in no block (KA401), not listed"
            self.unlisted.append(NotAudited(blocks.origin, more))
        wanted = np.array(outside[:MAX_LISTED_IDS], dtype=np.int64)
        placed = self._first_places(wanted, parts, negative=any(step.exhausted for step in blocks.steps))
        known = np.array(sorted(placed), dtype=np.int64)
        times = np.array([placed[number][1].timestamp for number in known.tolist()], dtype=np.int64)
        findings: list[Finding] = []
        for found in _find(blocks, known, times):
            number, first = placed[found.producer_id]
            if _merely_younger(found, blocks):
                continue
            count = sum(bool((part.producer_ids == found.producer_id).any()) for part in parts.values())
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

    def _first_places(
        self, wanted: NDArray[np.int64], parts: Mapping[int, Inhabitants], *, negative: bool
    ) -> dict[int, tuple[int, FirstBatch]]:
        """Find each id's first batch in the first partition that has it; negative ids wherever they are."""
        placed: dict[int, tuple[int, FirstBatch]] = {}
        for number, part in parts.items():
            missing = wanted[~np.isin(wanted, list(placed))] if placed else wanted
            here = missing[np.isin(missing, part.producer_ids)]
            # only an exhausted counter hands out ids below 0, which rows do not keep
            questions = Questions(first_of=here, negative=negative and part.counts.without_producer > 0)
            seen: Seen = look_again(part.directory, self.open_source, questions)
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
