"""The timestamps of the batches around an offset, found by bisection: few bytes of a segment are read."""

from collections.abc import Sequence
from contextlib import closing, suppress

from kaudit.audits.log_events.clock import Anchor, ClockOffset, estimate_clock
from kaudit.audits.log_events.placement import by_directory, states_log_end
from kaudit.formats.log.batch_header import LENGTH_OFFSET, base_offset_of
from kaudit.model.application_logs import LogClock, LogEvent
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource, boundary_from
from kaudit.reading.segment import ByteRange
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import PartitionDirectory, SegmentFile

MAX_ANCHORS = 100
"""Most lines of one broker that are compared with batches."""
_NEAR_BYTES = 1 << 20
_WINDOW_BYTES = 2 << 20


def clocks(
    events: Sequence[LogEvent], partitions: Sequence[PartitionDirectory], open_source: OpenSource
) -> dict[str, ClockOffset]:
    """Return the offset of the clock of each directory of logs, where it is known."""
    known = {(entry.topic, entry.partition): entry for entry in reversed(partitions)}
    found: dict[str, ClockOffset] = {}
    for home, own in by_directory(event for event in events if event.origin == "server").items():
        timed = [event for event in own if event.timestamp_ms is not None]
        exact = [event for event in timed if states_log_end(event) and (event.topic, event.partition) in known]
        step = max(len(exact) // MAX_ANCHORS, 1)
        anchors = []
        for event in exact[::step]:
            assert event.timestamp_ms is not None
            assert event.offset is not None
            around = _times_around(known[event.topic or "", event.partition or 0], open_source, event.offset)
            if around is not None:
                anchors.append(Anchor(event.timestamp_ms, *around))
        clock = estimate_clock(anchors, zone_known=bool(timed) and all(event.zone_known for event in timed))
        if clock is not None:
            found[home] = clock
    return found


def log_clock(home: str, clock: ClockOffset) -> LogClock:
    """Return a clock in the form that reports show."""
    return LogClock(
        home, clock.lower_ms, clock.upper_ms, clock.likely_ms, clock.zone_minutes, clock.anchors, clock.agreeing
    )


def _times_around(
    directory: PartitionDirectory, open_source: OpenSource, offset: int
) -> tuple[int | None, int | None] | None:
    """Return the timestamps, ms, of the last batch before an offset and of the first at or after it; None if neither is there."""
    holding = [segment for segment in directory.segments if segment.base_offset <= offset]
    if not holding or holding[-1].text is not None or holding[-1].fetched is not None:
        return None
    with suppress(OSError), closing(open_source(holding[-1])) as source:
        before, after = _around(source, holding[-1], offset)
        return None if before is None and after is None else (before, after)
    return None


def _around(source: ByteSource, segment: SegmentFile, offset: int) -> tuple[int | None, int | None]:
    first, last = 0, segment.size
    while last - first > _NEAR_BYTES:
        middle = boundary_from(source, (first + last) // 2, segment.size)
        head = bytearray(LENGTH_OFFSET)
        if middle >= last or source.read_into(middle, memoryview(head)) < len(head) or base_offset_of(head) >= offset:
            last = (first + last) // 2
        else:
            first = middle
    before: int | None = None
    rest = ByteRange(first, segment.size, segment.size)
    for piece in stream_batches(source, rest, expected_offset=None, verify=False, window_bytes=_WINDOW_BYTES):
        for base, time in zip(
            piece.batches["base_offset"].tolist(), piece.batches["max_timestamp"].tolist(), strict=True
        ):
            if base >= offset:
                return before, time if time >= 0 else None
            before = time if time >= 0 else before
    return before, None
