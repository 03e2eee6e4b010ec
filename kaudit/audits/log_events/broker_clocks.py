"""The clock of each broker's logs, from all that the logs and the bytes have in common."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, field

from kaudit.audits.log_events.batch_times import batch_anchors
from kaudit.audits.log_events.broker_records import RecordLine, RecordTimes, record_lines
from kaudit.audits.log_events.clock import MAX_ZONE_CHANGE_MS, ClockOffset, Unaligned, estimate_clock
from kaudit.audits.log_events.placement import by_broker
from kaudit.model.application_logs import ClockAnchors, LogClock, LogEvent, UnalignedLog, zone_text
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.layout import PartitionDirectory, furthest_replicas

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
