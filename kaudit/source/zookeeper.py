"""ZooKeeper's data on disk: which files hold a znode's history, and that history, read file by file.

`dataDir` and `dataLogDir` hold a directory `version-2` each; users name either of them, a `version-2` or the parent.
"""

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaudit.deferred import Deferred
from kaudit.formats.errors import Damage, WireError
from kaudit.model.grouping import grouped
from kaudit.source.bytes import open_regular
from kaudit.source.file_kinds import parse_partition_name
from kaudit.source.uri import Uri

if TYPE_CHECKING:
    from kaudit.formats.zookeeper import snapshot, transaction_log
else:
    snapshot = Deferred("kaudit.formats.zookeeper.snapshot")
    transaction_log = Deferred("kaudit.formats.zookeeper.transaction_log")

_DATA_DIRECTORY = "version-2"
_LOG_PREFIX = "log."
_SNAPSHOT_PREFIX = "snapshot."


class SeveralDataDirectoriesError(ValueError):
    """Several data directories with logs lie under the given directory; the user must name one of `candidates`.

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


_MAX_DEPTH = 6


def zookeeper_nearby(paths: Sequence[str]) -> tuple[list[ZooKeeperFiles], list[tuple[Path, OSError]]]:
    """Find ZooKeeper's data directories inside the inputs and beside them, one entry per ensemble, by path.

    Logs and snapshots in directories of one parent (`dataLogDir`, `dataDir`) are one ensemble's. Also return the data
    directories that cannot be listed, and why. URLs are skipped, and so are other directories that cannot be listed:
    those beside the inputs the user did not name, and those inside whoever lists the inputs reports.
    """
    places = (place for place in map(Uri.parse, paths) if place.is_local)
    candidates = {folder for place in places for folder in _candidates(place)}
    if not candidates:
        return [], []
    folders = grouped(
        (folder.parent.parent, folder) for folder in sorted({Path(candidate).resolve() for candidate in candidates})
    )
    found: list[ZooKeeperFiles] = []
    failed: list[tuple[Path, OSError]] = []
    for parent, own in folders.items():
        try:
            found += _of_one_parent(parent, own)
        except FileNotFoundError:
            continue
        except OSError as error:
            failed.append((own[0], error))
    return [files for files in found if files.logs or files.snapshots], failed


def _of_one_parent(parent: Path, folders: list[Path]) -> list[ZooKeeperFiles]:
    try:
        if len(folders) > 1:
            return [find_zookeeper_files(parent)]
        return [find_zookeeper_files(folders[0])]
    except SeveralDataDirectoriesError:
        return [find_zookeeper_files(folder) for folder in folders]


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


def _folders(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


_EPOCH = 1 << 32
"""A zxid is the leader's epoch in the upper half and a counter in the lower."""


class Sighting(Struct, frozen=True):
    """A value of the znode and the file it is in."""

    change: "transaction_log.ZnodeChange"
    file: Path


class FileDamage(Struct, frozen=True):
    """Damage and the file it is in."""

    damage: Damage
    file: Path


_Seen = dict[tuple[str, int, int | None], Sighting]


class ZnodeEvidence(Struct):
    """All that the files say about the znodes searched for: by path, each by rising zxid.

    What two files agree on is here once; what they disagree on is in `conflicts`, the first of each pair being
    used. `unreadable` are files the operating system refused, with its words. More than one path means that several
    clusters share the ensemble. `first_zxid` and `last_zxid` are of any transaction in the logs, `observed_until_ms` the time of the last one; None
    without logs. `gaps` are the (last zxid, next zxid) between which no log has transactions.
    """

    sightings: dict[str, list[Sighting]] = field(default_factory=dict)
    damages: list[FileDamage] = field(default_factory=list)
    unreadable: list[tuple[Path, str]] = field(default_factory=list)
    conflicts: list[tuple[Sighting, Sighting]] = field(default_factory=list)
    first_zxid: int | None = None
    last_zxid: int | None = None
    observed_until_ms: int | None = None
    gaps: list[tuple[int, int]] = field(default_factory=list)


def read_znode(files: ZooKeeperFiles, suffix: str) -> ZnodeEvidence:
    """Read every file for the znodes whose path ends in `suffix`, one file at a time, mapped instead of loaded.

    Never raises for what the files hold: damage and unreadable files are listed, the rest is used.
    """
    evidence = ZnodeEvidence()
    seen: _Seen = {}
    for scan, paths in ((transaction_log.scan_log, files.logs), (snapshot.scan_snapshot, files.snapshots)):
        for path in paths:
            with _noting_damage(path, evidence):
                _take(scan(_mapped(path), suffix), path, evidence, seen)
    # Stable: what one multi transaction did keeps its order.
    for sighting in sorted(seen.values(), key=lambda sighting: sighting.change.zxid):
        evidence.sightings.setdefault(sighting.change.path, []).append(sighting)
    return evidence


@contextmanager
def _noting_damage(path: Path, evidence: ZnodeEvidence) -> Iterator[None]:
    try:
        yield
    except WireError as error:
        damage = Damage(error.position, path.stat().st_size, error.reason, error.detail)
        evidence.damages.append(FileDamage(damage, path))
    except OSError as error:
        evidence.unreadable.append((path, error.strerror or str(error)))


def _mapped(path: Path) -> memoryview:
    with open(path, "rb", opener=open_regular) as file:
        if not path.stat().st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _take(scan: "transaction_log.ZnodeScan", path: Path, evidence: ZnodeEvidence, seen: _Seen) -> None:
    evidence.damages.extend(FileDamage(damage, path) for damage in scan.damages)
    for change in scan.changes:
        _add(Sighting(change, path), evidence, seen)
    if scan.first_zxid is None or scan.last_zxid is None:
        return
    if evidence.first_zxid is None:
        evidence.first_zxid = scan.first_zxid
    if evidence.last_zxid is not None and not _continues(evidence.last_zxid, scan.first_zxid):
        evidence.gaps.append((evidence.last_zxid, scan.first_zxid))
    evidence.last_zxid, evidence.observed_until_ms = scan.last_zxid, scan.last_time_ms


def _continues(last: int, first: int) -> bool:
    """Return whether no transaction can lie between the two: zxids count up, and from 1 under each new leader."""
    return first <= last + 1 or (first // _EPOCH > last // _EPOCH and first % _EPOCH <= 1)


def _add(sighting: Sighting, evidence: ZnodeEvidence, seen: _Seen) -> None:
    change = sighting.change
    known = seen.setdefault((change.path, change.zxid, change.version), sighting)
    if (known.change.data, known.change.time_ms) != (change.data, change.time_ms):
        evidence.conflicts.append((known, sighting))
