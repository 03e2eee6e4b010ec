"""What the producer ids of the logs tell: the facts behind KA401 to KA405.

Blocks and weaves are looked into where there are any: what judges them takes 3 ms to import, and few logs have them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaudit.analysis.producer_ids.block_book import BlockBook
from kaudit.analysis.producer_ids.partition_producer_ids import PartitionProducerIds
from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.checks.context import Context
from kaudit.checks.flood import Population, report_flood
from kaudit.model.finding import Finding
from kaudit.model.observation import Observation
from kaudit.model.result import NotAudited

if TYPE_CHECKING:
    from kaudit.broker.producer_ids.block_history import BlockEntry


class AllocationAudit(Struct):
    """Judges the ids of all partitions. `unlisted` tells of findings left out for their number."""

    book: BlockBook
    open_source: OpenSource
    unlisted: list[NotAudited] = field(default_factory=list)

    def partition_findings(
        self, part: PartitionProducerIds, context: Context
    ) -> tuple[list[Finding], Sequence[Observation]]:
        """Report what one partition alone tells; return it with the facts that are left for the other checks."""
        counts = part.counts
        population = Population(
            part.producers,
            counts.batches - counts.legacy_batches - counts.without_producer,
            counts.min_timestamp,
            counts.max_timestamp,
        )
        shared, facts = self._shared(part, context) if part.facts else ([], part.facts)
        return shared + report_flood(context, population), facts

    def _shared(self, part: PartitionProducerIds, context: Context) -> tuple[list[Finding], Sequence[Observation]]:
        from kaudit.analysis.sequences.interleaved_writers import find_weaves  # noqa: PLC0415
        from kaudit.checks.sharing import report_sharing, without_woven  # noqa: PLC0415

        found = find_weaves(part, self.open_source)
        if not found:
            return [], part.facts
        blocks = self.book.of(part.directory.log_dir)
        holders: dict[int, Sequence[BlockEntry]] = {}
        if blocks is not None:
            holders = {sharing.producer_id: blocks.coverage.holders(sharing.producer_id) for sharing in found}
        return report_sharing(context, found, holders), without_woven(part.facts, found)

    def cluster_findings(
        self, parts: Sequence[PartitionProducerIds], context_of: Callable[[int], Context]
    ) -> list[Finding]:
        """Report what the histories tell, by themselves and of the ids of all partitions that go by them."""
        if not self.book.books:
            return []
        from kaudit.analysis.producer_ids.block_findings import BlockAudit  # noqa: PLC0415

        findings: list[Finding] = []
        for blocks in self.book.books:
            own = [number for number, part in enumerate(parts) if self.book.of(part.directory.log_dir) is blocks]
            audit = BlockAudit(blocks, {number: parts[number] for number in own}, self.open_source)
            findings += audit.findings(context_of)
            self.unlisted += audit.unlisted
        return findings
