"""Reading __consumer_offsets, __share_group_state and __remote_log_metadata: one pass over each partition, record by record.

A group and all it commits lie in one partition (GroupMetadataManager.partitionFor), and so does all of a partition's remote
log (RemoteLogMetadataTopicPartitioner), so partitions are read apart from one another.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from typing import Any, Protocol, cast

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.formats.dump_text.record_content import parse_printed_state
from kaudit.formats.dump_text.rows import DumpRecord
from kaudit.formats.errors import MissingContentError, WireError
from kaudit.formats.internal_topics.record_schemas import InternalRecord, parse_internal_record, parse_keyed_record
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.record_batch import at_every_byte
from kaudit.formats.log.record_spans import BatchBytes, RecordSpans, record_spans, with_headers
from kaudit.formats.log.records import read_records
from kaudit.model.batch import Batches
from kaudit.model.batch_fields import (
    ABORT_MARKER,
    CODEC_MASK,
    COMMIT_MARKER,
    CONTROL_FLAG,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
)
from kaudit.model.internal_topics import GROUPS, SHARE_STATE
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.content_rows import read_batch, read_batches
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
_MOST_TOPICS = 1 << 12
_MOST_RECORDS = 1 << 16
"""Records decoded by column at once."""
_NO_PRODUCER = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
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
    leader_epoch: int = NO_LEADER_EPOCH
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
_Placed = tuple[int, GroupLogEntry | None]
"""The offset of a record and what it says, None for nothing about groups."""


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
                for offset, entry in self._placed(directory, segment):
                    if offset > expected:
                        yield MissingRecords(expected, offset - 1)
                    if entry is not None:
                        yield entry
                    if offset >= expected:
                        expected = offset + 1
            except OSError as error:
                self.failed.append(Unreadable(segment.path, failure(error)))

    def _placed(self, directory: PartitionDirectory, segment: SegmentFile) -> Iterator[_Placed]:
        with closing(self.open_source(segment)) as source:
            if isinstance(source, SegmentText):
                yield from self._printed(directory, segment, source)
                return
            for piece in stream_batches(source, ByteRange(0, segment.size, segment.size), expected_offset=None):
                # every release with groups in __consumer_offsets that speak of producers writes magic 2
                batches, done = piece.batches[piece.batches["magic"] >= CURRENT_MAGIC], 0
                for numbers, data in read_batches(source, batches["position"], batches["size"]):
                    own, done = batches[done : numbers[-1] + 1], int(numbers[-1]) + 1
                    spans = _sound_spans(own, data)
                    yield from (
                        self._one_by_one(directory, source, own)
                        if spans is None
                        else self._at_once(directory, own, spans)
                    )
                yield from self._one_by_one(directory, source, batches[done:])

    def _printed(self, directory: PartitionDirectory, segment: SegmentFile, source: SegmentText) -> Iterator[_Placed]:
        """Yield the same of the lines that kafka-dump-log printed."""
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
                yield row.offset, entry
        except MissingContentError as error:
            self._note(f"{segment.path}: {error}; {option} prints the records")

    def _at_once(self, directory: PartitionDirectory, batches: Batches, spans: RecordSpans) -> Iterator[_Placed]:
        """Return the entries of batches, decoded by column."""
        content, own = spans.data, spans.batches
        is_groups = directory.topic == GROUPS
        bounds = _pairs(spans.key_starts, spans.values)
        keys = [_keys[content[first:end]] if is_groups else None for first, end in bounds]
        fixed, values = _commit_values(spans)
        in_transaction = (batches["attributes"] & TRANSACTIONAL_FLAG != 0)[own]
        places = (
            spans.offsets.tolist(),
            spans.timestamps.tolist(),
            batches["leader_epoch"][own].tolist(),
            np.where(in_transaction, batches["producer_id"][own], NO_PRODUCER_ID).tolist(),
            np.where(in_transaction, batches["producer_epoch"][own], NO_PRODUCER_EPOCH).tolist(),
        )
        entries: list[GroupLogEntry | None] = list(map(CommitRecord, *places, keys, *values))
        control = (batches["attributes"] & CONTROL_FLAG != 0)[own]
        for index, marker in zip(np.flatnonzero(control).tolist(), _markers(batches[own[control]]), strict=True):
            entries[index] = marker
        is_other = ~control & (~fixed | np.array([key is None for key in keys], np.bool_))
        for index in np.flatnonzero(is_other).tolist():
            key = None if spans.null_keys[index] else content[spans.key_starts[index] : spans.values[index]]
            value = None if spans.null_values[index] else content[spans.value_starts[index] : spans.headers[index]]
            place = tuple(column[index] for column in places)
            entries[index] = self._entry(directory, place, key, value)
        return ((offset, entry) for offset, entry in zip(places[0], entries, strict=True) if entry is not None)

    def _one_by_one(self, directory: PartitionDirectory, source: ByteSource, batches: Batches) -> Iterator[_Placed]:
        """Yield the entries of batches, of a damaged one those before the damage."""
        for number, row in enumerate(batches):
            attributes, producer = int(row["attributes"]), _NO_PRODUCER
            if attributes & CONTROL_FLAG:
                yield from ((each.offset, each) for each in _markers(batches[number : number + 1]) if each is not None)
                continue
            if attributes & TRANSACTIONAL_FLAG:
                producer = int(row["producer_id"]), int(row["producer_epoch"])
            try:
                for record in read_records(read_batch(source, int(row["position"]), int(row["size"]))):
                    place = record.offset, record.timestamp, int(row["leader_epoch"]), *producer
                    entry = self._entry(directory, place, record.key, record.value)
                    if entry is not None:
                        yield record.offset, entry
            except (WireError, ValueError) as error:
                self._note(f"{directory.name} at offset {int(row['base_offset'])}: {error}")

    def _entry(
        self, directory: PartitionDirectory, place: tuple[int, ...], key: bytes | None, value: bytes | None
    ) -> GroupLogEntry | None:
        """Return the entry of a record; None for one of a release to come, for instance: the others can be read."""
        try:
            commit = _keys[key] if key is not None and directory.topic == GROUPS else None
            if commit is None:
                offset, timestamp, leader_epoch, *_ = place
                record = parse_internal_record(directory.topic, key, value)
                return GroupRecord(offset, timestamp, leader_epoch, record)
            content = None if value is None else cast("dict[str, Any]", parse_keyed_record(GROUPS, key, value).value)
            fields = (None,) if content is None else _content(content)
            return CommitRecord(*place, commit, *fields)  # type: ignore[call-arg,arg-type] # five numbers
        except WireError as error:
            self._note(f"{directory.name} at offset {place[0]}: {error}")
            return None

    def _note(self, text: str) -> None:
        if len(self.unreadable) < _MOST_NOTES:
            self.unreadable.append(text)


_DECODERS = {GROUPS: "--offsets-decoder", SHARE_STATE: "--share-group-state-decoder"}


def _printed_entry(topic: str, row: DumpRecord) -> GroupLogEntry | None:
    timestamp, leader_epoch = NO_TIMESTAMP if row.timestamp is None else row.timestamp, row.leader_epoch or 0
    producer_id = NO_PRODUCER_ID if row.producer_id is None else row.producer_id
    producer = producer_id, NO_PRODUCER_EPOCH if row.producer_epoch is None else row.producer_epoch
    if not is_data(row):
        is_end = row.end_marker is not None
        return TransactionEnd(row.offset, timestamp, *producer, row.end_marker == "COMMIT") if is_end else None
    record = parse_printed_state(topic, row.key, row.payload)
    place = row.offset, timestamp, leader_epoch
    if topic != GROUPS or record.name != "OffsetCommit":
        return GroupRecord(*place, record)
    key, value = cast("dict[str, Any]", record.key), cast("dict[str, Any] | None", record.value)
    known = key["group"], key["topic"], key["partition"]
    by = producer if row.is_transactional else _NO_PRODUCER
    return CommitRecord(*place, *by, known, *((None,) if value is None else _content(value)))


def _sound_spans(batches: Batches, data: BatchBytes) -> RecordSpans | None:
    """Return the records of batches; None where one is gone, damaged or compressed, or has so many that they are read one by one."""
    attributes, counts = batches["attributes"], batches["record_count"]
    is_odd = attributes & CODEC_MASK != 0
    is_odd |= (attributes & CONTROL_FLAG != 0) & (counts != 1)
    if is_odd.any() or len(batches) != len(data.sizes) or counts.sum(dtype=np.int64) > _MOST_RECORDS:
        return None
    spans, damaged = record_spans(data)
    return None if damaged or with_headers(spans).any() else spans


def _markers(batches: Batches) -> Iterator[TransactionEnd | None]:
    """Yield what each control batch says of a transaction."""
    names = ("base_offset", "max_timestamp", "producer_id", "producer_epoch", "control_type")
    for base, timestamp, *producer, kind in zip(*(batches[name].tolist() for name in names), strict=True):
        ends = kind in _MARKERS
        yield TransactionEnd(base, timestamp, producer[0], producer[1], kind == COMMIT_MARKER) if ends else None


_MARKERS = (ABORT_MARKER, COMMIT_MARKER)
_KEY_TYPES = (b"\0\0", b"\0\1")


class _Keys(dict[bytes, CommitKey | None]):
    """The keys of commits by their bytes, None for other records. The same few keys come again and again."""

    def __missing__(self, key: bytes) -> CommitKey | None:
        if key[:2] not in _KEY_TYPES:
            return None
        if len(self) >= _MOST_KEYS:
            self.clear()
        try:
            own = cast("dict[str, Any]", parse_keyed_record(GROUPS, key, None).key)
            self[key] = own["group"], own["topic"], own["partition"]
        except WireError:
            self[key] = None
        return self[key]


_keys = _Keys()


def _pairs(first: NDArray[np.int64], end: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    return zip(first.tolist(), end.tolist(), strict=True)


_EPOCH_VERSION, _FLEXIBLE_VERSION = 3, 4
_METADATA_AT, _TIME_BYTES = 14, 8
"""Where a value's metadata begins, after version, offset and leader epoch; the commit's timestamp follows it."""
_NO_TAGS = b"\0"
_TAGGED_ID = b"\1\0\x10"
"""One tagged field, of tag 0 and 16 bytes: the topic's id."""
_VALUE_PADDING = bytes(64)


def _commit_values(spans: RecordSpans) -> tuple[NDArray[np.bool_], tuple[list[int], list[int], list[str | None]]]:
    """Return the offsets, leader epochs and topic ids of commits as brokers write them now, and which records have such a value."""
    data = memoryview(spans.data + _VALUE_PADDING)
    at, sizes = spans.value_starts, spans.headers - spans.value_starts
    version, offset, epoch, length, short = (
        at_every_byte(data, np.dtype(kind))[at + first]
        for kind, first in ((">i2", 0), (">i8", 2), (">i4", 10), (">i2", _METADATA_AT), ("u1", _METADATA_AT))
    )
    fixed: NDArray[np.bool_] = (version == _EPOCH_VERSION) & (sizes == _METADATA_AT + 2 + length + _TIME_BYTES)
    fixed &= sizes >= _METADATA_AT + 2
    topic_ids: list[str | None] = [None] * len(at)
    tags = at + _METADATA_AT + short + _TIME_BYTES
    flexible = np.flatnonzero((version == _FLEXIBLE_VERSION) & (short > 0) & (short < 0x80) & (tags < spans.headers))
    for index, (first, end) in zip(flexible.tolist(), _pairs(tags[flexible], spans.headers[flexible]), strict=True):
        tagged = spans.data[first:end]
        if tagged[:3] == _TAGGED_ID and len(tagged) == len(_TAGGED_ID) + 16:
            topic_ids[index] = _read_topic_id(tagged)
        elif tagged != _NO_TAGS:
            continue
        fixed[index] = True
    return fixed, (offset.tolist(), epoch.tolist(), topic_ids)


@lru_cache(maxsize=_MOST_TOPICS)
def _read_topic_id(tagged: bytes) -> str | None:
    return _topic_id(base64.urlsafe_b64encode(tagged[len(_TAGGED_ID) :]).decode().rstrip("="))


def _content(value: Mapping[str, Any]) -> tuple[int, int, str | None]:
    return value["offset"], value.get("leaderEpoch", NO_LEADER_EPOCH), _topic_id(value.get("topicId", _NO_TOPIC_ID))


def _topic_id(text: str | None) -> str | None:
    return None if text == _NO_TOPIC_ID else text
