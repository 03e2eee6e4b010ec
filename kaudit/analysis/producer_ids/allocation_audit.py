"""What the producer ids of the logs tell: the facts behind KA401 to KA405.

Blocks and weaves are looked into where there are any: what judges them takes 3 ms to import, and few logs have them.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.analysis.producer_ids.block_book import BlockBook
from kaudit.analysis.producer_ids.partition_producer_ids import PartitionProducerIds
from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.checks.context import Context
from kaudit.checks.flood import Population, report_flood
from kaudit.model.finding import Finding
from kaudit.model.result import NotAudited
from kaudit.model.sequence_patterns import SharedProducerId


class AllocationAudit(Struct):
    """Judges the ids of all partitions. `unlisted` tells of findings left out for their number."""

    book: BlockBook
    open_source: OpenSource
    unlisted: list[NotAudited] = field(default_factory=list)

    def partition_findings(
        self, part: PartitionProducerIds, context: Context
    ) -> tuple[list[Finding], Sequence[SharedProducerId]]:
        """Report what one partition alone shows; return it with the producer ids that two writers share."""
        counts = part.counts
        population = Population(
            part.producers,
            counts.batches - counts.legacy_batches - counts.without_producer,
            counts.min_timestamp,
            counts.max_timestamp,
        )
        return report_flood(context, population), self._shared(part) if part.observations else ()

    def _shared(self, part: PartitionProducerIds) -> Sequence[SharedProducerId]:
        from kaudit.analysis.sequences.interleaved_writers import shared_producer_ids  # noqa: PLC0415

        shared, blocks = shared_producer_ids(part, self.open_source), self.book.of(part.directory.log_dir)
        if blocks is None:
            return shared
        return [replace(found, grants=len(blocks.coverage.holders(found.producer_id))) for found in shared]

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
