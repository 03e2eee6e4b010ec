"""The events of a run that a sequence diagram shows, in order."""

from enum import Enum
from typing import NamedTuple


class EventKind(Enum):
    """What happened."""

    REQUEST = "request"
    RESPONSE = "response"
    LOST = "lost"
    """A message that never arrives."""
    REPLICATION = "replication"
    NOTE = "note"
    FAULT = "fault"
    """Something done to the cluster or a client by the scenario."""


class TraceEvent(NamedTuple):
    """A message from one participant to another, or, with the same one twice, what one did.

    `sent_at` and `at` (arrival) in ms since the run began; `is_error`: the response is an error.
    """

    kind: EventKind
    sent_at: int
    at: int
    source: str
    target: str
    text: str
    is_error: bool = False


DEFAULT_LIMIT = 400


class Trace:
    """Keeps the first `limit` events and all faults; counts the rest."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._ordinary = 0
        self.events: list[TraceEvent] = []
        self.omitted = 0

    @property
    def is_full(self) -> bool:
        """Whether only faults are still kept: then no text is needed for other events."""
        return self._ordinary >= self._limit

    def add(self, event: TraceEvent) -> None:
        """Add an event."""
        if event.kind is not EventKind.FAULT:
            if self._ordinary >= self._limit:
                self.omitted += 1
                return
            self._ordinary += 1
        self.events.append(event)

    def note(self, at: int, who: str, text: str) -> None:
        """Add what one participant did."""
        self.add(TraceEvent(EventKind.NOTE, at, at, who, who, text))

    def fault(self, at: int, who: str, text: str) -> None:
        """Add what the scenario did to a participant."""
        self.add(TraceEvent(EventKind.FAULT, at, at, who, who, text))
