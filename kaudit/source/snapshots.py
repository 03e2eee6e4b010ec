"""Producer snapshots beside a partition's segments."""

import re

from msgspec import Struct

from kaudit.model.limits import SNAPSHOTS
from kaudit.source.layout import PartitionDirectory

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
