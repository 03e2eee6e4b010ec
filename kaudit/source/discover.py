"""Finding partitions and segments under the given paths. Only names, sizes and checkpoints: no Kafka semantics."""

from collections.abc import Hashable, Iterator, Mapping, Sequence

from msgspec import field
from msgspec.structs import replace

from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.checkpoints import parse_partition_metadata
from kaudit.model.grouping import grouped
from kaudit.model.limits import DIRECTORY_DEPTH
from kaudit.source.file_kinds import (
    META_PROPERTIES,
    OFFSET_CHECKPOINT_NAMES,
    PARTITION_METADATA,
    PartitionName,
    copied_partition_name,
    is_broker_file,
    is_known_file,
    leftover_kind,
    parse_partition_name,
    segment_base_offset,
)
from kaudit.source.filesystem import FileStatus
from kaudit.source.kafka.options import ClusterOptions, TopicUrl
from kaudit.source.layout import (
    EXPECTED,
    Evidence,
    FoundPartitions,
    Layout,
    LeftoverFile,
    PartitionDirectory,
    SegmentFile,
    SideFiles,
    Unreadable,
    with_replicas,
)
from kaudit.source.listing import Listed, Listing, existing_files, failure, sized
from kaudit.source.log_directories import LogDirectories, LogDirectory
from kaudit.source.pattern import LayoutPattern
from kaudit.source.recognition import foreign_layout
from kaudit.source.schemes import SegmentRemovedError, filesystem, of_brokers, removed_from_head
from kaudit.source.unnamed_files import UnnamedFiles
from kaudit.source.uri import KAFKA, Uri

MAX_DEPTH = DIRECTORY_DEPTH
NO_SEGMENT = "no segment (a file such as 00000000000000000000.log) was found"


class PathNotFoundError(FileNotFoundError):
    """A path given on the command line does not exist."""


class _Discovery(FoundPartitions):
    leftover_files: list[LeftoverFile] = field(default_factory=list)
    pattern: LayoutPattern | None = None
    members: list[Uri] = field(default_factory=list)
    """Files below the input that is being visited which no name of a broker's explains."""
    copies: list[tuple[Listed, Mapping[str, FileStatus]]] = field(default_factory=list)
    """Directories with segments below it whose names are no partition's, and their files."""
    visited: set[Hashable] = field(default_factory=set)
    revisits: int = 0
    empty_inputs: list[Unreadable] = field(default_factory=list)
    log_directories: LogDirectories = field(default_factory=lambda: LogDirectories([], []))
    segments: list[tuple[Uri, FileStatus, int]] = field(default_factory=list)
    """Segments given one by one, with their base offsets."""
    files_given: dict[str, str] = field(default_factory=dict)
    """The texts by which files were given, by their paths."""
    unnamed: UnnamedFiles = field(default_factory=lambda: UnnamedFiles([], []))
    foreign: dict[str, Uri] = field(default_factory=dict)
    """What other programs' directories are, and the first of each kind."""

    def __post_init__(self) -> None:
        self.log_directories = LogDirectories(self.unreadable, self.skipped)
        self.unnamed = UnnamedFiles(self.unreadable, self.skipped)

    def held(self) -> tuple[int, ...]:
        """Count what an input may hold: segments' partitions, what cannot be read, and directories met before."""
        with_segments = [directory for directory in self.partitions if directory.segments]
        return (len(with_segments), len(self.unreadable), self.revisits)

    def recognised(self) -> tuple[int, ...]:
        """Count the evidence in files that were recognised by what they hold."""
        return (len(self.unnamed.segments), len(self.unnamed.texts), len(self.unnamed.logs))


def discover(
    paths: Sequence[str], pattern: LayoutPattern | None = None, cluster: ClusterOptions | None = None
) -> Layout:
    """Find every partition under `paths`: log directories, partition directories, segment files, or parents of these.

    A kafka:// URL names a topic or a partition of a live cluster; `cluster` says how to connect, and what to read.

    Paths may be URLs; `pattern` says where topic and partition stand in paths a broker did not name. Symbolic links are
    followed, each directory once. Partitions come in (topic, partition, directory) order.

    Raises:
        PathNotFoundError: a path does not exist.
        UrlError: a URL has a scheme or a host kaudit cannot read from.

    """
    found = _Discovery(pattern=pattern)
    for text in paths:
        _take_input(found, text, cluster or ClusterOptions())
    by_parent = grouped((file[0].absolute().parent, file) for file in (*found.segments, *found.unnamed.segments))
    for parent, files in by_parent.items():
        _take_files(found, parent, files)
    if found.unnamed.texts:
        from kaudit.source.text_partitions import partitions_of_texts  # noqa: PLC0415 - few logs are texts

        found.add(partitions_of_texts(found.unnamed.texts))
    found.empty_inputs += _files_of_no_partition(found)
    if found.partitions:
        found.skipped += [Unreadable(str(directory), f"{kind}; not read") for kind, directory in found.foreign.items()]
    else:
        found.skipped += found.unnamed.dumps[:1]  # beside real logs they are no mistake
    hints = found.log_directories
    partitions = sorted(
        with_replicas(found.partitions), key=lambda entry: (entry.topic, entry.partition, entry.directory)
    )
    return Layout(
        partitions=partitions,
        leftover_files=sorted(found.leftover_files, key=lambda file: (file.log_dir or "", file.relative)),
        unreadable=found.unreadable,
        skipped=found.skipped,
        evidence=Evidence(hints.meta, hints.bootstrap, sorted(found.broker_versions), hints.features),
        empty_inputs=found.empty_inputs,
        logs=found.unnamed.logs,
        other_logs=found.unnamed.other_logs,
    )


def _take_input(found: _Discovery, text: str, cluster: ClusterOptions) -> None:
    place = Uri.parse(text)
    if place.scheme == KAFKA:
        _take_topic(found, place, cluster)
        return
    try:
        place, entry = found.unnamed.entered(place)
    except FileNotFoundError:
        raise PathNotFoundError(text) from None
    except OSError as error:
        found.unreadable.append(Unreadable(str(place), failure(error)))
        return
    if entry.is_directory:
        _take_tree(found, place, text)
        return
    found.files_given[str(place)] = text
    base = segment_base_offset(place.name)
    if base is None:
        found.unnamed.take_named(place, entry)
    else:
        found.segments.append((place, entry, base))


def _take_tree(found: _Discovery, place: Uri, text: str) -> None:
    """Take everything below a directory that was given as `text`."""
    held, recognised = found.held(), found.recognised()
    _walk(found, place)
    if found.held() == held and found.recognised() == recognised:
        found.empty_inputs.append(Unreadable(text, _what_else(found, place)))


def _walk(found: _Discovery, place: Uri) -> None:
    """Take everything below a directory: first what has a broker's names, then what else is there."""
    held = found.held()
    found.members, found.copies = [], []
    _visit(found, listing := Listing(place, PARTITION_METADATA), listing.first(), 0)
    alone = found.held() == held
    for listed, files in found.copies:
        if alone:
            _take_copy(found, place, listed, files)
        else:
            relative, log_dir = listed.directory.relative_to(place), str(listed.directory.parent)
            found.leftover_files.append(LeftoverFile(relative, "odd-name", log_dir=log_dir))
    for archive in [*found.unnamed.take_members(found.members, alone=alone)]:
        try:
            content, entry = found.unnamed.entered(archive)
        except OSError as error:
            found.unreadable.append(Unreadable(str(archive), failure(error)))
            continue
        assert entry.is_directory, "a compressed file is sorted by its content"
        _walk(found, content)


def _take_topic(found: _Discovery, place: Uri, cluster: ClusterOptions) -> None:
    topic = TopicUrl.of(place)
    live: FoundPartitions = of_brokers("find_partitions")(topic, cluster)
    known = {entry.directory for entry in found.partitions}
    live.partitions = [entry for entry in live.partitions if entry.directory not in known]
    found.add(live)


def _what_else(found: _Discovery, place: Uri) -> str:
    """Describe what a directory without segments holds."""
    for kind, directory in found.foreign.items():
        if directory.lies_in(place):
            return f"{directory}: {kind}"
    for leftover in found.leftover_files:
        if leftover.log_dir is not None and Uri.parse(leftover.log_dir).lies_in(place):
            return f"no segment: only {leftover.relative} ({leftover.kind})"
    for other in (*found.unnamed.dumps, *found.unnamed.other_logs):
        if Uri.parse(other.path).lies_in(place):
            return f"{other.path}: {other.reason}"
    for other in found.unnamed.others:
        if Uri.parse(other.path).lies_in(place):
            return f"{NO_SEGMENT}; it holds {Uri.parse(other.path).relative_to(place)} ({other.reason}); {EXPECTED}"
    return NO_SEGMENT


def _files_of_no_partition(found: _Discovery) -> Iterator[Unreadable]:
    """Yield the files given by name that hold no evidence."""
    given = found.files_given
    known = {segment.path for directory in found.partitions for segment in directory.segments} if given else set()
    known.update(entry.path for entry in found.unreadable)
    known.update(log.path for log in found.unnamed.logs)
    reasons = {entry.path: entry.reason for entry in (*found.skipped, *found.unnamed.other_logs)}
    for path, text in given.items():
        if path not in known:
            yield Unreadable(text, reasons.get(path, "no batch was found"))


def _visit(found: _Discovery, listing: Listing, listed: Listed, depth: int) -> None:
    directory = listed.directory
    entries = _once(found, listed)
    held = {entry.name: entry for entry in entries if not entry.is_directory}
    foreign = foreign_layout(directory, held) if entries else None
    if foreign is not None:
        found.foreign.setdefault(foreign, directory)
    elif entries and not _take_directory(found, listing.root, listed, held):
        found.log_directories.take(directory, held)
        found.members += (directory / name for name in held if not is_broker_file(name))
        below = _below(found, listing, [directory / entry.name for entry in entries if entry.is_directory], depth + 1)
        for entry in entries:
            if entry.is_directory:
                inner = next(below)
                if inner is not None:
                    _visit(found, listing, inner, depth + 1)
            elif parse_partition_name(entry.name) is not None:
                _require_target(found, directory / entry.name)


def _below(found: _Discovery, listing: Listing, directories: Sequence[Uri], depth: int) -> Iterator[Listed | None]:
    """List directories; None for each that lies too deep."""
    if depth <= MAX_DEPTH:
        yield from listing.below(directories)
    else:
        for directory in directories:
            found.skipped.append(Unreadable(str(directory), f"deeper than {MAX_DEPTH} directories"))
            yield None


def _once(found: _Discovery, listed: Listed) -> Sequence[FileStatus]:
    """Return what a directory holds; nothing if it was visited before or cannot be listed."""
    if listed.identity is not None:
        if listed.identity in found.visited:
            found.revisits += 1
            return ()
        found.visited.add(listed.identity)
    if listed.error is not None:
        found.unreadable.append(Unreadable(str(listed.directory), failure(listed.error)))
    found.unreadable += listed.unreadable
    return listed.entries


def _take_directory(found: _Discovery, root: Uri, listed: Listed, held: Mapping[str, FileStatus]) -> bool:
    """Take a directory that is a partition's, or is set aside with its segments; return whether it was one of these."""
    directory = listed.directory
    segments = [file for file in held if segment_base_offset(file) is not None]
    name = parse_partition_name(directory.name)
    if name is not None and name.moved is not None and directory != root:  # else it is what was asked for
        _set_aside(found, root, listed, name, held)
        return True
    placed = (found.pattern and found.pattern.match(str(directory.absolute().path))) or name
    # a log directory may be called kafka-1
    is_log_directory = META_PROPERTIES in held or not OFFSET_CHECKPOINT_NAMES.isdisjoint(held)
    known = not is_log_directory and any(is_known_file(file) or leftover_kind(file) for file in held)
    if placed is not None and (segments or known):
        known_of_log = found.log_directories.of(directory.absolute().parent)
        found.partitions.append(_whole_partition(found, root, listed, placed, held, known_of_log))
        return True
    if segments:
        found.copies.append((listed, held))
    return bool(segments)


def _set_aside(
    found: _Discovery, root: Uri, listed: Listed, name: PartitionName, files: Mapping[str, FileStatus]
) -> None:
    """Take a directory that a broker has set aside: it is not audited, but may hold what no other copy does."""
    directory = listed.directory
    named = [(file, base) for file in sorted(files) if (base := segment_base_offset(file)) is not None]
    segments = [_segment(found, directory / file, base, files[file]) for file, base in named]
    known = found.log_directories.of(directory.absolute().parent)
    log = _partition(directory, name, [segment for segment in segments if segment is not None], known)
    found.leftover_files.append(
        LeftoverFile(
            relative=directory.relative_to(root),
            kind=name.moved or "",
            topic=name.topic,
            partition=name.partition,
            log_dir=str(directory.parent),
            log=replace(log, topic_id=_topic_id(listed.side_file)) if segments else None,
        )
    )


def _take_copy(found: _Discovery, root: Uri, listed: Listed, files: Mapping[str, FileStatus]) -> None:
    """Take a directory that is called otherwise than a partition's, and is none of the log directory that it may lie in."""
    name = copied_partition_name(listed.directory.name)
    partition = _whole_partition(found, root, listed, name, files, LogDirectory())
    found.partitions.append(replace(partition, log_dir=partition.directory, named=False))


def _whole_partition(  # noqa: PLR0913, PLR0917 - independent inputs
    found: _Discovery,
    root: Uri,
    listed: Listed,
    name: PartitionName,
    files: Mapping[str, FileStatus],
    known: LogDirectory,
) -> PartitionDirectory:
    directory = listed.directory
    segments: list[SegmentFile] = []
    leftover_files: list[LeftoverFile] = []
    side_files: list[SegmentFile] = []
    for file in sorted(files):
        base = segment_base_offset(file)
        if base is not None:
            segment = _segment(found, directory / file, base, files[file])
            if segment is not None:
                segments.append(segment)
            continue
        kind = leftover_kind(file)
        if kind is None and is_known_file(file):
            refused = len(found.unreadable)
            side_files += existing_files([(directory / file, files[file])], found.unreadable)
            if len(found.unreadable) > refused:  # it is there: nothing may call it missing
                side_files.append(SegmentFile(str(directory / file), file, 0, 0, 0))
            continue
        leftover = segment_base_offset(file.removesuffix(f".{kind}")) if kind else None
        leftover_files.append(
            LeftoverFile(
                relative=(directory / file).relative_to(root),
                kind=kind or "odd-name",
                topic=name.topic,
                partition=name.partition,
                log_dir=str(directory.parent),
                base_offset=leftover,
                segment_missing=leftover is not None and f"{leftover:020d}.log" not in files,
            )
        )
    return replace(
        _partition(directory, name, segments, known),
        relative=directory.relative_to(root),
        topic_id=_topic_id(listed.side_file),
        leftover_files=tuple(leftover_files),
        side_files=SideFiles.of(side_files),
        checkpoints=known.checkpoints,
    )


def _take_files(found: _Discovery, parent: Uri, files: Sequence[tuple[Uri, FileStatus, int]]) -> None:
    """Take segment files given one by one, with their base offsets: those of one directory are one partition."""
    segments: list[SegmentFile] = []
    for path, entry, base in sorted(set(files), key=lambda file: file[0].components()):
        segment = _segment(found, path, base, entry)
        if segment is not None:
            segments.append(segment)
    if not segments:
        return
    name = parse_partition_name(parent.name)
    known = found.log_directories.of(parent.parent) if name else LogDirectory()
    placed = (found.pattern and found.pattern.match(str(parent.path))) or name
    directory = _partition(parent, placed or copied_partition_name(parent.name), segments, known)
    found.partitions.append(replace(directory, whole_directory=False, named=placed is not None))


def _partition(
    directory: Uri, name: PartitionName, segments: Sequence[SegmentFile], log_directory: LogDirectory
) -> PartitionDirectory:
    key = (name.topic, name.partition)
    return PartitionDirectory(
        topic=name.topic,
        partition=name.partition,
        replica=name.replica,
        log_dir=str(directory.parent),
        directory=str(directory),
        relative="",
        segments=tuple(sorted(segments, key=lambda segment: segment.base_offset)),
        log_start_offset=log_directory.log_start.get(key),
        first_dirty_offset=log_directory.first_dirty.get(key),
        identity=log_directory.identity,
        has_checkpoints=log_directory.has_checkpoints,
        is_tiered=log_directory.is_tiered,
        is_captured=log_directory.is_captured,
        is_stopped=log_directory.is_stopped,
    )


def _require_target(found: _Discovery, link: Uri) -> None:
    """Report a link with a partition's name whose target is missing, for example on a disk that is not mounted."""
    try:
        filesystem(link).status(link)
    except OSError as error:
        found.unreadable.append(Unreadable(str(link), failure(error)))


def _segment(found: _Discovery, path: Uri, base_offset: int, entry: FileStatus) -> SegmentFile | None:
    try:
        return sized(path, base_offset, entry)
    except FileNotFoundError as error:
        log_start = removed_from_head(path)
        if log_start is None:
            found.unreadable.append(Unreadable(str(path), failure(error)))
        else:
            found.skipped.append(Unreadable(str(path), failure(SegmentRemovedError(str(path), log_start))))
    except OSError as error:
        found.unreadable.append(Unreadable(str(path), failure(error)))
    return None


def _topic_id(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return parse_partition_metadata(data).topic_id
    except WireError:
        return None
