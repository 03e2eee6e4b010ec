"""What the producer ids of the logs tell: the facts behind KA401 to KA405.

Blocks and weaves are looked into where there are any: what judges them takes 3 ms to import, and few logs have them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaudit.checks.context import Context
from kaudit.checks.flood import Population, report_flood
from kaudit.model.finding import Finding
from kaudit.model.result import NotAudited
from kaudit.pipeline.blocks import BlockBook
from kaudit.pipeline.inhabitants import Inhabitants
from kaudit.pipeline.read import OpenSource
from kaudit.replay.judge import Fact

if TYPE_CHECKING:
    from kaudit.replay.allocation.history import BlockEntry


class AllocationAudit(Struct):
    """Judges the ids of all partitions. `unlisted` tells of findings left out for their number."""

    book: BlockBook
    open_source: OpenSource
    unlisted: list[NotAudited] = field(default_factory=list)

    def partition_findings(self, part: Inhabitants, context: Context) -> tuple[list[Finding], Sequence[Fact]]:
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

    def _shared(self, part: Inhabitants, context: Context) -> tuple[list[Finding], Sequence[Fact]]:
        from kaudit.checks.sharing import report_sharing, without_woven  # noqa: PLC0415
        from kaudit.pipeline.weaves import find_weaves  # noqa: PLC0415

        found = find_weaves(part, self.open_source)
        if not found:
            return [], part.facts
        blocks = self.book.of(part.directory.log_dir)
        holders: dict[int, Sequence[BlockEntry]] = {}
        if blocks is not None:
            holders = {sharing.producer_id: blocks.coverage.holders(sharing.producer_id) for sharing in found}
        return report_sharing(context, found, holders), without_woven(part.facts, found)

    def cluster_findings(self, parts: Sequence[Inhabitants], context_of: Callable[[int], Context]) -> list[Finding]:
        """Report what the histories tell, by themselves and of the ids of all partitions that go by them."""
        if not self.book.books:
            return []
        from kaudit.pipeline.block_findings import BlockAudit  # noqa: PLC0415

        findings: list[Finding] = []
        for blocks in self.book.books:
            own = [number for number, part in enumerate(parts) if self.book.of(part.directory.log_dir) is blocks]
            audit = BlockAudit(blocks, {number: parts[number] for number in own}, self.open_source)
            findings += audit.findings(context_of)
            self.unlisted += audit.unlisted
        return findings
