"""ZooKeeper's data on disk: which files hold a znode's history.

`dataDir` and `dataLogDir` hold a directory `version-2` each; people hand in either, the directory itself or the parent.
"""

from pathlib import Path

from msgspec import Struct

_DATA_DIRECTORY = "version-2"
_LOG_PREFIX = "log."
_SNAPSHOT_PREFIX = "snapshot."


class SeveralDataDirectoriesError(ValueError):
    """More than one data directory with logs under the directory named: `candidates`, of which one is to be named.

    Their zxids count separately, so reading them as one history would invent changes.
    """

    def __init__(self, candidates: tuple[Path, ...]) -> None:
        super().__init__(candidates)
        self.candidates = candidates

    def __str__(self) -> str:
        return "several ZooKeeper data directories, name one: " + ", ".join(map(str, self.candidates))


class ZooKeeperFiles(Struct, frozen=True):
    """The transaction logs and snapshots found, each by rising zxid of its name; `unknown` are files of neither name.

    A compressed snapshot (`snapshot.1f.gz`, `.snappy`, 3.6+) is among the unknown.
    """

    logs: tuple[Path, ...] = ()
    snapshots: tuple[Path, ...] = ()
    unknown: tuple[Path, ...] = ()


def find_zookeeper_files(directory: Path) -> ZooKeeperFiles:
    """Find ZooKeeper's files in `directory`: a data directory, its `version-2`, or the parent of data directories.

    Nothing found gives empty tuples. Raises OSError when a directory cannot be listed and
    SeveralDataDirectoriesError when two of them hold logs.
    """
    found: tuple[list[Path], list[Path], list[Path]] = ([], [], [])
    for folder in _data_directories(directory):
        for path in sorted(folder.iterdir()):
            if path.is_file():
                found[_kind(path.name)].append(path)
    logs, snapshots, unknown = found
    with_logs = tuple(sorted({path.parent for path in logs}))
    if len(with_logs) > 1:
        raise SeveralDataDirectoriesError(with_logs)
    return ZooKeeperFiles(
        tuple(sorted(logs, key=_named_zxid)), tuple(sorted(snapshots, key=_named_zxid)), tuple(unknown)
    )


def _data_directories(directory: Path) -> list[Path]:
    own = directory / _DATA_DIRECTORY
    if own.is_dir():
        return [own]
    nested = sorted(folder for folder in directory.glob(f"*/{_DATA_DIRECTORY}") if folder.is_dir())
    return nested or [directory]


def _kind(name: str) -> int:
    for kind, prefix in enumerate((_LOG_PREFIX, _SNAPSHOT_PREFIX)):
        if name.startswith(prefix) and _is_zxid(name.removeprefix(prefix)):
            return kind
    return 2


def _is_zxid(text: str) -> bool:
    return 0 < len(text) <= 16 and all(digit in "0123456789abcdef" for digit in text)


def _named_zxid(path: Path) -> int:
    return int(path.name.rpartition(".")[2], 16)
