"""Evidence about the producer ids of all partitions: their statistics, ids that writers share, ids outside all blocks.

Histories of blocks and interleaved writers are examined where there are any: what that takes costs 3 ms to import, and
few logs have them.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kaudit.audits.sequences.rescan import Rescan
from kaudit.model.producer_ids import ProducerIdStatistics, UnallocatedId
from kaudit.model.result import NotAudited
from kaudit.partition.audit import PartitionAudit
from kaudit.scanning.block_histories import BlockHistories


class AllocationEvidence(Struct):
    """What the ids show: `partitions`, one list for each, and `histories`. `unlisted` counts what is too much to list.

    `grants`, one mapping for each partition: by producer id with two writers, the number of grants of its block.
    """

    partitions: list[list[ProducerIdStatistics | UnallocatedId]]
    grants: list[Mapping[int, int]]
    histories: list[object] = field(default_factory=list)
    unlisted: list[NotAudited] = field(default_factory=list)


def allocation_evidence(
    parts: Sequence[PartitionAudit], histories: BlockHistories, rescan: Rescan
) -> AllocationEvidence:
    """Gather the evidence; partitions are read again where their ids are suspicious."""
    found = AllocationEvidence([[_statistics(part)] for part in parts], [_grants(part, histories) for part in parts])
    if histories.clusters:
        from kaudit.scanning.block_audit import BlockAudit  # noqa: PLC0415 - few logs come with a history

        for blocks in histories.clusters:
            own = {number: part for number, part in enumerate(parts) if histories.of(part.directory.log_dir) is blocks}
            audit = BlockAudit(blocks, own, rescan)
            found.histories += audit.of_history()
            for number, unallocated in audit.unallocated():
                found.partitions[number].append(unallocated)
            found.unlisted += audit.unlisted
    return found


def _statistics(part: PartitionAudit) -> ProducerIdStatistics:
    counts = part.counts
    batches = counts.batches - counts.legacy_batches - counts.without_producer
    return ProducerIdStatistics(part.producers, batches, counts.min_timestamp, counts.max_timestamp)


def _grants(part: PartitionAudit, histories: BlockHistories) -> Mapping[int, int]:
    blocks = histories.of(part.directory.log_dir)
    if blocks is None:
        return {}
    return {found.producer_id: len(blocks.coverage.holders(found.producer_id)) for found in part.shared}
