"""Where a KRaft cluster keeps its metadata: a topic of one partition, and snapshots beside its segments."""

import re

from msgspec.structs import replace

from kaudit.source.layout import PartitionDirectory, SegmentFile

CLUSTER_METADATA = "__cluster_metadata"
# end offset and epoch: Snapshots.SNAPSHOT_FILE (KIP-630)
_SNAPSHOT_NAME = re.compile(r"([0-9]{20})-[0-9]{10}\.checkpoint")


def metadata_snapshots(directory: PartitionDirectory) -> list[SegmentFile]:
    """Return the snapshots beside a metadata log (`<end offset>-<epoch>.checkpoint`), `base_offset` the end offset."""
    found: list[SegmentFile] = []
    for file in directory.side_files:
        name = _SNAPSHOT_NAME.fullmatch(file.name)
        if name is not None:
            found.append(replace(file, base_offset=int(name[1])))
    return sorted(found, key=lambda file: file.base_offset)
