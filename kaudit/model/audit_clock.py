"""The time that idleness is measured against, and what shows that it has come."""

from enum import Enum

from msgspec import Struct

from kaudit.model.coordinator import MAX_TRANSACTION_TIMEOUT_MS
from kaudit.model.json_record import JsonRecord
from kaudit.model.transactions import OpenTransaction

_LONGEST_IDLE_MS = MAX_TRANSACTION_TIMEOUT_MS + 5 * 60_000
"""The margin is what brokers add before they call a transaction late (KAFKA-13221)."""


class ClockSource(Enum):
    """What shows that the time of an audit has come; the value is its name in JSON."""

    GIVEN = "given"
    BROKERS = "brokers"
    CLIENTS = "clients"
    FILES = "files"

    @property
    def is_proof(self) -> bool:
        """Whether idleness follows from it: timestamps of clients and the times of copied files may be anything."""
        return self in {ClockSource.GIVEN, ClockSource.BROKERS}


class Idleness(Struct, frozen=True):
    """For how long a transaction or a producer had no batch, ms: what is proven, and what it looks like; may be negative."""

    proven_ms: int
    apparent_ms: int

    @property
    def is_too_long(self) -> bool:
        """Whether no transaction takes so long."""
        return self.proven_ms >= _LONGEST_IDLE_MS

    @property
    def seems_too_long(self) -> bool:
        """Whether timestamps of clients say so, and nothing that brokers wrote does."""
        return self.apparent_ms >= _LONGEST_IDLE_MS > self.proven_ms


class AppendTime(Struct, frozen=True):
    """When brokers appended a batch: between times that they wrote before and after it, ms, -1 where they wrote none."""

    offset: int
    since_ms: int = -1
    until_ms: int = -1

    def idleness(self, last_ms: int, own_ms: int) -> Idleness:
        """Return for how long its producer was idle by then; `last_ms`: the newest time before, `own_ms`: the batch's own.

        A broker takes the time that the record before has, and its own for this one (ProducerStateManager.isProducerExpired).
        """
        latest = own_ms if self.until_ms < 0 else min(own_ms, self.until_ms)
        return Idleness(max(self.since_ms - last_ms, -1), max(self.since_ms, latest) - last_ms)


class AuditClock(JsonRecord, frozen=True):
    """The time of an audit and the newest timestamp of any batch, ms since 1970; -1 where no batch has one.

    The newest may be a client's mistake: up to the modification of the newest file, or up to a day after it. For `quiet_ms` after
    these nothing has been appended, as a watch saw.
    """

    now_timestamp: int
    source: ClockSource
    newest_timestamp: int
    quiet_ms: int = 0

    @property
    def now_ms(self) -> int:
        """The time of the audit; the latest that is shown to have come where the source is a proof."""
        return self.now_timestamp + self.quiet_ms

    @property
    def latest_ms(self) -> int:
        """The latest time that anything shows, if it is only a client's timestamp: for lists, where nothing follows from it."""
        return max(self.now_timestamp, self.newest_timestamp) + self.quiet_ms

    def has_passed(self, limit_ms: int, since_ms: int) -> bool:
        """Whether so much time is shown to have passed since a time that a broker measures from."""
        passed = self.now_ms - since_ms if self.source.is_proof else self.quiet_ms
        return passed >= limit_ms

    def idleness(self, transaction: OpenTransaction, decided_ms: int = -1) -> Idleness:
        """Return for how long a transaction is idle; `decided_ms`: when its coordinator decided how it ends, -1 if it did not.

        Its newest batch is as old as the first time that a broker wrote after it. Only where the user gives the time is the
        batch's own taken for true: that user has the log's time in mind.
        """
        own, proven = transaction.last_timestamp, self.quiet_ms
        known = [time for time in (transaction.appended_by, decided_ms) if time >= 0]
        if self.source is ClockSource.GIVEN:
            proven = max(proven, self.now_ms - max(own, transaction.marker_timestamp))
        elif self.source.is_proof and known:
            proven = max(proven, self.now_ms - min(known))
        return Idleness(proven, self.latest_ms - own)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form, which says whether the source is a proof."""
        return {**super().to_dict(), "is_proof": self.source.is_proof}


def given_clock(now_ms: int) -> AuditClock:
    """Return the clock of a user who says what time it is, in ms since 1970."""
    return AuditClock(now_ms, ClockSource.GIVEN, now_ms)
