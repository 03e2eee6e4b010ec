"""Evidence about the producer ids of all partitions: their statistics, ids that writers share, ids outside all blocks.

Histories of blocks and interleaved writers are examined where there are any: what that takes costs 3 ms to import, and
few logs have them.
"""

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.analysis.producer_ids.block_histories import BlockHistories
from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.model.producer_ids import ProducerIdStatistics
from kaudit.model.result import NotAudited
from kaudit.model.sequence_patterns import SharedProducerId


class AllocationEvidence(Struct):
    """What the ids show: `partitions`, one list for each, and `histories`. `unlisted` is left out for its number."""

    partitions: list[list[object]]
    histories: list[object] = field(default_factory=list)
    unlisted: list[NotAudited] = field(default_factory=list)


def allocation_evidence(
    parts: Sequence[PartitionAudit], histories: BlockHistories, open_source: OpenSource
) -> AllocationEvidence:
    """Gather the evidence; partitions are read again where their ids are suspicious."""
    found = AllocationEvidence([[_statistics(part), *_shared(part, histories, open_source)] for part in parts])
    if histories.clusters:
        from kaudit.analysis.producer_ids.block_audit import BlockAudit  # noqa: PLC0415

        for blocks in histories.clusters:
            own = {number: part for number, part in enumerate(parts) if histories.of(part.directory.log_dir) is blocks}
            audit = BlockAudit(blocks, own, open_source)
            found.histories += audit.of_history()
            for number, unallocated in audit.unallocated():
                found.partitions[number].append(unallocated)
            found.unlisted += audit.unlisted
    return found


def _statistics(part: PartitionAudit) -> ProducerIdStatistics:
    counts = part.counts
    batches = counts.batches - counts.legacy_batches - counts.without_producer
    return ProducerIdStatistics(part.producers, batches, counts.min_timestamp, counts.max_timestamp)


def _shared(part: PartitionAudit, histories: BlockHistories, open_source: OpenSource) -> Sequence[SharedProducerId]:
    if not part.observations:
        return ()
    from kaudit.analysis.sequences.interleaved_writers import shared_producer_ids  # noqa: PLC0415

    shared, blocks = shared_producer_ids(part, open_source), histories.of(part.directory.log_dir)
    if blocks is None:
        return shared
    return [replace(found, grants=len(blocks.coverage.holders(found.producer_id))) for found in shared]
