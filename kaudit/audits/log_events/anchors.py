"""Lines of server logs whose place among the batches is known whatever the clocks say: what a log's clock is estimated from."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from kaudit.audits.log_events.clock import Anchor
from kaudit.audits.log_events.placement import LoggedBatch, states_log_end
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.coordinator import TransactionRecord, TransactionStatus

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
        """Return each event that is one with its anchor, once the log has been read."""
        exact = zip(self._exact, self._after, self._before, strict=True)
        behind = [(event, _anchor(event, self._latest, None)) for event in self._exact[self._done :]]
        between = [(event, _anchor(event, after, before)) for event, after, before in exact][: self._done]
        return [*between, *behind, *self._anchors]


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
