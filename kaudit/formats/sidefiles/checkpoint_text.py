"""The text files of a log directory as brokers write them.

Source of the formats: Kafka's CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile, MetaPropertiesVersion and
PartitionMetadataFile.
"""

from collections.abc import Collection

from kaudit.formats.sidefiles.checkpoints import (
    CHECKPOINT_VERSION,
    MetaProperties,
    PartitionMetadata,
    PartitionOffset,
)
from kaudit.model.leader_epochs import EpochEntry


def offset_checkpoint(rows: Collection[PartitionOffset]) -> str:
    """Return a recovery point, replication offset, log start offset or cleaner checkpoint."""
    return _checkpoint([f"{row.topic} {row.partition} {row.offset}" for row in rows])


def leader_epoch_checkpoint(rows: Collection[EpochEntry]) -> str:
    """Return a leader-epoch-checkpoint."""
    return _checkpoint([f"{row.epoch} {row.start_offset}" for row in rows])


def _checkpoint(lines: Collection[str]) -> str:
    return "\n".join([str(CHECKPOINT_VERSION), str(len(lines)), *lines, ""])


def partition_metadata(metadata: PartitionMetadata) -> str:
    """Return a partition.metadata, whose last line has no end."""
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id}"


def meta_properties(properties: MetaProperties, comment: str = "") -> str:
    """Return a meta.properties; what is None is left out. `comment` is one line of ASCII."""
    node = "node.id" if properties.version else "broker.id"
    known = (
        ("version", properties.version),
        (node, properties.node_id),
        ("cluster.id", properties.cluster_id),
        ("directory.id", properties.directory_id),
        *properties.others,
    )
    return "".join([f"#{comment}\n", *(f"{name}={value}\n" for name, value in known if value is not None)])
