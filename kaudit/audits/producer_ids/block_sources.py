"""The sources of blocks of producer ids - ZooKeeper's files, saved lines, a metadata log - and what they say together.

Reading __cluster_metadata: the blocks of producer ids a KRaft controller granted.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.broker.producer_ids.allocation_rules import Coverage, Step, is_complete, next_block, replay
from kaudit.broker.producer_ids.block_history import (
    BlockHistory,
    ProducerIdsRecord,
    combine,
    from_lines,
    from_records,
    from_znode,
)
from kaudit.errors import UsageError
from kaudit.formats.errors import MissingContentError, WireError
from kaudit.formats.internal_topics.metadata_records import (
    PRODUCER_IDS_API_KEY,
    RECORD_VERSION,
    MetadataRecord,
    ProducerIds,
    parse_metadata_record,
)
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.records import read_records
from kaudit.formats.zookeeper.pid_block import (
    CLUSTER_ID_ZNODE,
    PRODUCER_ID_BLOCK_ZNODE,
    parse_cluster_id,
    parse_pid_block_lines,
)
from kaudit.model.limits import METADATA_GRANTS, METADATA_PROBLEMS
from kaudit.model.result import NotAudited
from kaudit.reading.batch_content import batches_with, data_of
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.dump_text_content import printed_metadata
from kaudit.reading.segment import ByteRange
from kaudit.source.discover import PathNotFoundError, discover
from kaudit.source.layout import CLUSTER_METADATA, PartitionDirectory, SegmentFile, metadata_snapshots
from kaudit.source.text import SegmentText
from kaudit.source.zookeeper import (
    SeveralDataDirectoriesError,
    ZnodeEvidence,
    ZooKeeperFiles,
    find_zookeeper_files,
    read_znode,
)

_MAX_BATCH = 64 << 20


class MetadataLog(Struct):
    """The grants of producer ids in one replica of the metadata log.

    `extent` is its first and last offset and `newest_ms` its newest timestamp, None when empty; `problems` and `unreadable` are (path, words) of what is
    damaged and of files the operating system refused.
    """

    history: BlockHistory = field(default_factory=BlockHistory)
    extent: tuple[int, int] | None = None
    problems: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    newest_ms: int | None = None
    older_grants: int = 0
    """Grants that are left out: there are METADATA_GRANTS newer ones."""

    def see(self, timestamp: int, first_offset: int, last_offset: int) -> None:
        """Take note of a batch or record, whatever it holds."""
        if timestamp >= 0 and (self.newest_ms is None or timestamp > self.newest_ms):
            self.newest_ms = timestamp
        self.extent = (self.extent[0] if self.extent else first_offset, last_offset)


def read_metadata_log(directory: PartitionDirectory, open_source: OpenSource) -> MetadataLog:
    """Read all ProducerIdsRecords of one replica; damage is listed and the rest is used.

    What the log no longer holds comes from its snapshots: the newest grant before each, its time unknown.
    """
    log = MetadataLog()
    records: list[ProducerIdsRecord] = []
    for segment in directory.segments:
        records += _records_of(segment, open_source, log)
    first = log.extent[0] if log.extent is not None else None
    records = [*_of_snapshots(directory, open_source, log, records, first), *records]
    log.older_grants = max(len(records) - METADATA_GRANTS, 0)
    records = records[log.older_grants :]
    log.history = from_records(records, directory.directory, log.newest_ms, log.extent[1] if log.extent else None)
    return log


def _of_snapshots(
    directory: PartitionDirectory,
    open_source: OpenSource,
    log: MetadataLog,
    logged: list[ProducerIdsRecord],
    first: int | None,
) -> Iterator[ProducerIdsRecord]:
    """Yield the grants that only snapshots hold. They were made before the log's first offset, `first`."""
    known = {_grant(record) for record in logged}
    for file in metadata_snapshots(directory):
        aside = MetadataLog()
        for record in _records_of(replace(file, base_offset=0), open_source, aside):
            if _grant(record) not in known:
                known.add(_grant(record))
                end = file.base_offset if first is None else min(first, file.base_offset)
                # a snapshot's records count from 0, and its time is that of the newest record it holds
                yield replace(record, offset=max(end - 1, 0), timestamp=None)
        log.problems += aside.problems
        log.unreadable += aside.unreadable


def _grant(record: ProducerIdsRecord) -> tuple[int, int, int]:
    return record.broker_id, record.broker_epoch, record.next_producer_id


def _records_of(segment: SegmentFile, open_source: OpenSource, log: MetadataLog) -> list[ProducerIdsRecord]:
    found: list[ProducerIdsRecord] = []
    try:
        found.extend(_segment_records(segment, open_source, log))
    except OSError as error:
        log.unreadable.append((segment.path, error.strerror or type(error).__name__))
    return found


def _segment_records(segment: SegmentFile, open_source: OpenSource, log: MetadataLog) -> Iterator[ProducerIdsRecord]:
    with closing(open_source(segment)) as source:
        if isinstance(source, SegmentText):
            yield from _printed(source, segment, log)
            return
        for piece in stream_batches(
            source, ByteRange(0, segment.size, segment.size), expected_offset=segment.base_offset
        ):
            log.problems += [(segment.path, f"byte {damage.position}: {damage.detail}") for damage in piece.damages]
            batches = piece.batches[(piece.batches["magic"] >= CURRENT_MAGIC) & (piece.batches["size"] <= _MAX_BATCH)]
            if len(batches):
                newest, base_offsets = int(batches["max_timestamp"].max()), batches["base_offset"]
                log.see(newest, int(base_offsets[0]), int(base_offsets[-1] + batches["last_offset_delta"][-1]))
            # damage of other records says nothing about the blocks
            data = data_of(batches, _MAX_BATCH)
            for position, content in batches_with(PRODUCER_IDS_API_KEY, RECORD_VERSION, data, source):
                yield from _decode(content, segment, position, log)


def _printed(source: SegmentText, segment: SegmentFile, log: MetadataLog) -> Iterator[ProducerIdsRecord]:
    try:
        for offset, timestamp, content in printed_metadata(source):
            log.see(timestamp, offset, offset)
            if content is not None:
                yield from _granted(offset, timestamp, content)
    except (MissingContentError, WireError) as error:
        log.unreadable.append((segment.path, f"{error}; --cluster-metadata-decoder prints the records"))


def _decode(data: memoryview, segment: SegmentFile, position: int, log: MetadataLog) -> Iterator[ProducerIdsRecord]:
    try:
        for record in read_records(data):
            yield from _granted(record.offset, record.timestamp, parse_metadata_record(record.value))
    except WireError as error:
        log.problems.append((segment.path, f"byte {position}: {error}"))


def _granted(offset: int, timestamp: int, record: MetadataRecord) -> Iterator[ProducerIdsRecord]:
    ids = record.content
    if isinstance(ids, ProducerIds):
        yield ProducerIdsRecord(offset, timestamp, ids.broker_id, ids.broker_epoch, ids.next_producer_id)


_COMPRESSED = (".gz", ".snappy")
_MAX_BAD_LINES = 20


class BlockSource(Struct):
    """The blocks from one source. `cluster` is the id of its cluster, empty where unknown; `extent` as in MetadataLog."""

    origin: str
    history: BlockHistory = field(default_factory=BlockHistory)
    cluster: str = ""
    extent: tuple[int, int] | None = None
    notes: list[NotAudited] = field(default_factory=list)


class ClusterBlocks(Struct, frozen=True):
    """One cluster's blocks. `origin` names the sources; `following` is the block the next broker will get."""

    origin: str
    history: BlockHistory
    steps: list[Step]
    coverage: Coverage
    complete: bool
    following: tuple[int, int] | None


def combined_blocks(sources: Sequence[BlockSource]) -> ClusterBlocks | None:
    """Return what these sources say together, None if none of them has a block."""
    history = combine([source.history for source in sources])
    if not history.entries:
        return None
    steps = replay(history)
    origin = ", ".join(dict.fromkeys(source.origin for source in sources if source.history.entries))
    return ClusterBlocks(origin, history, steps, Coverage(steps), is_complete(steps), next_block(history))


def read_named_zookeeper(directory: str) -> list[BlockSource]:
    """Read the data directory a user named.

    Raises:
        UsageError: it does not exist, holds no log or snapshot, or several ensembles or clusters.

    """
    place = Path(directory)
    if not place.is_dir():
        raise UsageError(f"--zookeeper {directory}: no such directory")
    try:
        files = find_zookeeper_files(place)
    except SeveralDataDirectoriesError as error:
        raise UsageError(f"--zookeeper {directory}: {error}") from error
    except OSError as error:
        raise UsageError(f"--zookeeper {directory}: {error.strerror}") from error
    if not files.logs and not files.snapshots:
        raise UsageError(
            f"--zookeeper {directory}: no ZooKeeper log or snapshot there; name the data directory (dataDir) or its version-2"
        )
    sources = read_zookeeper(files)
    if len([source for source in sources if source.history.entries]) > 1:
        paths = ", ".join(source.origin for source in sources)
        raise UsageError(
            f"--zookeeper {directory}: several clusters use this ensemble, kaudit cannot know which: {paths}"
        )
    return sources


def read_zookeeper(files: ZooKeeperFiles) -> list[BlockSource]:
    """Read the block history of every cluster that uses the ensemble: one, unless several have a chroot each."""
    evidence = read_znode(files, PRODUCER_ID_BLOCK_ZNODE)
    clusters = {
        path.removesuffix(CLUSTER_ID_ZNODE): parse_cluster_id(sightings[-1].change.data)
        for path, sightings in read_znode(files, CLUSTER_ID_ZNODE).sightings.items()
    }
    notes = _notes(files, evidence)
    sources: list[BlockSource] = []
    for path, sightings in evidence.sightings.items():
        changes = ((sighting.change, str(sighting.file)) for sighting in sightings)
        folder = (files.logs or files.snapshots)[0].parent
        sources.append(
            BlockSource(
                f"{folder}{path}",
                from_znode(changes, evidence.observed_until_ms, evidence.last_zxid),
                clusters.get(path.removesuffix(PRODUCER_ID_BLOCK_ZNODE)) or "",
                notes=notes,
            )
        )
        notes = []
    if not sources:
        folder = (files.logs or files.snapshots)[0].parent
        reason = f"no znode {PRODUCER_ID_BLOCK_ZNODE} in it: producer ids are not compared with their blocks"
        sources.append(BlockSource(str(folder), notes=[*notes, NotAudited(str(folder), reason)]))
    return sources


def _notes(files: ZooKeeperFiles, evidence: ZnodeEvidence) -> list[NotAudited]:
    notes = [NotAudited(str(path), words, unreadable=True) for path, words in evidence.unreadable]
    notes += [
        NotAudited(str(found.file), f"byte {found.damage.position}: {found.damage.detail}")
        for found in evidence.damages
    ]
    notes += [
        NotAudited(
            str(other.file),
            f"byte {other.change.position}: contradicts {used.file.name} on transaction {used.change.zxid:#x}",
        )
        for used, other in evidence.conflicts
    ]
    notes += [
        NotAudited(str(files.logs[0].parent), f"transactions between {last:#x} and {following:#x} are in no log")
        for last, following in evidence.gaps
    ]
    if not files.logs:
        reason = "no transaction log: only the block current at each snapshot is known"
        notes.append(NotAudited(str(files.snapshots[0].parent), reason))
    notes += [
        NotAudited(str(path), "a compressed snapshot, not read")
        for path in files.unknown
        if path.name.startswith("snapshot.") and path.name.endswith(_COMPRESSED)
    ]
    return notes


def read_lines(file: str) -> BlockSource:
    """Read values or answers saved by hand, one JSON object a line.

    Raises:
        UsageError: the file cannot be read, or no line of it names a block.

    """
    try:
        with Path(file).open(encoding="utf-8", errors="replace") as lines:
            history, bad = from_lines(parse_pid_block_lines(lines), file)
    except OSError as error:
        raise UsageError(f"--blocks {file}: {error.strerror}") from error
    if not history.entries:
        why = f"line {bad[0].number}: {bad[0].reason}" if bad else "the file is empty"
        raise UsageError(f"--blocks {file}: no line names a block of producer ids ({why})")
    notes = [NotAudited(f"{file}:{line.number}", line.reason) for line in bad[:_MAX_BAD_LINES]]
    if len(bad) > _MAX_BAD_LINES:
        notes.append(NotAudited(file, f"{len(bad) - _MAX_BAD_LINES} more lines name no block"))
    return BlockSource(file, history, notes=notes)


def named_metadata(directory: str) -> Sequence[PartitionDirectory]:
    """Return the metadata logs under a directory a user named: replicas of one cluster's.

    Raises:
        UsageError: it does not exist or holds no segment of __cluster_metadata.

    """
    try:
        layout = discover([directory])
    except PathNotFoundError as error:
        raise UsageError(f"--metadata {directory}: no such directory") from error
    found = [part for part in layout.partitions if part.topic == CLUSTER_METADATA and part.segments]
    if not found:
        raise UsageError(f"--metadata {directory}: no segment of {CLUSTER_METADATA}-0 there")
    return found


def read_metadata(directory: PartitionDirectory, open_source: OpenSource) -> BlockSource:
    """Read one replica of the metadata log."""
    log = read_metadata_log(directory, open_source)
    notes = [NotAudited(path, words, unreadable=True) for path, words in log.unreadable]
    notes += [NotAudited(path, f"producer id blocks: {words}") for path, words in log.problems[:METADATA_PROBLEMS]]
    if (more := len(log.problems) - METADATA_PROBLEMS) > 0:
        notes.append(NotAudited(directory.directory, f"producer id blocks: {more:,} more damaged places"))
    if log.older_grants:
        notes.append(
            NotAudited(
                directory.directory,
                f"producer id blocks: the newest {METADATA_GRANTS:,} are used, {log.older_grants:,} older ones are not",
            )
        )
    return BlockSource(directory.directory, log.history, extent=log.extent, notes=notes)
