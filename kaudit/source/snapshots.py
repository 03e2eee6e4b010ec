"""Producer snapshots beside a partition's segments."""

import re
from dataclasses import dataclass
from pathlib import Path

from kaudit.source.layout import PartitionDirectory

_NAME = re.compile(r"(\d{20})\.snapshot")
_METADATA_LOG = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """One `%020d.snapshot`: `offset` is the exclusive end of the state it holds, `modified_ms` its mtime."""

    path: str
    name: str
    offset: int
    modified_ms: int


def list_snapshots(directory: PartitionDirectory) -> tuple[SnapshotFile, ...]:
    """Return a partition's snapshots by offset; none where only single files were given, or they cannot be listed."""
    if not directory.whole_directory or directory.topic == _METADATA_LOG:
        return ()
    found = []
    try:
        for path in Path(directory.directory).iterdir():
            named = _NAME.fullmatch(path.name)
            if named is not None:
                found.append(SnapshotFile(str(path), path.name, int(named[1]), path.stat().st_mtime_ns // 1_000_000))
    except OSError:
        return ()  # discovery has told of directories it could not read; a broker may delete files meanwhile
    return tuple(sorted(found, key=lambda file: file.offset))
