"""Finding partitions and segments under the given paths. Only names, sizes and checkpoints: no Kafka semantics."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from kaudit.source.layout import (
    Evidence,
    Layout,
    PartitionDirectory,
    SegmentFile,
    StrayFile,
    Unreadable,
)
from kaudit.source.names import (
    PartitionName,
    is_known_file,
    leftover_kind,
    parse_partition_name,
    segment_base_offset,
)
from kaudit.wire.checkpoints import (
    OFFSET_CHECKPOINT_NAMES,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from kaudit.wire.errors import WireError

LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
MAX_DEPTH = 16
_MAX_SIDE_FILE = 64 << 20
_BATCH_PREFIX = 17
_HIGHEST_MAGIC = 2


class PathNotFoundError(FileNotFoundError):
    """A path given on the command line does not exist."""


@dataclass(slots=True)
class _LogDirectory:
    """What the files of one log directory say about its partitions."""

    log_start: dict[tuple[str, int], int] = field(default_factory=dict)
    first_dirty: dict[tuple[str, int], int] = field(default_factory=dict)
    has_checkpoints: bool = False
    checkpoints: tuple[SegmentFile, ...] = ()


@dataclass(slots=True)
class _Discovery:
    partitions: list[PartitionDirectory] = field(default_factory=list)
    strays: list[StrayFile] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    skipped: list[Unreadable] = field(default_factory=list)
    meta: list[dict[str, str]] = field(default_factory=list)
    bootstrap: bool = False
    visited: set[tuple[int, int]] = field(default_factory=set)
    log_directories: dict[Path, _LogDirectory] = field(default_factory=dict)


def discover(paths: Sequence[str]) -> Layout:
    """Find every partition under `paths`: log directories, partition directories, segment files, or parents of these.

    Symbolic links are followed, each directory once. Partitions come in (topic, partition, directory) order.

    Raises:
        PathNotFoundError: a path does not exist.

    """
    found = _Discovery()
    lone: dict[Path, list[Path]] = {}
    for text in paths:
        path = Path(text)
        if not os.path.lexists(path):
            raise PathNotFoundError(text)
        if path.is_dir():
            _visit(found, path, path, 0)
        else:
            lone.setdefault(path.absolute().parent, []).append(path)
    for parent, files in lone.items():
        _take_files(found, parent, files)
    partitions = sorted(
        _with_replicas(found.partitions), key=lambda entry: (entry.topic, entry.partition, entry.directory)
    )
    return Layout(
        partitions=partitions,
        strays=sorted(found.strays, key=lambda stray: (stray.log_dir or "", stray.relative)),
        unreadable=found.unreadable,
        skipped=found.skipped,
        evidence=Evidence(found.meta, found.bootstrap),
    )


def _visit(found: _Discovery, root: Path, directory: Path, depth: int) -> None:
    if depth > MAX_DEPTH:
        found.skipped.append(Unreadable(str(directory), f"deeper than {MAX_DEPTH} directories"))
        return
    try:
        status = directory.stat()
        identity = (status.st_dev, status.st_ino)
        if identity in found.visited:
            return
        found.visited.add(identity)
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except FileNotFoundError:
        return  # a broker may delete a partition while we look
    except OSError as error:
        found.unreadable.append(Unreadable(str(directory), _reason(error)))
        return
    name = parse_partition_name(_real_name(directory))
    files = [entry.name for entry in entries if not _is_directory(entry)]
    segments = [file for file in files if segment_base_offset(file) is not None]
    if name is not None and name.moved is not None:
        _stray_directory(found, root, directory, name, name.moved)
        return
    # A log directory may be called kafka-1.
    is_log_directory = META_PROPERTIES in files or not OFFSET_CHECKPOINT_NAMES.isdisjoint(files)
    known = not is_log_directory and any(is_known_file(file) or leftover_kind(file) for file in files)
    if name is not None and (segments or known):
        _take_partition(found, root, directory, name, files)
        return
    if segments:
        _stray_directory(found, root, directory, None, "odd-name")
        return
    if META_PROPERTIES in files:
        _take_meta(found, directory)
    found.bootstrap = found.bootstrap or BOOTSTRAP_CHECKPOINT in files
    for entry in entries:
        if _is_directory(entry):
            _visit(found, root, directory / entry.name, depth + 1)


def _stray_directory(found: _Discovery, root: Path, directory: Path, name: PartitionName | None, kind: str) -> None:
    found.strays.append(
        StrayFile(
            relative=_relative(directory, root),
            kind=kind,
            topic=name.topic if name else None,
            partition=name.partition if name else None,
            log_dir=str(directory.parent),
        )
    )


def _take_partition(found: _Discovery, root: Path, directory: Path, name: PartitionName, files: Iterable[str]) -> None:
    segments: list[SegmentFile] = []
    strays: list[StrayFile] = []
    side_files: list[SegmentFile] = []
    names = set(files)
    for file in sorted(names):
        base = segment_base_offset(file)
        if base is not None:
            segment = _segment(found, directory / file, base)
            if segment is not None:
                segments.append(segment)
            continue
        kind = leftover_kind(file)
        if kind is None and is_known_file(file):
            side_files += _side_files(found, [directory / file])
            continue
        leftover = segment_base_offset(file.removesuffix(f".{kind}")) if kind else None
        strays.append(
            StrayFile(
                relative=_relative(directory / file, root),
                kind=kind or "odd-name",
                topic=name.topic,
                partition=name.partition,
                log_dir=str(directory.parent),
                base_offset=leftover,
                segment_missing=leftover is not None and f"{leftover:020d}.log" not in names,
            )
        )
    known = _log_directory(found, directory.absolute().parent)
    key = (name.topic, name.partition)
    found.partitions.append(
        PartitionDirectory(
            topic=name.topic,
            partition=name.partition,
            replica="",
            log_dir=str(directory.parent),
            directory=str(directory),
            relative=_relative(directory, root),
            segments=tuple(sorted(segments, key=lambda segment: segment.base_offset)),
            log_start_offset=known.log_start.get(key),
            first_dirty_offset=known.first_dirty.get(key),
            topic_id=_topic_id(directory) if PARTITION_METADATA in names else None,
            has_checkpoints=known.has_checkpoints,
            strays=tuple(strays),
            side_files=tuple(side_files),
            checkpoints=known.checkpoints,
        )
    )


def _take_files(found: _Discovery, parent: Path, files: Sequence[Path]) -> None:
    """Take segment files given one by one: those of one directory are one partition."""
    segments: list[SegmentFile] = []
    for path in sorted(set(files)):
        base = segment_base_offset(path.name)
        if base is None and not _looks_like_batches(found, path):
            continue
        segment = _segment(found, path, base if base is not None else 0)
        if segment is not None:
            segments.append(segment)
    if not segments:
        return
    name = parse_partition_name(parent.name)
    known = _log_directory(found, parent.parent) if name else _LogDirectory()
    key = (name.topic, name.partition) if name else ("", 0)
    found.partitions.append(
        PartitionDirectory(
            topic=name.topic if name else parent.name,
            partition=name.partition if name else 0,
            replica="",
            log_dir=str(parent.parent),
            directory=str(parent),
            relative="",
            segments=tuple(sorted(segments, key=lambda segment: segment.base_offset)),
            log_start_offset=known.log_start.get(key),
            first_dirty_offset=known.first_dirty.get(key),
            has_checkpoints=known.has_checkpoints,
            whole_directory=False,
        )
    )


def _looks_like_batches(found: _Discovery, path: Path) -> bool:
    try:
        with path.open("rb") as file:
            prefix = file.read(_BATCH_PREFIX)
    except OSError as error:
        found.unreadable.append(Unreadable(str(path), _reason(error)))
        return False
    kind = leftover_kind(path.name)
    if len(prefix) == _BATCH_PREFIX and prefix[-1] <= _HIGHEST_MAGIC and any(prefix) and kind is None:
        return True
    found.skipped.append(
        Unreadable(str(path), "no segment file" if kind is None else f"left behind by a broker ({kind})")
    )
    return False


def _segment(found: _Discovery, path: Path, base_offset: int) -> SegmentFile | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None  # deleted by retention while we look
    except OSError as error:
        found.unreadable.append(Unreadable(str(path), _reason(error)))
        return None
    return SegmentFile(str(path), path.name, base_offset, status.st_size, status.st_mtime_ns // 1_000_000)


def _side_files(found: _Discovery, paths: Iterable[Path]) -> list[SegmentFile]:
    """Those of the files that are there."""
    return [file for path in paths if (file := _segment(found, path, 0)) is not None]


def _log_directory(found: _Discovery, directory: Path) -> _LogDirectory:
    known = found.log_directories.get(directory)
    if known is None:
        known = found.log_directories[directory] = _LogDirectory()
        for file, offsets in ((LOG_START_CHECKPOINT, known.log_start), (CLEANER_CHECKPOINT, known.first_dirty)):
            data = _side_file(directory / file)
            if data is None:
                continue
            known.has_checkpoints = True
            offsets.update({(row.topic, row.partition): row.offset for row in parse_offset_checkpoint(data).rows})
        known.checkpoints = tuple(_side_files(found, [directory / name for name in sorted(OFFSET_CHECKPOINT_NAMES)]))
        if (directory / META_PROPERTIES).is_file():
            _take_meta(found, directory)
        found.bootstrap = found.bootstrap or (directory / BOOTSTRAP_CHECKPOINT).is_file()
    return known


def _take_meta(found: _Discovery, directory: Path) -> None:
    data = _side_file(directory / META_PROPERTIES)
    if data is None:
        return
    try:
        properties = parse_meta_properties(data)
    except WireError as error:
        found.skipped.append(Unreadable(str(directory / META_PROPERTIES), str(error)))
        return
    entry = {"version": str(properties.version), "path": str(directory)}
    for key, value in (
        ("node.id", properties.node_id),
        ("directory.id", properties.directory_id),
        ("cluster.id", properties.cluster_id),
    ):
        if value is not None:
            entry[key] = str(value)
    if entry not in found.meta:
        found.meta.append(entry)


def _topic_id(directory: Path) -> str | None:
    data = _side_file(directory / PARTITION_METADATA)
    if data is None:
        return None
    try:
        return parse_partition_metadata(data).topic_id
    except WireError:
        return None


def _side_file(path: Path) -> bytes | None:
    """Bytes of a small text file, None if it is not there or cannot be read: checkpoints are hints here."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_SIDE_FILE)
    except OSError:
        return None


def _with_replicas(partitions: Sequence[PartitionDirectory]) -> Iterator[PartitionDirectory]:
    """Name each replica by the shortest suffix of its log directory that tells the log directories apart."""
    directories = sorted({entry.log_dir for entry in partitions})
    parts = {text: PurePath(os.path.abspath(text)).parts for text in directories}  # noqa: PTH100 - keeps symlinks
    names: dict[str, str] = {}
    for depth in range(1, max((len(entry) for entry in parts.values()), default=0) + 1):
        names = {text: "/".join(entry[-depth:]) for text, entry in parts.items()}
        if len(set(names.values())) == len(set(parts.values())):
            break
    for entry in partitions:
        yield replace(entry, replica=names[entry.log_dir])


def _real_name(directory: Path) -> str:
    return directory.name or directory.absolute().name


def _relative(path: Path, root: Path) -> str:
    relative = path.relative_to(root).as_posix()
    return path.absolute().name if relative == "." else relative


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
