"""Snapshots beside the segments of a partition: those of producers, and those of a KRaft cluster's metadata (KIP-630)."""

import re

from msgspec import Struct
from msgspec.structs import replace

from kaudit.model.limits import SNAPSHOTS
from kaudit.source.layout import PartitionDirectory, SegmentFile

_NAME = re.compile(r"(\d{20})\.snapshot")
_METADATA_LOG = "__cluster_metadata"


class SnapshotFile(Struct, frozen=True):
    """One `%020d.snapshot`: `offset` is the exclusive end of the state it holds, `modified_ms` its mtime."""

    path: str
    name: str
    offset: int
    modified_ms: int


def list_snapshots(directory: PartitionDirectory) -> tuple[SnapshotFile, ...]:
    """Return a partition's newest snapshots, by offset; none where only single files were given."""
    return tuple(_all(directory)[-SNAPSHOTS:])


def count_older_snapshots(directory: PartitionDirectory) -> int:
    """Return how many snapshots of a partition there are before those that `list_snapshots` returns."""
    return max(len(_all(directory)) - SNAPSHOTS, 0)


def _all(directory: PartitionDirectory) -> list[SnapshotFile]:
    if directory.topic == _METADATA_LOG:
        return []
    found = [
        SnapshotFile(file.path, file.name, int(named[1]), file.modified_ms)
        for file in directory.side_files
        if (named := _NAME.fullmatch(file.name)) is not None
    ]
    return sorted(found, key=lambda file: file.offset)


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
