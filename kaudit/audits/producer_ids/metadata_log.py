"""Reading __cluster_metadata: the blocks of producer ids a KRaft controller granted."""

from collections.abc import Iterator
from contextlib import closing

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.broker.producer_ids.block_history import BlockHistory, ProducerIdsRecord, from_records
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
from kaudit.model.limits import METADATA_GRANTS
from kaudit.reading.batch_content import batches_with, data_of
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.dump_text_content import printed_metadata
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory, SegmentFile, metadata_snapshots
from kaudit.source.text import SegmentText

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
