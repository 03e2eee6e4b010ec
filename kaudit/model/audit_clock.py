"""The time that idleness is measured against, and what shows that it has come."""

from enum import Enum

from msgspec import Struct


class ClockSource(Enum):
    """What shows that the time of an audit has come, the surest first; the value is how reports name it."""

    GIVEN = "--now"
    BROKERS = "times written by brokers"
    FILES = "modification times of the files that hold the newest batches"
    CLIENTS = "timestamps of two clients that agree"
    NEWEST_FILE = "the newest file, as no batch has a timestamp"
    ONE_CLIENT = "timestamps of one client alone"

    @property
    def is_proof(self) -> bool:
        """Whether it is more than the timestamps of one client."""
        return self not in {ClockSource.NEWEST_FILE, ClockSource.ONE_CLIENT}


class AuditClock(Struct, frozen=True):
    """The time of an audit, ms since 1970, and the newest timestamp in the batches, -1 without one; that may be a client's mistake."""

    now_ms: int
    source: ClockSource
    newest_ms: int = -1
