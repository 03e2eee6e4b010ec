"""The places of server log events in a partition's order: the offsets around each, and the reason."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum, auto

from msgspec import Struct, field

from kaudit.model.application_logs import LogEvent, LogEventKind

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
    """The events of one broker's logs that concern a partition, in order; `to_batch_time` turns a line's time into the batches'.

    `to_batch_time` is None where the clock is unknown.
    """

    events: Sequence[LogEvent]
    to_batch_time: Callable[[int], int] | None
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
        if event.timestamp_ms is None or self.to_batch_time is None:
            return None
        return self.to_batch_time(event.timestamp_ms)


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
            (event, source.time_of(event), certainty, lost)
            for source in self.sources
            for event, certainty, lost in self._ready(source, batch, changes_leader=changes_leader)
        ]
        for event, time, certainty, lost in _in_order(ready):
            yield Placement(event, time, certainty, self._end - 1, batch.base_offset, lost)
        self._end, self._leader_epoch = batch.last_offset + 1, batch.leader_epoch
        if batch.producer_id >= 0 and batch.last_sequence >= 0:
            self._producers[batch.producer_id] = _Known(batch.producer_epoch, batch.last_sequence)

    def rest(self) -> Iterator[Placement]:
        """Yield the events after the last batch."""
        ready = []
        for source in self.sources:
            for event in source.events[source.next :]:
                end = event.offset if states_log_end(event) else None
                certainty = Certainty.ORDER if end is None else Certainty.OFFSET
                ready.append((event, source.time_of(event), certainty, end is not None and end > self._end))
            source.next = len(source.events)
        for event, time, certainty, lost in _in_order(ready):
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


_Ready = tuple[LogEvent, int | None, Certainty, bool]


def _in_order(ready: list[_Ready]) -> Iterable[_Ready]:
    """Events of several brokers by time; those of one broker stay in the order of its log."""
    if len({event.path.rpartition("/")[0] for event, *_ in ready}) < 2:
        return ready
    latest: dict[str, int] = {}
    keyed = []
    for number, (event, time, certainty, lost) in enumerate(ready):
        home = event.path.rpartition("/")[0]
        at = max(latest.get(home, 0), time or 0)
        latest[home] = at
        keyed.append((at, number, (event, time, certainty, lost)))
    return [one for _, _, one in sorted(keyed, key=lambda key: key[:2])]


def by_directory(events: Iterable[LogEvent]) -> dict[str, list[LogEvent]]:
    """Return events by the directory of their log, which is one broker's, in the order of its lines.

    The files of a directory - server.log, state-change.log, their rolled parts - are merged by time.
    """
    homes: dict[str, dict[str, list[LogEvent]]] = {}
    for event in events:
        homes.setdefault(event.path.rpartition("/")[0], {}).setdefault(event.path, []).append(event)
    return {home: _merged(list(files.values())) for home, files in homes.items()}


def in_order(events: Iterable[LogEvent]) -> list[LogEvent]:
    """Return events of all logs by their times, as the logs have them."""
    files: dict[str, list[LogEvent]] = {}
    for event in events:
        files.setdefault(event.path, []).append(event)
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
