"""Events of logs as entries of producers' timelines, in order with the batches."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable

from kaudit.audits.log_events.placement import Certainty, states_log_end
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.columns import Columns
from kaudit.model.timeline import OPTIONAL_EVENT_FIELDS, RUN, EventEntry

MAX_SHARED = 100
"""Events of the partition are on every timeline where there are no more timelines than this."""
_OF_COORDINATOR = "__transaction_state"
"""Events of this topic's partitions concern transactions in any partition."""
_OF_PARTITION = frozenset(
    {
        LogEventKind.UNCLEAN_LEADER_ELECTED,
        LogEventKind.BECAME_LEADER,
        LogEventKind.TRUNCATED,
        LogEventKind.LOG_START_OFFSET_MOVED,
        LogEventKind.CORRUPTION,
        LogEventKind.RECOVERY,
    }
)
"""Events that concern every producer of a partition."""


class TimelineEvents:
    """The events that stand on timelines of one partition.

    `batch_time` gives an event's time by the batches' clock, `producer_id` the producer id that an event is about, None where it is
    about none.
    """

    def __init__(
        self,
        events: Iterable[LogEvent],
        topic: str,
        partition: int,
        batch_time: Callable[[LogEvent], int | None],
        producer_id: Callable[[LogEvent], int | None],
    ) -> None:
        self._batch_time = batch_time
        self._of_producer: dict[int, list[LogEvent]] = defaultdict(list)
        self._shared: list[LogEvent] = []
        for event in events:
            here = (event.topic, event.partition) == (topic, partition)
            own = producer_id(event)
            if own is not None and (here or event.topic in {None, _OF_COORDINATOR}):
                self._of_producer[own].append(event)
            elif here and event.event in _OF_PARTITION:
                self._shared.append(event)

    def entries(self, producer_id: int, placed: Columns, *, shared: bool) -> list[EventEntry]:
        """Return the events of one producer id, those of the partition too if `shared`; `placed` are its runs and markers (HISTORY_ROW)."""
        return [
            self._entry(event, placed)
            for event in (*self._of_producer.get(producer_id, ()), *(self._shared if shared else ()))
        ]

    def _entry(self, event: LogEvent, placed: Columns) -> EventEntry:
        time = self._batch_time(event)
        offset, certainty = _place(event, time, placed)
        return EventEntry(
            offset=offset,
            placed_by=certainty.value,
            timestamp=time,
            event=event.event.value,
            origin=event.origin,
            producer_epoch=event.producer_epoch,
            path=event.path,
            line=event.line,
            text=event.text.partition("\n")[0],
            **{name: getattr(event, name) for name in OPTIONAL_EVENT_FIELDS},
        )


def _place(event: LogEvent, time: int | None, placed: Columns) -> tuple[int | None, Certainty]:
    """Return the offset of the log's end when it happened, None where nothing says it, and what says it.

    By its time alone an event stands after the producer's last entry that began before it.
    """
    if states_log_end(event):
        return event.offset, Certainty.OFFSET
    if event.last_sequence is not None:
        first, last = placed["first_sequence"], placed["last_sequence"]
        has = (placed["row"] == RUN) & (first <= event.last_sequence) & (event.last_sequence <= last)
        if has.any():
            return placed.value("last_offset", int(has.argmax())) + 1, Certainty.SEQUENCE
    if time is None:
        return None, Certainty.ORDER
    before = bisect_left(placed["max_timestamp"].tolist(), time)
    if before == 0:
        return (placed.value("first_offset", 0) if len(placed) else None), Certainty.TIME
    return placed.value("last_offset", before - 1) + 1, Certainty.TIME
