"""The places of server log events in a partition's order: the offsets around each, and the reason."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum, auto

from msgspec import Struct, field

from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.grouping import grouped

_AT_LOG_END = frozenset(
    {
        LogEventKind.OUT_OF_ORDER_SEQUENCE,
        LogEventKind.INVALID_PRODUCER_EPOCH,
        LogEventKind.FENCED_PRODUCER,
        LogEventKind.UNKNOWN_PRODUCER_ID,
        LogEventKind.INVALID_TXN_STATE,
        LogEventKind.DUPLICATE_SEQUENCE,
        LogEventKind.TRANSACTION_COORDINATOR_FENCED,
        LogEventKind.BECAME_LEADER,
        LogEventKind.SNAPSHOT_WRITTEN,
    }
)
"""Events whose offset is the log's end when they happened."""


class Certainty(StrEnum):
    """Reasons for an event's place, the most certain first."""

    OFFSET = auto()
    """The line names the log's end."""
    SEQUENCE = auto()
    """The line names the producer's last sequence, and the producer's next batch follows."""
    TIME = auto()
    """The clocks of log and batches, which are known to the interval of a ClockOffset."""
    ORDER = auto()
    """Only its line: it comes after the lines before it in the same log."""


class LoggedBatch(Struct, frozen=True, gc=False):
    """A batch as placing needs it; `producer_id` -1 where it has none, `timestamp` ms, `last_sequence` -1 for a marker."""

    base_offset: int
    last_offset: int
    timestamp: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    leader_epoch: int


class Placement(Struct, frozen=True):
    """An event's place: after the batch that ends at `after_offset`, before the one at `before_offset`.

    -1: before the first batch. None: after the last one. `at_ms` is its time by the batches' clock, None where unknown.
    `lost`: the event speaks of offsets that a later leader does not have.
    """

    event: LogEvent
    at_ms: int | None
    certainty: Certainty
    after_offset: int
    before_offset: int | None
    lost: bool = False


def states_log_end(event: LogEvent) -> bool:
    """Whether an event's offset is the log's end when it happened."""
    return event.offset is not None and event.event in _AT_LOG_END


class EventSource(Struct):
    """The events of one broker's logs that concern a partition, in order; `batch_time` gives a line's time by the batches' clock.

    `batch_time` is None where the clock is unknown.
    """

    events: Sequence[LogEvent]
    batch_time: Callable[[LogEvent], int | None] | None
    next: int = 0
    _following: list[int | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._following = [None] * (len(self.events) + 1)
        for index in range(len(self.events) - 1, -1, -1):
            event = self.events[index]
            self._following[index] = event.offset if states_log_end(event) else self._following[index + 1]

    @property
    def next_log_end(self) -> int | None:
        """The log's end that the lines after the next one name first, None if none of them does."""
        return self._following[self.next + 1]

    def time_of(self, event: LogEvent) -> int | None:
        """Return an event's time by the batches' clock."""
        return None if self.batch_time is None else self.batch_time(event)


class _Known(Struct):
    epoch: int
    last_sequence: int


class EventPlacer(Struct):
    """Places events of one partition while its batches are read: `before` for each batch, then `rest`."""

    sources: Sequence[EventSource]
    _producers: dict[int, _Known] = field(default_factory=dict)
    _end: int = 0
    _leader_epoch: int = -1

    def before(self, batch: LoggedBatch) -> Iterator[Placement]:
        """Yield the events between the batch before and this one."""
        changes_leader = self._leader_epoch not in (-1, batch.leader_epoch)
        ready = [
            (number, event, source.time_of(event), certainty, lost)
            for number, source in enumerate(self.sources)
            for event, certainty, lost in self._ready(source, batch, changes_leader=changes_leader)
        ]
        for _, event, time, certainty, lost in _in_order(ready):
            yield Placement(event, time, certainty, self._end - 1, batch.base_offset, lost)
        self._end, self._leader_epoch = batch.last_offset + 1, batch.leader_epoch
        if batch.producer_id >= 0 and batch.last_sequence >= 0:
            self._producers[batch.producer_id] = _Known(batch.producer_epoch, batch.last_sequence)

    def rest(self) -> Iterator[Placement]:
        """Yield the events after the last batch."""
        ready = []
        for number, source in enumerate(self.sources):
            for event in source.events[source.next :]:
                end = event.offset if states_log_end(event) else None
                certainty = Certainty.ORDER if end is None else Certainty.OFFSET
                ready.append((number, event, source.time_of(event), certainty, end is not None and end > self._end))
            source.next = len(source.events)
        for _, event, time, certainty, lost in _in_order(ready):
            yield Placement(event, time, certainty, self._end - 1, None, lost)

    def _ready(
        self, source: EventSource, batch: LoggedBatch, *, changes_leader: bool
    ) -> Iterator[tuple[LogEvent, Certainty, bool]]:
        while source.next < len(source.events):
            event = source.events[source.next]
            time = source.time_of(event)
            earlier = time is not None and time < batch.timestamp
            if states_log_end(event):
                assert event.offset is not None
                lost = event.offset > batch.base_offset
                if lost and not (changes_leader and earlier):
                    return
                yield event, Certainty.OFFSET, lost
            elif self._fits_only_now(event, batch):
                yield event, Certainty.SEQUENCE, False
            elif earlier:
                yield event, Certainty.TIME, False
            else:
                following = source.next_log_end
                if following is None or following > batch.base_offset:
                    return
                yield event, Certainty.ORDER, False
            source.next += 1

    def _fits_only_now(self, event: LogEvent, batch: LoggedBatch) -> bool:
        """Whether the producer's state is what the event says, and will not be after this batch."""
        if batch.producer_id != event.producer_id or event.last_sequence is None:
            return False
        known = self._producers.get(batch.producer_id)
        if known is None or known.last_sequence != event.last_sequence:
            return False
        return batch.last_sequence != event.last_sequence


_Ready = tuple[int, LogEvent, int | None, Certainty, bool]
"""The number of the source, the event, its time, its certainty, and whether its offsets are lost."""


def _in_order(ready: list[_Ready]) -> Iterable[_Ready]:
    """Events of several brokers by time; those of one broker stay in the order of its log."""
    if len({source for source, *_ in ready}) < 2:
        return ready
    latest: dict[int, int] = {}
    keyed = []
    for number, one in enumerate(ready):
        at = max(latest.get(one[0], 0), one[2] or 0)
        latest[one[0]] = at
        keyed.append((at, number, one))
    return [one for _, _, one in sorted(keyed, key=lambda key: key[:2])]


_KIND_OF_LOG = re.compile(r"server|state-change|controller|log-cleaner")
_NAMES_ITSELF = frozenset(
    {
        LogEventKind.STARTED,
        LogEventKind.STOPPED,
        LogEventKind.BROKER_STARTING,
        LogEventKind.BROKER_REGISTERED,
        LogEventKind.OUT_OF_ORDER_SEQUENCE,
        LogEventKind.BECAME_LEADER,
        LogEventKind.BECAME_FOLLOWER,
    }
)
"""Events in which a broker names itself; a controller's name others."""


def by_broker(events: Iterable[LogEvent]) -> dict[tuple[str, int | None], list[LogEvent]]:
    """Return events by directory and broker id, in the order of the broker's lines.

    A directory is one broker's, unless its files name several: then each file is its broker's, by its lines or else by the name of
    another file: log-cleaner-b1.log is of the broker of server-b1.log. The files of a broker - server.log, state-change.log, their
    rolled parts - are merged by time. The id is None where nothing says it.
    """
    homes: dict[str, dict[str, list[LogEvent]]] = {}
    for event in events:
        homes.setdefault(event.path.rpartition("/")[0], {}).setdefault(event.path, []).append(event)
    brokers: dict[tuple[str, int | None], list[list[LogEvent]]] = {}
    for home, files in homes.items():
        ids = {path: _broker_id(found) for path, found in files.items()}
        named = {broker for broker in ids.values() if broker is not None}
        by_name = {_without_kind(path): own for path, own in ids.items() if own is not None}
        by_name.pop("", None)
        for path, found in files.items():
            broker = ids[path] if len(named) > 1 else next(iter(named), None)
            broker = by_name.get(_without_kind(path)) if broker is None else broker
            brokers.setdefault((home, broker), []).append(found)
    return {key: _merged(found) for key, found in brokers.items()}


def _without_kind(path: str) -> str:
    """Return a log file's name without what says which of a broker's logs it is, and without what follows `.log` of a rolled part."""
    return _KIND_OF_LOG.sub("", path.rpartition("/")[2].partition(".log")[0])


def _broker_id(events: Iterable[LogEvent]) -> int | None:
    """Return the id by which most lines of a file name the broker that wrote them."""
    counts = Counter(
        event.broker_id for event in events if event.broker_id is not None and event.event in _NAMES_ITSELF
    )
    return counts.most_common(1)[0][0] if counts else None


def in_order(events: Iterable[LogEvent]) -> list[LogEvent]:
    """Return events of all logs by their times, as the logs have them."""
    files = grouped((event.path, event) for event in events)
    return _merged(list(files.values()))


def _merged(files: list[list[LogEvent]]) -> list[LogEvent]:
    """Merge files by time; a line without a time goes with the line before it."""
    keyed: list[tuple[int, str, int, LogEvent]] = []
    for events in files:
        latest = -1
        for event in events:
            latest = latest if event.timestamp_ms is None else max(latest, event.timestamp_ms)
            keyed.append((latest, event.path, event.line, event))
    keyed.sort(key=lambda key: key[:3])
    return [event for *_, event in keyed]
