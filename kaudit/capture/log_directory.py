"""The files beside the segments of a capture: checkpoints, and whose log directory it is (LogManager, CheckpointFile)."""

from kaudit.capture.account import Account, PartitionAccount
from kaudit.capture.directory import CaptureDirectory
from kaudit.capture.partition import RETENTION
from kaudit.formats.sidefiles.checkpoint_text import meta_properties, offset_checkpoint, partition_metadata
from kaudit.formats.sidefiles.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    MetaProperties,
    PartitionMetadata,
    PartitionOffset,
)
from kaudit.source.discover import CLEANER_CHECKPOINT, LOG_START_CHECKPOINT, META_PROPERTIES, PARTITION_METADATA

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"


def write_checkpoints(directory: CaptureDirectory, account: Account) -> None:
    """Write the four offset checkpoints.

    As a broker's: the log start only where the first segment begins before it, the cleaner's offset only where
    compaction has been at work.
    """
    captured = [part for part in account.partitions if part.next_offset >= 0]
    ends = [(part, part.recovery_point) for part in captured]
    starts = [(part, log_start(part)) for part in captured]
    rows = {
        RECOVERY_POINT_CHECKPOINT: ends,
        HIGH_WATERMARK_CHECKPOINT: ends,
        LOG_START_CHECKPOINT: [(part, start) for part, start in starts if start > part.first_segment],
        CLEANER_CHECKPOINT: [(part, part.first_offset) for part in captured if part.compacted_offsets],
    }
    for name, offsets in rows.items():
        lines = [PartitionOffset(part.topic, part.partition, offset) for part, offset in offsets]
        directory.write(offset_checkpoint(lines), name)


def log_start(part: PartitionAccount) -> int:
    """Return where the captured log begins: behind the last offsets that retention took before they were fetched."""
    lost = [missing.last_offset + 1 for missing in part.missing if missing.reason == RETENTION]
    return max([part.first_offset, *lost])


def write_identity(directory: CaptureDirectory, account: Account) -> None:
    """Write meta.properties: the cluster's id, and the broker's where all batches came from one."""
    brokers = {broker for part in account.partitions for broker in part.brokers}
    node = brokers.pop() if len(brokers) == 1 else None
    origin = account.origin
    properties = MetaProperties(int(bool(origin.kraft)), node, origin.cluster_id, None, ())
    directory.write(meta_properties(properties, " captured by kaudit"), META_PROPERTIES)


def write_partition_metadata(directory: CaptureDirectory, account: PartitionAccount) -> None:
    """Write partition.metadata where the topic has an id (since 2.8)."""
    if account.topic_id is not None:
        directory.write(partition_metadata(PartitionMetadata(0, account.topic_id)), account.name, PARTITION_METADATA)
