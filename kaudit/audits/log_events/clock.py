"""How far the clock of a server log is from that of the batches: an interval, from lines that say between which offsets they stand.

A line that names the log's end was written after the batch before that offset and before the batch at it. The time of each such
line, held against the timestamps of the two batches, bounds what has to be added to the log's times. Producers stamp batches
before they are appended, some of them with a wrong clock, so single bounds may contradict: the offset that most of them allow
is taken.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from kaudit.audits.log_events.placement import LoggedBatch, states_log_end
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.coordinator import TransactionRecord, TransactionStatus

MIN_ANCHORS = 3
"""Fewer lines say nothing: one producer with a wrong clock would decide."""
_MIN_AGREEING = 0.6
_NEARLY = 0.9
"""Share of the agreeing lines that must allow a value inside the interval."""
_QUARTER_HOUR_MS = 15 * 60 * 1000
_MAX_ZONE_MS = 14 * 3600 * 1000
"""Local times are at most so far from UTC, in steps of a quarter of an hour."""
_ZONE_SLACK_MS = 5 * 60 * 1000
"""A clock that is further off than this beside its zone leaves the zone open."""
_MAX_WIDTH_MS = 6 * 3600 * 1000
"""An interval as wide as this orders nothing."""
_BEFORE_ALL, _AFTER_ALL = -(2**63), 2**63


class Anchor(NamedTuple):
    """A line's time, and the timestamps of the batches before and after it, ms; None where there is none."""

    logged_ms: int
    after_ms: int | None
    before_ms: int | None


class ClockOffset(Struct, frozen=True):
    """The offset that turns the times of a log into times of the batches: between `lower_ms` and `upper_ms`, most likely `likely_ms`.

    That is 0, if most lines allow it; else the least they do, since a line is written right after the event it
    reports, and long before the next batch.
    `anchors` lines were compared, `agreeing` of them allow the interval. `zone_minutes` is how far east of UTC the log's
    local time is, None where the log states its zone or where several zones are possible.
    """

    lower_ms: int
    upper_ms: int
    likely_ms: int
    anchors: int
    agreeing: int
    zone_minutes: int | None = None

    def batch_time(self, logged_ms: int) -> int:
        """Return a line's time by the clock of the batches, ms."""
        return logged_ms + self.likely_ms

    @property
    def skew_ms(self) -> int:
        """`likely_ms` without the zone."""
        return self.likely_ms + (self.zone_minutes or 0) * 60_000


def estimate_clock(anchors: Iterable[Anchor], *, zone_known: bool) -> ClockOffset | None:
    """Return the clock's offset; None, unknown, where too few lines bound it or too many of them contradict."""
    bounds = [
        (
            _BEFORE_ALL if anchor.after_ms is None else anchor.after_ms - anchor.logged_ms,
            _AFTER_ALL if anchor.before_ms is None else anchor.before_ms - anchor.logged_ms,
        )
        for anchor in anchors
    ]
    found = _most_allowed([(lower, max(lower, upper)) for lower, upper in bounds])
    if found is None:
        return None
    lower, upper, most, agreeing = found
    if agreeing < MIN_ANCHORS or agreeing < _MIN_AGREEING * len(bounds) or upper - lower > _MAX_WIDTH_MS:
        return None
    zone = None if zone_known else _zone(lower, upper)
    no_skew = 0 if zone is None else -zone * 60_000
    likely = no_skew if most[0] <= no_skew <= most[1] else most[0]
    return ClockOffset(lower, upper, likely, len(bounds), agreeing, zone)


def _most_allowed(bounds: Sequence[tuple[int, int]]) -> tuple[int, int, tuple[int, int], int] | None:
    """Return the range that nearly as many intervals allow as any other, the range that most of them allow, and how many do.

    None where it is not bounded on both sides.
    """
    edges = sorted([(lower, 0) for lower, _ in bounds] + [(upper, 1) for _, upper in bounds])
    depths: list[tuple[int, int, int]] = []
    depth = 0
    for (at, ends), (following, _) in pairwise(edges):
        depth += -1 if ends else 1
        depths.append((at, following, depth))
    most = max((depth for _, _, depth in depths), default=0)
    if not most:
        return None
    enough = max(most * _NEARLY, 1)
    best = next(index for index, one in enumerate(depths) if one[2] == most)
    first = last = best
    while first and depths[first - 1][2] >= enough:
        first -= 1
    while last + 1 < len(depths) and depths[last + 1][2] >= enough:
        last += 1
    lower, upper = depths[first][0], depths[last][1]
    return None if lower == _BEFORE_ALL or upper == _AFTER_ALL else (lower, upper, depths[best][:2], most)


def _zone(lower: int, upper: int) -> int | None:
    """Return minutes east of UTC if one zone alone explains the offset, else None."""
    first = -(-(lower - _ZONE_SLACK_MS) // _QUARTER_HOUR_MS)
    last = (upper + _ZONE_SLACK_MS) // _QUARTER_HOUR_MS
    if first != last or abs(first) * _QUARTER_HOUR_MS > _MAX_ZONE_MS:
        return None
    return -first * 15


_SOON_MS = 1000
"""A coordinator logs what it has just written."""


class PartitionAnchors:
    """Collects the anchors of one partition's events while its batches are read, in order."""

    def __init__(self, events: Iterable[LogEvent]) -> None:
        timed = [event for event in events if event.timestamp_ms is not None]
        exact = sorted((event for event in timed if states_log_end(event)), key=lambda event: event.offset or 0)
        self._offsets = [event.offset or 0 for event in exact]
        self._exact = exact
        self._before: list[int | None] = [None] * len(exact)
        self._after: list[int | None] = [None] * len(exact)
        self._by_state: dict[tuple[int, int], list[LogEvent]] = {}
        for event in timed:
            if event.producer_id is not None and event.last_sequence is not None and not states_log_end(event):
                self._by_state.setdefault((event.producer_id, event.last_sequence), []).append(event)
        self._open: dict[int, tuple[int, list[LogEvent]]] = {}
        self._done = 0
        self._latest: int | None = None
        self._anchors: list[tuple[LogEvent, Anchor]] = []

    def take(self, batch: LoggedBatch) -> None:
        """Take the next batch."""
        passed = bisect_left(self._offsets, batch.base_offset + 1, self._done)
        for index in range(self._done, passed):
            self._after[index], self._before[index] = self._latest, batch.timestamp
        self._done, self._latest = passed, batch.timestamp
        if (self._by_state or self._open) and batch.producer_id >= 0 and batch.last_sequence >= 0:
            self._of_producer(batch)

    def _of_producer(self, batch: LoggedBatch) -> None:
        after, events = self._open.pop(batch.producer_id, (0, []))
        self._anchors += [(event, _anchor(event, after, batch.timestamp)) for event in events]
        matching = self._by_state.pop((batch.producer_id, batch.last_sequence), None)
        if matching is not None:
            self._open[batch.producer_id] = (batch.timestamp, matching)

    def found(self) -> list[tuple[LogEvent, Anchor]]:
        """Return each event that bounds the clock, with its bounds, once the log has been read."""
        exact = zip(self._exact, self._after, self._before, strict=True)
        last = [(event, _anchor(event, self._latest, None)) for event in self._exact[self._done :]]
        between = [(event, _anchor(event, after, before)) for event, after, before in exact][: self._done]
        return [*between, *last, *self._anchors]


def coordinator_anchors(
    events: Iterable[LogEvent], records: Mapping[str, Sequence[TransactionRecord]]
) -> list[tuple[LogEvent, Anchor]]:
    """Anchors of the lines in which a coordinator hands out a producer id, against __transaction_state's records by id."""
    found = []
    for event in events:
        if event.event is not LogEventKind.PRODUCER_ID_ASSIGNED or event.timestamp_ms is None:
            continue
        for record in records.get(event.transactional_id or "", ()):
            value = record.value
            if (
                value is not None
                and value.status is TransactionStatus.EMPTY
                and (value.producer_id, value.producer_epoch) == (event.producer_id, event.producer_epoch)
            ):
                at = value.last_update_timestamp
                found.append((event, Anchor(event.timestamp_ms, at, at + _SOON_MS)))
    return found


def _anchor(event: LogEvent, after: int | None, before: int | None) -> Anchor:
    assert event.timestamp_ms is not None
    return Anchor(event.timestamp_ms, after, before)
