"""Lines of a broker against the records it wrote at the same moment into __consumer_offsets, __transaction_state and __cluster_metadata.

Sources: GroupCoordinator and GroupMetadataManager (a group's state_timestamp is the moment of "Stabilized"; its record is
written when the leader's assignment came, or when the group became empty), TransactionCoordinator.handleInitProducerId (its
line follows the record), GroupMetadataManager of 4.0 and later (a group's epoch and its record are of one request), KafkaRaftClient.onBecomeLeader (the first batch of an epoch is the leader's own),
BrokerLifecycleManager (a broker epoch is the offset of its RegisterBrokerRecord, or of the first
of the records with which its former incarnation leaves: ClusterControlManager.registerBroker).
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from typing import NamedTuple

from msgspec import Struct, field

from kaudit.audits.coordinator.transaction_state_reader import TRANSACTION_STATE
from kaudit.audits.log_events.clock import Anchor, AnchorSource
from kaudit.formats.errors import WireError
from kaudit.formats.internal_topics.record_schemas import parse_framed_record, parse_keyed_record
from kaudit.formats.internal_topics.transaction_state import parse_transaction_record
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.records import read_records
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.batch import Batches, last_offsets
from kaudit.model.batch_fields import CODEC_MASK, CONTROL_FLAG
from kaudit.model.coordinator import TransactionStatus
from kaudit.model.internal_topics import GROUPS
from kaudit.reading.batch_content import whole_batches
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource, boundary_from
from kaudit.reading.segment import ByteRange
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import CLUSTER_METADATA, PartitionDirectory, SegmentFile

_KIND = LogEventKind
_TAIL_BYTES = 8 << 20
"""Read of each partition: the newest records, because compaction keeps no older ones anyway."""
_MAX_BYTES = 64 << 20
"""Read of all partitions."""
_MAX_BATCH = 8 << 20
_SOON_MS, _EARLY_MS = 900, 100
"""A line comes at most so long after the record of its broker, or before it."""
_PROPAGATED_MS = 3000
"""A broker's line comes at most so long after the controller's record; what is later agrees with nothing."""
_APART_MS = 15 * 3600 * 1000
"""Records further from a line than any time zone are of another moment: generations and offsets recur."""

_SOURCES = {
    _KIND.GROUP_STABILIZED: AnchorSource.GROUPS,
    _KIND.GROUP_ASSIGNED: AnchorSource.GROUPS,
    _KIND.GROUP_EMPTIED: AnchorSource.GROUPS,
    _KIND.GROUP_EPOCH_BUMPED: AnchorSource.GROUPS,
    _KIND.PRODUCER_ID_ASSIGNED: AnchorSource.TRANSACTIONS,
    _KIND.QUORUM_LEADER: AnchorSource.QUORUM,
    _KIND.BROKER_REGISTERED: AnchorSource.METADATA,
    _KIND.STARTED: AnchorSource.METADATA,
    _KIND.LOG_CREATED: AnchorSource.METADATA,
}
_OF_CONTROLLER = frozenset({AnchorSource.METADATA, AnchorSource.QUORUM})
_TOPICS = {AnchorSource.GROUPS: GROUPS, AnchorSource.TRANSACTIONS: TRANSACTION_STATE} | dict.fromkeys(
    _OF_CONTROLLER, CLUSTER_METADATA
)
_GROUP_KEYS = (b"\0\x02", b"\0\x03", b"\0\x0b", b"\0\x11")
"""What the keys of records begin with that tell a generation, or the epoch of a group of consumers, a share group or Streams."""
_GROUP_KEY = re.compile(rb"\0[\x02\x03\x0b\x11][\0-\x7f][^\0]")
"""A key's version and the length of the group's name, which is not 0."""
_METADATA_TYPES = (b"\x00", b"\x02", b"\x08", b"\x11")
"""Of RegisterBrokerRecord, TopicRecord, UnfenceBrokerRecord and BrokerRegistrationChangeRecord."""
_STATUS_AT = 16
"""Where a transaction's state stands in its value (TransactionLogValue)."""
_UNFENCES = -1
_UNFENCED = "broker-unfenced"
"""The pattern whose line tells of a record; other lines about a start do not."""

_Key = tuple[LogEventKind, *tuple[str | int, ...]]


class RecordLine(NamedTuple):
    """A line that tells of a record: its time, what it names, and under which id the broker had begun, None if no line says it."""

    logged_ms: int
    key: _Key
    incarnation: str | None = None


def record_lines(events: Iterable[LogEvent]) -> Iterator[RecordLine]:
    """Yield the lines of one broker that tell of records, in order."""
    incarnation: str | None = None
    registered: tuple[int, int] | None = None
    for event in events:
        if event.timestamp_ms is None:
            continue
        kind, at = event.event, event.timestamp_ms
        if kind is _KIND.BROKER_STARTING:
            incarnation, registered = event.incarnation, None
        elif kind is _KIND.BROKER_REGISTERED and event.broker_id is not None and event.broker_epoch is not None:
            registered = event.broker_id, event.broker_epoch
            yield RecordLine(at, (kind, *registered), incarnation)
        elif kind is _KIND.STARTED and event.pattern == _UNFENCED and registered is not None:
            yield RecordLine(at, (kind, *registered), incarnation)
        elif kind is _KIND.LOG_CREATED and event.topic is not None:
            yield RecordLine(at, (kind, event.topic))
        elif kind is _KIND.QUORUM_LEADER and event.leader_epoch is not None:
            yield RecordLine(at, (kind, event.leader_epoch))
        elif kind is _KIND.PRODUCER_ID_ASSIGNED and event.transactional_id is not None:
            yield RecordLine(at, _given(event.transactional_id, event.producer_id or 0, event.producer_epoch or 0))
        elif event.group is not None and event.generation is not None:
            yield RecordLine(at, (kind, event.group, event.generation))


def _number(value: object) -> int:
    return value if isinstance(value, int) else -1


def _given(transactional_id: str, producer_id: int, producer_epoch: int) -> _Key:
    return _KIND.PRODUCER_ID_ASSIGNED, transactional_id, producer_id, producer_epoch


class RecordTimes(Struct):
    """The times, ms, of the records that lines tell of, by what the lines name."""

    asked: frozenset[_Key]
    times: dict[_Key, list[int]] = field(default_factory=dict)
    incarnations: dict[int, str] = field(default_factory=dict)
    """By broker epoch."""
    _extent: range = range(0)
    """The offsets of __cluster_metadata that were read."""
    _bytes: int = 0

    @property
    def topics(self) -> set[str]:
        """The internal topics that have records of which lines tell."""
        return {_TOPICS[_SOURCES[key[0]]] for key in self.asked}

    def read(self, directory: PartitionDirectory, open_source: OpenSource) -> None:
        """Take the newest records of one replica of an internal topic. What cannot be read is passed over: the audit says so."""
        readers = {
            GROUPS: self._group,
            TRANSACTION_STATE: self._transaction,
            CLUSTER_METADATA: self._metadata,
        }
        read = readers[directory.topic]
        limit = min(_TAIL_BYTES, _MAX_BYTES - self._bytes)
        for batch in newest_batches(directory, open_source, limit):
            self._bytes += len(batch.data)
            if directory.topic == CLUSTER_METADATA:
                first = self._extent.start if self._extent else batch.base_offset
                self._extent = range(first, batch.last_offset + 1)
            if batch.attributes & CONTROL_FLAG:
                key: _Key = (_KIND.QUORUM_LEADER, batch.leader_epoch)
                if directory.topic == CLUSTER_METADATA and key not in self.times:
                    self._note(key, batch.timestamp)
                continue
            plain = directory.topic == GROUPS and not batch.attributes & CODEC_MASK
            if plain and _GROUP_KEY.search(batch.data) is None:
                continue  # most batches are committed offsets
            with suppress(WireError):
                for record in read_records(batch.data):
                    with suppress(WireError):
                        read(record.key, record.value, range(batch.base_offset, record.offset + 1), record.timestamp)

    def _group(self, key: bytes | None, value: bytes | None, _: range, timestamp: int) -> None:
        if key is None or key[:2] not in _GROUP_KEYS:
            return
        record = parse_keyed_record(GROUPS, key, value)
        if record.key is None or record.value is None:
            return
        group, content = str(next(iter(record.key.values()))), record.value
        if "epoch" in content:
            self._note((_KIND.GROUP_EPOCH_BUMPED, group, _number(content["epoch"])), timestamp)
            return
        generation = _number(content["generation"])
        if not content["members"]:
            self._note((_KIND.GROUP_EMPTIED, group, generation), timestamp)
            return
        self._note((_KIND.GROUP_ASSIGNED, group, generation), timestamp)
        self._note((_KIND.GROUP_STABILIZED, group, generation), _number(content.get("currentStateTimestamp", -1)))

    def _transaction(self, key: bytes | None, value: bytes | None, _: range, __: int) -> None:
        if value is None or value[_STATUS_AT : _STATUS_AT + 1] != b"\0":  # most records are of transactions
            return
        record = parse_transaction_record(key, value)
        if record.value is not None and record.value.status is TransactionStatus.EMPTY:
            key_of = _given(record.transactional_id, record.value.producer_id, record.value.producer_epoch)
            self._note(key_of, record.value.last_update_timestamp)

    def _metadata(self, _: bytes | None, value: bytes | None, offsets: range, timestamp: int) -> None:
        """Take a record of the controller; `offsets` are those of its batch up to its own."""
        if value is None or value[1:2] not in _METADATA_TYPES:
            return
        record = parse_framed_record(CLUSTER_METADATA, value)
        content = record.value or {}
        if record.name == "TopicRecord":
            self._note((_KIND.LOG_CREATED, str(content["name"])), timestamp)
        elif record.name == "UnfenceBrokerRecord":
            self._note((_KIND.STARTED, _number(content["id"]), _number(content["epoch"])), timestamp)
        elif record.name == "BrokerRegistrationChangeRecord" and content["fenced"] == _UNFENCES:
            self._note((_KIND.STARTED, _number(content["brokerId"]), _number(content["brokerEpoch"])), timestamp)
        elif record.name == "RegisterBrokerRecord" and (epoch := _number(content["brokerEpoch"])) in offsets:
            self._note((_KIND.BROKER_REGISTERED, _number(content["brokerId"]), epoch), timestamp)
            self.incarnations[epoch] = str(content["incarnationId"])

    def _note(self, key: _Key, timestamp: int) -> None:
        if key in self.asked and timestamp > 0:
            known = self.times.setdefault(key, [])
            if timestamp not in known:
                known.append(timestamp)

    def anchor(self, line: RecordLine) -> Anchor | None:
        """Return the bounds of a line, if one record alone is what it may tell of."""
        near = [time for time in self.times.get(line.key, ()) if abs(time - line.logged_ms) <= _APART_MS]
        if len(near) != 1:
            return None
        time, source = near[0], _SOURCES[line.key[0]]
        if source is not AnchorSource.METADATA:
            return Anchor(line.logged_ms, time - _EARLY_MS, time + _SOON_MS, source)
        identified = line.incarnation is not None and self.incarnations.get(int(line.key[-1])) == line.incarnation
        return Anchor(line.logged_ms, time, time + _PROPAGATED_MS, source, identified)

    def anchors(self, lines: Iterable[RecordLine]) -> tuple[list[Anchor], int]:
        """Return the bounds of one broker's lines, and how many lines show that __cluster_metadata is another cluster's.

        Another cluster has the same broker ids, epochs and offsets, but hardly the same groups and transactional ids.
        """
        lines = list(lines)
        foreign = sum(self._is_foreign(line) for line in lines)
        found = [anchor for line in lines if (anchor := self.anchor(line)) is not None]
        return [one for one in found if not foreign or one.source not in _OF_CONTROLLER], foreign

    def _is_foreign(self, line: RecordLine) -> bool:
        """Whether another registration than this process's, or none, has its broker epoch."""
        if line.key[0] is not _KIND.BROKER_REGISTERED or line.key[-1] not in self._extent:
            return False
        epoch = int(line.key[-1])
        return epoch not in self.incarnations or line.incarnation not in (None, self.incarnations[epoch])


class StampedBatch(NamedTuple):
    """A batch of a log that its broker stamped; `data` has all of it."""

    base_offset: int
    last_offset: int
    attributes: int
    leader_epoch: int
    timestamp: int
    data: memoryview


def newest_batches(directory: PartitionDirectory, open_source: OpenSource, limit: int) -> Iterator[StampedBatch]:
    """Yield the newest batches of a replica, at most about `limit` bytes, in order; none of what cannot be read."""
    read: list[tuple[SegmentFile, int]] = []
    left = limit
    for segment in reversed(directory.segments):
        if left <= 0 or segment.text is not None or segment.fetched is not None:
            break
        read.append((segment, max(segment.size - left, 0)))
        left -= segment.size
    for segment, first in reversed(read):
        with suppress(OSError), closing(open_source(segment)) as source:
            start = boundary_from(source, first, segment.size) if first else 0
            rest = ByteRange(start, segment.size, segment.size)
            for piece in stream_batches(source, rest, expected_offset=None):
                yield from _with_bytes(piece.batches, source)


def _with_bytes(batches: Batches, source: ByteSource) -> Iterator[StampedBatch]:
    chosen = batches[(batches["magic"] >= CURRENT_MAGIC) & (batches["size"] <= _MAX_BATCH)]
    names = ("attributes", "leader_epoch", "max_timestamp")
    columns = (chosen["base_offset"], last_offsets(chosen), *(chosen[name] for name in names))
    contents = whole_batches(chosen["position"], chosen["size"], source)
    yield from map(StampedBatch, *(column.tolist() for column in columns), contents)
