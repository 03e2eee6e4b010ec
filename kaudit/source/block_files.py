"""Where a cluster's blocks of producer ids may be recorded: ZooKeeper's files inside or next to what is audited."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kaudit.source.file_kinds import parse_partition_name
from kaudit.source.uri import Uri

if TYPE_CHECKING:  # few logs lie beside a ZooKeeper
    from pathlib import Path

    from kaudit.source.zookeeper import ZooKeeperFiles

_DATA_DIRECTORY = "version-2"
_MAX_DEPTH = 6


def zookeeper_nearby(paths: Sequence[str]) -> "list[ZooKeeperFiles]":
    """Find ZooKeeper's data directories inside the inputs and beside them, one entry per ensemble, by path.

    Logs and snapshots in directories of one parent (`dataLogDir`, `dataDir`) are one ensemble's. Directories that cannot
    be listed are passed over, as are URLs: nobody asked for them.
    """
    places = (place for place in map(Uri.parse, paths) if place.is_local)
    candidates = {folder for place in places for folder in _candidates(place)}
    if not candidates:
        return []
    from pathlib import Path  # noqa: PLC0415 - 3 ms

    folders: dict[Path, list[Path]] = {}
    for folder in sorted({Path(candidate).resolve() for candidate in candidates}):
        folders.setdefault(folder.parent.parent, []).append(folder)
    found: list[ZooKeeperFiles] = []
    for parent, own in folders.items():
        found += _of_one_parent(parent, own)
    return [files for files in found if files.logs or files.snapshots]


def _of_one_parent(parent: "Path", folders: "list[Path]") -> "list[ZooKeeperFiles]":
    from kaudit.source.zookeeper import SeveralDataDirectoriesError, find_zookeeper_files  # noqa: PLC0415

    try:
        if len(folders) > 1:
            return [find_zookeeper_files(parent)]
        return [find_zookeeper_files(folders[0])]
    except SeveralDataDirectoriesError:
        return [find_zookeeper_files(folder) for folder in folders]
    except OSError:
        return []


def _candidates(place: Uri) -> Iterator[str]:
    """Yield directories named version-2 in and beside one input."""
    yield from _inside(place.path, _MAX_DEPTH)
    yield from _inside(place.absolute().parent.path, 1)


def _inside(directory: str, depth: int) -> Iterator[str]:
    for folder in _folders(directory):
        if folder.name == _DATA_DIRECTORY:
            yield folder.path
        elif depth > 0 and parse_partition_name(folder.name) is None:
            yield from _inside(folder.path, depth - 1)


def _folders(directory: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(directory) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
