"""Reading __consumer_offsets, __share_group_state and __remote_log_metadata: one pass over each partition, record by record.

A group and all it commits lie in one partition (GroupMetadataManager.partitionFor), and so does all of a partition's remote
log (RemoteLogMetadataTopicPartitioner), so partitions are read apart from one another.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from struct import Struct as Layout
from typing import Any, Protocol, cast

from msgspec import Struct, field

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.dump_text.record_content import parse_printed_state
from kaudit.formats.dump_text.rows import DumpRecord
from kaudit.formats.errors import MissingContentError, WireError
from kaudit.formats.internal_topics.record_schemas import InternalRecord, parse_internal_record, parse_keyed_record
from kaudit.formats.log.records import read_records
from kaudit.model.batch import Batches
from kaudit.model.batch_fields import (
    ABORT_MARKER,
    COMMIT_MARKER,
    CONTROL_FLAG,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
)
from kaudit.model.internal_topics import GROUPS, SHARE_STATE
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.content_rows import read_batch
from kaudit.reading.dump_text_content import dump_text_records, is_data
from kaudit.reading.segment import ByteRange
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import PartitionDirectory, SegmentFile, Unreadable
from kaudit.source.listing import failure
from kaudit.source.text import SegmentText

_MOST_NOTES = 20
"""Undecodable records listed of one reader."""
_MOST_KEYS = 1 << 16
"""Keys of commits whose decoded form is kept."""
_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Commits name their topic's id since 4.1."""

CommitKey = tuple[str, str, int]
"""Group, topic and partition of a commit."""


class CommitRecord(Struct, frozen=True, gc=False):
    """A record OffsetCommit, at `offset` of its partition of __consumer_offsets.

    `timestamp`: when the coordinator wrote it, ms; `coordinator_epoch`: the leader epoch of its batch. `producer_id` and
    `producer_epoch` are those of the transaction that it is in, -1 outside of one. `committed` is None for a tombstone: the
    offset expired or was deleted. `leader_epoch` is that of the last record consumed, -1 where it is not known; `topic_id` is
    None where the commit names none.
    """

    offset: int
    timestamp: int
    coordinator_epoch: int
    producer_id: int
    producer_epoch: int
    key: CommitKey
    committed: int | None
    leader_epoch: int = -1
    topic_id: str | None = None


class TransactionEnd(Struct, frozen=True, gc=False):
    """A marker, at `offset`: the commits of this producer since its last one count if `commits`, else they never do."""

    offset: int
    timestamp: int
    producer_id: int
    producer_epoch: int
    commits: bool


class GroupRecord(Struct, frozen=True, gc=False):
    """Any other record, at `offset`: of a group, its members and their assignments, of a share group's state, or of a remote segment."""

    offset: int
    timestamp: int
    coordinator_epoch: int
    record: InternalRecord


class MissingRecords(Struct, frozen=True, gc=False):
    """No record has these offsets (inclusive): compaction removed them, or damage did. What was in them is not known."""

    first: int
    last: int


GroupLogEntry = CommitRecord | TransactionEnd | GroupRecord | MissingRecords


class Follower(Protocol):
    """Takes the entries of one partition, in the order of their offsets."""

    def take(self, entry: GroupLogEntry, /) -> None:
        """Take the next entry."""


class GroupLogReader(Struct, frozen=True):
    """Reads partitions, each once from front to back, in the memory of one window of it.

    `unreadable`: what could not be decoded, and where; `failed`: files that could not be read.
    """

    open_source: OpenSource
    unreadable: list[str] = field(default_factory=list)
    failed: list[Unreadable] = field(default_factory=list)

    def follow(self, directory: PartitionDirectory, followers: Sequence[Follower]) -> None:
        """Give each follower all entries of a partition."""
        takers = [follower.take for follower in followers]
        for entry in self.entries(directory):
            for take in takers:
                take(entry)

    def entries(self, directory: PartitionDirectory) -> Iterator[GroupLogEntry]:
        """Yield the entries of a partition in order. Where a batch cannot be decoded, its offsets are MissingRecords."""
        expected = 0
        for segment in directory.segments:
            try:
                for first, last, found in self._batches(directory, segment):
                    if first > expected:
                        yield MissingRecords(expected, first - 1)
                    yield from found
                    expected = max(expected, last + 1)
            except OSError as error:
                self.failed.append(Unreadable(segment.path, failure(error)))

    def _batches(
        self, directory: PartitionDirectory, segment: SegmentFile
    ) -> Iterator[tuple[int, int, Iterable[GroupLogEntry]]]:
        """Yield the first and the last offset of each batch, or of part of one, and its entries."""
        with closing(self.open_source(segment)) as source:
            if isinstance(source, SegmentText):
                yield from self._printed(directory, segment, source)
                return
            for piece in stream_batches(source, ByteRange(0, segment.size, segment.size), expected_offset=None):
                for header in _headers(piece.batches):
                    entries: list[GroupLogEntry] = []
                    try:
                        entries += self._decode(directory, source, header)
                    except (WireError, ValueError) as error:
                        self._note(f"{directory.name} at offset {header.base_offset}: {error}")
                    yield from _without_gaps(header, entries)

    def _printed(
        self, directory: PartitionDirectory, segment: SegmentFile, source: SegmentText
    ) -> Iterator[tuple[int, int, Iterable[GroupLogEntry]]]:
        """Yield the same of the lines that kafka-dump-log printed, each record by itself."""
        option = _DECODERS.get(directory.topic)
        if option is None:
            self._note(f"{segment.path}: records are not read from texts of kafka-dump-log")
            return
        try:
            for row in dump_text_records(source):
                try:
                    entry = _printed_entry(directory.topic, row)
                except WireError as error:
                    self._note(f"{segment.path}, line {row.line}: {error}; {option} prints the records")
                    continue
                yield row.offset, row.offset, () if entry is None else (entry,)
        except MissingContentError as error:
            self._note(f"{segment.path}: {error}; {option} prints the records")

    def _decode(self, directory: PartitionDirectory, source: ByteSource, header: "_Header") -> Iterator[GroupLogEntry]:
        """Yield the entries of one batch. Raises WireError where it is broken, ValueError where it cannot be read."""
        if header.attributes & CONTROL_FLAG:
            if header.control_type in _MARKERS:
                yield TransactionEnd(
                    header.base_offset,
                    header.max_timestamp,
                    header.producer_id,
                    header.producer_epoch,
                    header.control_type == COMMIT_MARKER,
                )
            return
        producer = (NO_PRODUCER_ID, -1)
        if header.attributes & TRANSACTIONAL_FLAG:
            producer = header.producer_id, header.producer_epoch
        for record in read_records(read_batch(source, header.position, header.size)):
            key, value = record.key, record.value
            place = record.offset, record.timestamp, header.leader_epoch
            try:
                known = None if key is None or directory.topic != GROUPS else _commit_key(key)
                if key is None or known is None:
                    yield GroupRecord(*place, parse_internal_record(directory.topic, key, value))
                else:
                    content = (None,) if value is None else _commit_value(key, value)
                    yield CommitRecord(*place, *producer, known, *content)
            except WireError as error:  # of a release to come, for instance: the others can be read
                self._note(f"{directory.name} at offset {record.offset}: {error}")

    def _note(self, text: str) -> None:
        if len(self.unreadable) < _MOST_NOTES:
            self.unreadable.append(text)


_DECODERS = {GROUPS: "--offsets-decoder", SHARE_STATE: "--share-group-state-decoder"}


def _printed_entry(topic: str, row: DumpRecord) -> GroupLogEntry | None:
    timestamp, leader_epoch = NO_TIMESTAMP if row.timestamp is None else row.timestamp, row.leader_epoch or 0
    producer_id = NO_PRODUCER_ID if row.producer_id is None else row.producer_id
    producer = producer_id, -1 if row.producer_epoch is None else row.producer_epoch
    if not is_data(row):
        is_end = row.end_marker is not None
        return TransactionEnd(row.offset, timestamp, *producer, row.end_marker == "COMMIT") if is_end else None
    record = parse_printed_state(topic, row.key, row.payload)
    place = row.offset, timestamp, leader_epoch
    if topic != GROUPS or record.name != "OffsetCommit":
        return GroupRecord(*place, record)
    key, value = cast("dict[str, Any]", record.key), cast("dict[str, Any] | None", record.value)
    known = key["group"], key["topic"], key["partition"]
    by = producer if row.is_transactional else (NO_PRODUCER_ID, -1)
    return CommitRecord(*place, *by, known, *((None,) if value is None else _content(value)))


_MARKERS = (ABORT_MARKER, COMMIT_MARKER)


class _Header(Struct, frozen=True, gc=False):
    position: int
    size: int
    base_offset: int
    last_offset_delta: int
    leader_epoch: int
    attributes: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    control_type: int


def _headers(batches: Batches) -> Iterator[_Header]:
    """Yield the batches of magic 2: every release with groups in __consumer_offsets that speak of producers writes these."""
    chosen = batches[batches["magic"] >= 2]
    columns = (chosen[name].tolist() for name in _Header.__struct_fields__)
    return map(_Header, *columns)


def _without_gaps(
    header: _Header, entries: Sequence[GroupLogEntry]
) -> Iterator[tuple[int, int, Sequence[GroupLogEntry]]]:
    """Cut a batch where compaction removed records of it."""
    first, last = header.base_offset, header.base_offset + max(header.last_offset_delta, 0)
    if len(entries) == last - first + 1:
        yield first, last, entries
        return
    for entry in entries:
        assert not isinstance(entry, MissingRecords)
        yield entry.offset, entry.offset, (entry,)


_keys: dict[bytes, CommitKey] = {}
_KEY_TYPES = (b"\0\0", b"\0\1")


def _commit_key(key: bytes) -> CommitKey | None:
    """Return the key of a commit, None for other records. The same few keys come again and again."""
    known = _keys.get(key)
    if known is None and key[:2] in _KEY_TYPES:
        own = cast("dict[str, Any]", parse_keyed_record(GROUPS, key, None).key)
        if len(_keys) >= _MOST_KEYS:
            _keys.clear()
        known = _keys[key] = own["group"], own["topic"], own["partition"]
    return known


_FIXED = Layout(">hq")
_WITH_EPOCH = Layout(">hqih")
_EPOCH_VERSION = 3
_FLEXIBLE_VERSION = 4
_TIME_BYTES = 8
_TAGGED_ID = b"\1\0\x10"
"""One tagged field, of tag 0 and 16 bytes: the topic's id."""


def _commit_value(key: bytes, value: Buffer) -> tuple[int, int, str | None]:
    """Return a value's offset, leader epoch and topic id. Those that brokers write now are taken apart here, others by the schema."""
    size = len(value)
    if size >= _WITH_EPOCH.size:
        version, offset, epoch, length = _WITH_EPOCH.unpack_from(value)
        if version == _EPOCH_VERSION and size == _WITH_EPOCH.size + length + _TIME_BYTES:
            return offset, epoch, None
        if version == _FLEXIBLE_VERSION and 0 < (length := value[14]) < 0x80:
            tags = bytes(value[14 + length + _TIME_BYTES :])
            if tags == b"\0":
                return offset, epoch, None
            if tags[:3] == _TAGGED_ID and len(tags) == len(_TAGGED_ID) + 16:
                return offset, epoch, _topic_id(base64.urlsafe_b64encode(tags[3:]).decode().rstrip("="))
    return _content(cast("dict[str, Any]", parse_keyed_record(GROUPS, key, value).value))


def _content(value: Mapping[str, Any]) -> tuple[int, int, str | None]:
    return value["offset"], value.get("leaderEpoch", -1), _topic_id(value.get("topicId", _NO_TOPIC_ID))


def _topic_id(text: str | None) -> str | None:
    return None if text == _NO_TOPIC_ID else text
