"""The times that brokers stamped on the batches around an offset, found by bisection: few bytes of a segment are read."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import NamedTuple

from kaudit.audits.log_events.clock import Anchor
from kaudit.audits.log_events.placement import states_log_end
from kaudit.formats.log.batch_header import LENGTH_OFFSET, base_offset_of
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.batch_fields import CONTROL_FLAG, LOG_APPEND_TIME_FLAG
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource, boundary_from
from kaudit.reading.segment import ByteRange
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import INTERNAL_TOPICS, PartitionDirectory, SegmentFile

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
