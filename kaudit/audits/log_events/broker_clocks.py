"""The clock of each broker's logs, from all that the logs and the bytes have in common.

The times that brokers stamped on the batches around an offset, found by bisection: few bytes of a segment are read.

The clock of each client's log, by what the client and a broker say of the same request.

A client logs the answer to a request right after the broker has given it (Sender, TransactionManager, ConsumerCoordinator): the same
batch refused, the same producer id and epoch handed out, the same generation of a group. How long records waited in a client says
nothing.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct, field

from kaudit.audits.log_events.broker_records import RecordLine, RecordTimes, record_lines
from kaudit.audits.log_events.clock import (
    MAX_ZONE_CHANGE_MS,
    Anchor,
    AnchorSource,
    ClockOffset,
    Unaligned,
    estimate_clock,
)
from kaudit.audits.log_events.placement import by_broker, states_log_end
from kaudit.formats.log.batch_header import LENGTH_OFFSET, base_offset_of
from kaudit.model.application_logs import ClockAnchors, LogClock, LogEvent, LogEventKind, UnalignedLog, zone_text
from kaudit.model.batch_fields import CONTROL_FLAG, LOG_APPEND_TIME_FLAG
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource, boundary_from
from kaudit.reading.segment import ByteRange
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import INTERNAL_TOPICS, PartitionDirectory, SegmentFile, furthest_replicas

MAX_ANCHORS = 100
"""Most lines of one broker that are compared with batches."""
_NEAR_BYTES = 1 << 20
_WINDOW_BYTES = 2 << 20
_APPEND_MS, _LINE_MS = 1000, 100
"""A batch is stamped at most so long before the line about the roll that it causes, and before a line about what came earlier."""
_OF_REPLICAS = frozenset({LogEventKind.SNAPSHOT_WRITTEN, LogEventKind.LOG_ROLLED})
"""Followers write these lines too, some time after the leader stamped the batch at that offset."""

Partitions = Mapping[tuple[str, int], PartitionDirectory]


class Stamped(NamedTuple):
    """A batch whose time is a broker's."""

    timestamp: int
    leader_epoch: int


def batch_anchors(events: Sequence[LogEvent], partitions: Partitions, open_source: OpenSource) -> Iterator[Anchor]:
    """Yield the bounds of the lines of one broker that name the log's end, at most MAX_ANCHORS."""
    naming = [event for event in events if _names_end(event) and (event.topic, event.partition) in partitions]
    led = _led(events)
    for event in naming[:: max(-(-len(naming) // MAX_ANCHORS), 1)]:
        assert event.timestamp_ms is not None
        place = event.topic or "", event.partition or 0
        before, after = _stamped_around(partitions[place], open_source, event.offset or 0)
        if after is not None and event.event in _OF_REPLICAS and (*place, after.leader_epoch) not in led:
            after = None
        slack = _APPEND_MS if event.event in _OF_REPLICAS else _LINE_MS
        if before is not None or after is not None:
            yield Anchor(
                event.timestamp_ms,
                None if before is None else before.timestamp,
                None if after is None else after.timestamp + slack,
            )


def _names_end(event: LogEvent) -> bool:
    ends = states_log_end(event) or event.event is LogEventKind.LOG_ROLLED
    return ends and event.offset is not None and event.timestamp_ms is not None


def _led(events: Iterable[LogEvent]) -> set[tuple[str, int, int]]:
    """Topic, partition and leader epoch of what the broker led."""
    return {
        (event.topic or "", event.partition or 0, event.leader_epoch)
        for event in events
        if event.event is LogEventKind.BECAME_LEADER and event.leader_epoch is not None
    }


def _stamped_around(
    directory: PartitionDirectory, open_source: OpenSource, offset: int
) -> tuple[Stamped | None, Stamped | None]:
    """Return the last batch before an offset and the first at or after it that a broker stamped, among those near it."""
    files = [segment for segment in directory.segments if segment.text is None and segment.fetched is None]
    holding = bisect_right(files, offset, key=lambda segment: segment.base_offset) - 1
    if holding < 0:
        return None, None
    internal = directory.topic in INTERNAL_TOPICS
    before, after = _in_segment(files[holding], open_source, offset, internal=internal)
    if before is None and holding:
        before, _ = _in_segment(files[holding - 1], open_source, offset, internal=internal)
    return before, after


def _in_segment(
    segment: SegmentFile, open_source: OpenSource, offset: int, *, internal: bool
) -> tuple[Stamped | None, Stamped | None]:
    with suppress(OSError), closing(open_source(segment)) as source:
        return _around(source, segment, offset, internal=internal)
    return None, None


def _around(
    source: ByteSource, segment: SegmentFile, offset: int, *, internal: bool
) -> tuple[Stamped | None, Stamped | None]:
    first, last = 0, segment.size
    while last - first > _NEAR_BYTES:
        middle = boundary_from(source, (first + last) // 2, segment.size)
        head = bytearray(LENGTH_OFFSET)
        if middle >= last or source.read_into(middle, memoryview(head)) < len(head) or base_offset_of(head) >= offset:
            last = (first + last) // 2
        else:
            first = middle
    before: Stamped | None = None
    near = ByteRange(first, min(last + _WINDOW_BYTES, segment.size), segment.size)
    for piece in stream_batches(source, near, expected_offset=None, verify=False, window_bytes=_WINDOW_BYTES):
        batches = piece.batches
        stamped = (batches["attributes"] & (CONTROL_FLAG | LOG_APPEND_TIME_FLAG) != 0) | internal
        for row in batches[stamped & (batches["max_timestamp"] > 0)]:
            found = Stamped(int(row["max_timestamp"]), int(row["leader_epoch"]))
            if int(row["base_offset"]) >= offset:
                return before, found
            before = found
    return before, None


MAX_LINES = 2000
"""Most lines of one broker that are compared with records."""
_OUT_OF_ORDER_MS = 60_000
"""Lines of several threads may be out of order; more is a clock that was set back."""


class BrokerClock(Struct):
    """The clock of one broker's logs, the files `paths` in `directory`; `offsets` in order of time, empty where it is not known.

    `set_back` has, for each file, the lines at which the clock was set back, with their times: an hour passes twice.
    """

    directory: str
    broker_id: int | None
    paths: frozenset[str]
    zone_known: bool
    offsets: Sequence[ClockOffset] = ()
    anchors: int = 0
    """Where it is not known: lines that tell of what the bytes have, and contradict one another."""
    set_back: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether times of the log can be held against the bytes'."""
        return all(offset.is_known for offset in self.offsets) if self.offsets else self.zone_known

    def batch_time(self, event: LogEvent) -> int | None:
        """Return a line's time by the clock of the bytes, ms: as if the log's were UTC where the clock is not known."""
        if event.timestamp_ms is None or not self.offsets or not self.is_known:
            return event.timestamp_ms
        if event.zone_known and not self.zone_known:
            return event.timestamp_ms  # a line that states its zone, in a log whose others do not
        return event.timestamp_ms + self._offset_of(event).likely_ms

    def _offset_of(self, event: LogEvent) -> ClockOffset:
        assert event.timestamp_ms is not None
        at = event.timestamp_ms
        for number, offset in enumerate(self.offsets[:-1]):
            if offset.until_ms is None or at + offset.likely_ms > offset.until_ms:
                continue
            following = self.offsets[number + 1]
            twice = at + following.likely_ms > offset.until_ms
            return following if twice and self._is_second(event) else offset
        return self.offsets[-1]

    def _is_second(self, event: LogEvent) -> bool:
        """Whether its line stands after the one at which the clock was set back, in an hour that passes twice."""
        return any(
            line <= event.line and abs(at - (event.timestamp_ms or 0)) <= MAX_ZONE_CHANGE_MS
            for line, at in self.set_back.get(event.path, ())
        )


def broker_clocks(
    events: Sequence[LogEvent], partitions: Sequence[PartitionDirectory], open_source: OpenSource
) -> list[BrokerClock]:
    """Return the clock of each broker whose logs are given, by directory and broker id."""
    brokers = by_broker(event for event in events if event.origin == "server")
    replicas = {(one.topic, one.partition): one for one in furthest_replicas(partitions)}
    zones = {
        key: all(event.zone_known for event in own if event.timestamp_ms is not None) for key, own in brokers.items()
    }
    comparable = {
        key: [event for event in own if _is_timed(event, zone_known=zones[key])] for key, own in brokers.items()
    }
    lines = {key: _spread(list(record_lines(own))) for key, own in comparable.items()}
    times = RecordTimes(frozenset(line.key for own in lines.values() for line in own))
    for (topic, _), replica in replicas.items():
        if topic in times.topics:
            times.read(replica, open_source)
    clocks = []
    for (directory, broker), own in brokers.items():
        key = directory, broker
        anchors, foreign = times.anchors(lines[key])
        if not foreign:
            anchors += batch_anchors(comparable[key], replicas, open_source)
        found = estimate_clock(anchors, zone_known=zones[key])
        clock = BrokerClock(directory, broker, frozenset(event.path for event in own), zones[key])
        if isinstance(found, Unaligned):
            clock.anchors = found.anchors + foreign
        else:
            clock.offsets, clock.set_back = found, _set_back(comparable[key], found)
        clocks.append(clock)
    return sorted(clocks, key=lambda clock: (clock.directory, clock.broker_id is not None, clock.broker_id or 0))


def _is_timed(event: LogEvent, *, zone_known: bool) -> bool:
    return event.timestamp_ms is not None and event.zone_known == zone_known


def _set_back(events: Sequence[LogEvent], offsets: Sequence[ClockOffset]) -> dict[str, list[tuple[int, int]]]:
    """Return, for each file, the lines at which the time went back, and their times; nothing where no zone change does that."""
    back = any(after.likely_ms > before.likely_ms for before, after in pairwise(offsets))
    found: dict[str, list[tuple[int, int]]] = {}
    latest: dict[str, int] = {}
    for event in sorted(events, key=lambda event: (event.path, event.line)) if back else ():
        assert event.timestamp_ms is not None
        if event.timestamp_ms < latest.get(event.path, event.timestamp_ms) - _OUT_OF_ORDER_MS:
            found.setdefault(event.path, []).append((event.line, event.timestamp_ms))
        latest[event.path] = event.timestamp_ms
    return found


def _spread(lines: Sequence[RecordLine]) -> Sequence[RecordLine]:
    """Return at most MAX_LINES of the lines, evenly."""
    return lines[:: max(-(-len(lines) // MAX_LINES), 1)]


def log_clocks(clocks: Iterable[BrokerClock]) -> Iterator[LogClock]:
    """Yield the clocks that are known in the form that reports show, an entry for each offset of a log."""
    for clock in clocks:
        since: int | None = None
        for offset in clock.offsets:
            yield LogClock(
                directory=clock.directory,
                lower_ms=offset.lower_ms,
                upper_ms=offset.upper_ms,
                likely_ms=offset.likely_ms,
                zone_minutes=offset.zone_minutes,
                anchors=sum(offset.anchors.values()),
                agreeing=sum(offset.agreeing.values()),
                broker_id=clock.broker_id,
                exact=offset.exact,
                time_zones=[zone_text(zone) for zone in offset.zones],
                aligned_by=[
                    ClockAnchors(source.value, count, offset.agreeing[source])
                    for source, count in sorted(offset.anchors.items())
                ],
                spread_ms=offset.spread_ms,
                behind_controller_ms=offset.behind_controller_ms,
                since_ms=since,
                until_ms=offset.until_ms,
            )
            since = None if offset.until_ms is None else offset.until_ms + 1


def unaligned_logs(clocks: Iterable[BrokerClock]) -> list[UnalignedLog]:
    """Return the logs whose clock is not known, where no line says its zone either."""
    return [
        UnalignedLog(clock.directory, clock.broker_id, "contradiction" if clock.anchors else "no-anchor", clock.anchors)
        for clock in clocks
        if not clock.offsets and not clock.zone_known
    ]


_ANSWERED_MS, _EARLY_MS = 900, 100
"""A client's line comes at most so long after the broker's, or before it."""
_Key = tuple[object, ...]


def client_clocks(events: Iterable[LogEvent], brokers: Sequence[BrokerClock]) -> list[BrokerClock]:
    """Return the clock of each client's log; `brokers` are those of the brokers' logs among `events`."""
    known = {path: clock for clock in brokers if clock.is_known for path in clock.paths}
    known_times: dict[_Key, list[int]] = {}
    files: dict[str, list[LogEvent]] = {}
    for event in events:
        if event.timestamp_ms is None:
            continue
        if event.origin == "client":
            files.setdefault(event.path, []).append(event)
        elif (clock := known.get(event.path)) is not None and (key := _key(event)) is not None:
            at = clock.batch_time(event)
            known_times.setdefault(key, []).extend([] if at is None else [at])
    return [_clock(path, own, known_times.get) for path, own in sorted(files.items())]


def _clock(path: str, events: Sequence[LogEvent], known_times: Callable[[_Key], list[int] | None]) -> BrokerClock:
    zone_known = all(event.zone_known for event in events)
    found = estimate_clock(_anchors(events, known_times), zone_known=zone_known)
    clock = BrokerClock(path, None, frozenset({path}), zone_known)
    if isinstance(found, Unaligned):
        clock.anchors = found.anchors
    else:
        clock.offsets = found
    return clock


def _anchors(events: Iterable[LogEvent], known_times: Callable[[_Key], list[int] | None]) -> Iterator[Anchor]:
    """Yield the bounds of the lines about a request of which the brokers have as many lines."""
    own: dict[_Key, list[int]] = {}
    for event in events:
        key = _key(event)
        if key is not None and event.timestamp_ms is not None:
            own.setdefault(key, []).append(event.timestamp_ms)
    for key, logged in own.items():
        answered = known_times(key) or ()
        if len(answered) == len(logged):
            for at, given in zip(sorted(logged), sorted(answered), strict=True):
                yield Anchor(at, given - _EARLY_MS, given + _ANSWERED_MS, AnchorSource.BROKERS)


def _key(event: LogEvent) -> _Key | None:
    """Return what is the same in both lines of one request, None if a line does not tell it from others."""
    if event.event is LogEventKind.PRODUCER_ID_ASSIGNED and event.transactional_id is not None:
        return event.event, event.transactional_id, event.producer_id, event.producer_epoch
    if event.event is LogEventKind.GROUP_STABILIZED:
        return event.event, event.group, event.generation
    if event.error is None or event.producer_id is None or event.base_sequence is None:
        return None
    return event.error, event.topic, event.partition, event.producer_id, event.base_sequence
