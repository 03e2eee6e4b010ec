"""The rows that `kaudit inspect` shows for a path: those of a file, one per file of a directory, or all batches under it.

Logs of brokers and of applications with a Kafka client as rows: one for each event.
"""

import heapq
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.audits.log_events.application_logs import log_events
from kaudit.broker.releases.version import Version
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.formats.log.records import DEFAULT_LIMIT
from kaudit.inspect.batch_rows import MAX_BATCH_BYTES, record_rows
from kaudit.inspect.dump_text import dump_rows
from kaudit.inspect.fields import field_rows
from kaudit.inspect.internal_topics import CONTENT_TOPICS
from kaudit.inspect.row_filter import RowFilter, around
from kaudit.inspect.rows import BytesFormatter, LogFile, Row, fields_of, identify, identify_by_name
from kaudit.inspect.segment import SegmentReader, fetched_files, without_places
from kaudit.inspect.side_files import side_rows
from kaudit.model.application_logs import LogEvent
from kaudit.model.batch import last_offsets
from kaudit.model.damage import DamageKind
from kaudit.source.content import HEAD_BYTES
from kaudit.source.discover import MAX_DEPTH, PathNotFoundError, discover
from kaudit.source.file_kinds import APPLICATION_LOG, DUMP, OFFSET_CHECKPOINT, UNKNOWN
from kaudit.source.filesystem import FileStatus
from kaudit.source.inspect_columns import INSPECT_TABLES
from kaudit.source.kafka.options import ClusterOptions
from kaudit.source.layout import PartitionDirectory, Unreadable
from kaudit.source.recognition import recognise
from kaudit.source.schemes import archive_at, content_of, filesystem
from kaudit.source.uri import KAFKA, Uri, UrlError

_FIELDS = (
    "line", "origin", "client", "level", "producer_id", "producer_epoch", "base_sequence", "last_sequence", "offset",
    "leader_epoch", "transactional_id", "error", "text",
)  # fmt: skip


def event_rows(file: LogFile) -> Iterator[Row]:
    """Yield the events in the order of their lines, with topic and partition as the log has them. Raises OSError if it cannot be read."""
    head = filesystem(file.path).read_start(file.path, HEAD_BYTES)
    origins = recognise(file.path.name, head).origins
    found = (log_events(str(file.path), origin, LogCounts()) for origin in origins)
    before = 0
    for event in heapq.merge(*found, key=lambda event: event.line):
        if event.line != before:  # a broker's and a client's messages may fit one line
            yield _row(file, event)
        before = event.line


def _row(file: LogFile, event: LogEvent) -> Row:
    stated = {
        "topic": event.topic,
        "partition": event.partition,
        "timestamp": event.timestamp_ms,
        "event": event.event.value,
    }
    return file.side_row("event") | stated | fields_of(event, _FIELDS)


UNREADABLE = "unreadable"
"""Kind of the damage row of a file, and status of a file row, that the operating system refused to read."""


class InspectOptions(Struct, frozen=True):
    """The selection. `topic` and `partition` name batches whose directory does not; offsets and positions in bytes.

    `version`: of the broker that would load the damage, any if None.
    """

    paths: Sequence[str]
    records: bool = False
    texts: BytesFormatter = field(default_factory=BytesFormatter)
    wanted: RowFilter = field(default_factory=RowFilter)
    around: int | None = None
    at: int | None = None
    topic: str | None = None
    partition: int | None = None
    limit: int = DEFAULT_LIMIT
    version: Version | None = None
    cluster: ClusterOptions = ClusterOptions()

    @property
    def selective(self) -> bool:
        """Whether batches were asked for rather than a list of files."""
        return self.records or self.around is not None or self.wanted.active


def inspect_rows(options: InspectOptions, *, batches: bool) -> Iterator[Row]:
    """Yield the rows of all paths; `batches` shows a directory's batches instead of its files.

    Raises:
        UsageError: a path does not exist, or --at does not fit it.
        NothingToAuditError: a directory holds no Kafka files.
        OSError: a file named on the command line cannot be read.

    """
    places = [_location(path) for path in options.paths]
    on_brokers = [place for place in places if place.scheme == KAFKA]
    if on_brokers and options.at is not None:
        raise UsageError(f"--at {options.at}: brokers name no positions; --around OFFSET shows a batch")
    files = [file for file in places if file.scheme != KAFKA]
    for file in files:
        yield from _refused_in_archive(file)
    found = [(file, _status(file)) for file in map(content_of, files)]
    for file, entry in found:
        if options.at is not None and entry.is_directory:
            raise UsageError(f"--at needs one file, {file} is a directory")
    for place in on_brokers:
        yield from _batches_on_brokers(place, options)
    for file, entry in found:
        if entry.is_directory:
            yield from _batches_under(file, options) if batches or options.selective else _files_under(file)
        else:
            yield from _file(identify(file).named(options.topic, options.partition), options)


def _batches_on_brokers(place: Uri, options: InspectOptions) -> Iterator[Row]:
    wanted = options.wanted
    cluster = replace(
        options.cluster,
        from_offset=wanted.first_offset,
        to_offset=None if wanted.last_offset is None else wanted.last_offset + 1,
    )
    try:
        files = list(fetched_files(place, cluster, options.around))
    except UrlError as error:
        raise UsageError(str(error)) from error
    for file in files:
        yield from without_places(_batches([file], options))


def _location(text: str) -> Uri:
    try:
        return Uri.parse(text)
    except UrlError as error:
        raise UsageError(str(error)) from error


def _status(file: Uri) -> FileStatus:
    try:
        return filesystem(file).status(file)
    except FileNotFoundError as error:
        raise UsageError(f"no such file or directory: {file}") from error
    except UrlError as error:
        raise UsageError(str(error)) from error


def _refused_in_archive(file: Uri) -> Iterator[Row]:
    _status(file)  # or it is not there
    archive = archive_at(file)
    for refused in archive.refused if archive is not None else ():
        yield {"row": "damage", "file": refused.path, "kind": UNREADABLE, "detail": refused.reason}


def _files_under(root: Uri) -> Iterator[Row]:
    replicas = {entry.directory: entry.replica for entry in discover([str(root)]).partitions}
    found = False
    for file in _tree(root, set()):
        found = True
        if isinstance(file, Unreadable):
            yield {"row": "damage", "file": file.path, "kind": UNREADABLE, "detail": file.reason}
        else:
            yield _file_row(file, replicas.get(str(file.parent)), file.relative_to(root))
    if not found:
        raise NothingToAuditError(f"nothing to inspect under {root}: it holds no files")


def _file_row(path: Uri, replica: str | None, name: str) -> Row:
    try:
        return file_row(identify(path, replica), name)
    except OSError as error:
        return file_row(identify_by_name(path, replica), name) | {
            "status": UNREADABLE,
            "detail": error.strerror or type(error).__name__,
        }


def _tree(directory: Uri, seen: set[Hashable], depth: int = 0) -> Iterator[Uri | Unreadable]:
    """Every file under a directory by name, its own before those of directories in it; each directory once."""
    if depth > MAX_DEPTH:
        yield Unreadable(str(directory), f"deeper than {MAX_DEPTH} directories")
        return
    try:
        identity = filesystem(directory).identity(directory)
        entries = [] if identity in seen else filesystem(directory).entries(directory)
    except FileNotFoundError:
        return  # a broker may delete a partition meanwhile
    except OSError as error:
        yield Unreadable(str(directory), error.strerror or type(error).__name__)
        return
    seen.add(identity)
    for entry in entries:
        if not entry.is_directory:
            yield directory / entry.name
    for entry in entries:
        if entry.is_directory:
            yield from _tree(directory / entry.name, seen, depth + 1)


def _batches_under(root: Uri, options: InspectOptions) -> Iterator[Row]:
    try:
        layout = discover([str(root)])
    except PathNotFoundError as error:
        raise UsageError(f"no such file or directory: {error}") from error
    chosen = [
        entry
        for entry in (_named(entry, options) for entry in layout.partitions)
        if (options.topic is None or entry.topic == options.topic)
        and (options.partition is None or entry.partition == options.partition)
    ]
    texts = {segment.path for entry in chosen for segment in entry.segments if segment.text is not None}
    lines = sorted(texts) or ([] if chosen else [log.path for log in layout.logs])
    if not (chosen or lines):
        raise NothingToAuditError(f"nothing to inspect under {root}: no partition with segments was found")
    for path in lines:
        yield from _file(identify(Uri.parse(path)).named(options.topic, options.partition), options)
    for entry in chosen:
        if entry.segments and entry.segments[0].text is not None:
            continue  # of a text
        known = (None, None) if entry.named else (entry.topic, entry.partition)
        places = [identify(Uri.parse(segment.path), entry.replica).named(*known) for segment in entry.segments]
        if options.around is not None:
            places = _near(places, options.around)
        yield from _batches(places, options)


def _named(entry: PartitionDirectory, options: InspectOptions) -> PartitionDirectory:
    """Give a partition that no name places the topic and partition asked for."""
    if entry.named:
        return entry
    topic = entry.topic if options.topic is None else options.topic
    return replace(entry, topic=topic, partition=entry.partition if options.partition is None else options.partition)


def _near(places: Sequence[LogFile], offset: int) -> list[LogFile]:
    """The segment that holds `offset`, and one on each side for its neighbours."""
    holding = sum(1 for file in places if file.base_offset is not None and file.base_offset <= offset) - 1
    return list(places[max(holding - 1, 0) : max(holding, 0) + 2])


def _file(file: LogFile, options: InspectOptions) -> Iterator[Row]:
    if options.at is not None:
        if not file.kind.holds_batches:
            raise UsageError(f"--at shows batch headers, {file.path} is not a segment ({file.kind.name})")
        with SegmentReader(file, options.version) as segment:
            if not 0 <= options.at < segment.size:
                raise UsageError(f"--at {options.at}: {file.path} has {segment.size} bytes")
            yield from field_rows(segment, options.at)
        return
    if file.kind.holds_batches:
        yield from _batches([file], options)
        return
    if file.kind is UNKNOWN:
        raise NothingToAuditError(f"{file.path}: not a recognised Kafka file, by name or content")
    if file.kind is APPLICATION_LOG:
        yield from (row for row in event_rows(file) if options.wanted.accepts(row))
        return
    if file.kind is DUMP:
        rows = dump_rows(file, options.texts, records=options.records)
        chosen = _around_each(rows, options.around) if options.around is not None else rows
        yield from (row for row in chosen if options.wanted.accepts(row))
        return
    yield from (row for row in side_rows(file, options.version) if options.wanted.accepts(row))


def _around_each(rows: Iterable[Row], offset: int) -> Iterator[Row]:
    for _, group in groupby(rows, key=lambda row: (row["topic"], row["partition"], row["segment"])):
        yield from around(group, offset)


def _batches(places: Sequence[LogFile], options: InspectOptions) -> Iterator[Row]:
    """Yield the rows of consecutive segments as one stream."""
    if options.around is None:
        for file in places:
            try:
                with SegmentReader(file, options.version) as segment:
                    for row in segment.rows(_batch_filter(file, options)):
                        yield from _expanded(row, segment, options)
            except OSError as error:
                if len(places) == 1:
                    raise
                yield _unreadable(file, error)
        return
    by_name = {file.segment: file for file in places}
    for row in around(_rows_of(places, options), options.around):
        with SegmentReader(by_name[str(row["segment"])], options.version) as segment:
            yield from _expanded(row, segment, options)


def _batch_filter(file: LogFile, options: InspectOptions) -> RowFilter:
    filtered_by_record = options.records and file.topic in CONTENT_TOPICS
    return options.wanted.of_batches_only() if filtered_by_record else options.wanted


def _rows_of(places: Sequence[LogFile], options: InspectOptions) -> Iterator[Row]:
    for file in places:
        with SegmentReader(file, options.version) as segment:
            yield from segment.rows(options.wanted)


def _unreadable(file: LogFile, error: OSError) -> Row:
    return file.side_row("damage", kind=UNREADABLE, detail=error.strerror or type(error).__name__)


def _expanded(row: Row, segment: SegmentReader, options: InspectOptions) -> Iterator[Row]:
    """Yield the batch itself, and its records if they are asked for."""
    filtered_by_record = options.records and segment.file.topic in CONTENT_TOPICS
    if not filtered_by_record or options.wanted.accepts(row):
        yield row
    if not options.records or row["row"] != "batch":
        return
    position, size = row["position"], row["size"]
    assert isinstance(position, int)
    assert isinstance(size, int)
    raw = segment.read(position, min(size, MAX_BATCH_BYTES))
    for record in record_rows(raw, row, segment.file, options.texts, options.limit):
        if record["row"] == "damage" or options.around is not None or options.wanted.accepts(record):
            yield record


def file_row(file: LogFile, name: str) -> Row:
    """Return the row of one file, called `name`; a file that cannot be read has status `unreadable`.

    `status` is ok, empty, zero-tail (zeros to the end: preallocated), damaged, unreadable or unknown; `detail` describes
    the first damage; `entries` counts batches or rows.
    """
    row: Row = {"row": "file"} | dict.fromkeys(INSPECT_TABLES["file"])
    row |= fields_of(file, ("leftover", "topic", "partition", "replica"))
    row |= {"file": name, "kind": file.kind.name, "status": "ok"}
    try:
        row["size"] = filesystem(file.path).status(file.path).size
        if file.kind.holds_batches:
            row |= _covered_by_batches(file)
        elif file.kind in (UNKNOWN, DUMP, APPLICATION_LOG):
            row["status"] = "unknown" if file.kind is UNKNOWN else "ok"
        else:
            row |= _covered_by_rows(file)
    except OSError as error:
        return row | {"status": "unreadable", "detail": error.strerror or type(error).__name__}
    if row["size"] == 0 and row["status"] == "ok":
        row["status"] = "empty"
    return row


def _covered_by_batches(file: LogFile) -> Row:
    first: int | None = None
    last: int | None = None
    entries = 0
    kinds: list[DamageKind] = []
    detail: str | None = None
    with SegmentReader(file) as segment:
        for piece in segment.pieces():
            if len(piece.batches):
                first = int(piece.batches["base_offset"][0]) if first is None else first
                last = int(last_offsets(piece.batches)[-1])
                entries += len(piece.batches)
            for damage in piece.damages:
                zeros_to_end = damage.kind is DamageKind.ZEROS and damage.end == segment.size
                kinds += [] if zeros_to_end else [damage.kind]
                detail = detail or f"byte {damage.position}: {damage.detail}"
    status = "damaged" if kinds else "zero-tail" if detail else "ok"
    return {"first_offset": first, "last_offset": last, "entries": entries, "status": status, "detail": detail}


def _covered_by_rows(file: LogFile) -> Row:
    first: int | None = None
    last: int | None = None
    entries = 0
    detail: str | None = None
    for row in side_rows(file):
        if row["row"] == "damage":
            detail = detail or f"byte {row['position']}: {row['detail']}"
            continue
        entries += 1
        if file.kind is OFFSET_CHECKPOINT:
            continue  # its offsets belong to many partitions
        low, high = row.get("first_offset", row.get("offset")), row.get("last_offset", row.get("offset"))
        if isinstance(low, int) and isinstance(high, int):
            first = low if first is None else min(first, low)
            last = high if last is None else max(last, high)
    status = "damaged" if detail else "ok"
    return {"first_offset": first, "last_offset": last, "entries": entries, "status": status, "detail": detail}
