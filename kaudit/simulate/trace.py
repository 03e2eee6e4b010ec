"""What happened, in order, as people are told it: the rows of the ladder."""

from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """What a row is."""

    REQUEST = "request"
    RESPONSE = "response"
    LOST = "lost"
    """A message that never arrives."""
    REPLICATION = "replication"
    NOTE = "note"
    FAULT = "fault"
    """Something done to the cluster or a client by the scenario."""


class Row(NamedTuple):
    """A message from one participant to another, or, with the same one twice, what one did.

    `sent_at` and `at` (arrival) in ms; `refused`: an error was answered. `repeated` rows like it follow.
    """

    kind: Kind
    sent_at: int
    at: int
    source: str
    target: str
    text: str
    refused: bool = False
    repeated: int = 0


DEFAULT_LIMIT = 400


class Trace:
    """Keeps the first `limit` rows and, whatever their number, faults; counts the rest."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._ordinary = 0
        self.rows: list[Row] = []
        self.omitted = 0

    @property
    def is_full(self) -> bool:
        """Whether only faults are taken any more: then nobody needs to word the rest."""
        return self._ordinary >= self._limit

    def add(self, row: Row) -> None:
        """Take note of a row."""
        if row.kind is not Kind.FAULT:
            if self._ordinary >= self._limit:
                self.omitted += 1
                return
            self._ordinary += 1
        self.rows.append(row)

    def note(self, at: int, who: str, text: str) -> None:
        """Take note of what one participant did."""
        self.add(Row(Kind.NOTE, at, at, who, who, text))

    def fault(self, at: int, who: str, text: str) -> None:
        """Take note of what the scenario did to a participant."""
        self.add(Row(Kind.FAULT, at, at, who, who, text))
