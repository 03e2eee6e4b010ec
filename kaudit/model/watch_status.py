"""The state of a watch, as its table and its metrics show it."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaudit.model.finding import Finding


class WatchedPartition(Struct, frozen=True):
    """One partition replica. Offsets are exclusive ends, None for a log without a batch.

    `open_since`: timestamp of the first batch of the oldest open transaction, ms, None without one.
    """

    topic: str
    partition: int
    replica: str
    log_end_offset: int | None
    last_stable_offset: int | None
    producers: int
    open_transactions: int
    open_since: int | None

    @property
    def last_stable_offset_lag(self) -> int:
        """Offsets that read_committed consumers do not get because a transaction is open."""
        if self.log_end_offset is None or self.last_stable_offset is None:
            return 0
        return self.log_end_offset - self.last_stable_offset


class ReportedAt(Struct, frozen=True):
    """A finding, and when it was reported: ms since the epoch by the wall clock."""

    finding: Finding
    at_ms: int


class WatchStatus(Struct, frozen=True):
    """Everything that is shown after a round.

    `reported` and `present` are numbers of new findings by (code, severity): ever reported, and in the logs now,
    waiting ones included. `unreadable`: files that could not be read. `round_seconds`: how long the round took;
    `read_bytes` counts over all runs that share a state file; `now_ms` is the wall clock.
    """

    inputs: Sequence[str]
    started_ms: int
    now_ms: int
    partitions: Sequence[WatchedPartition]
    reported: Mapping[tuple[str, str], int]
    present: Mapping[tuple[str, str], int]
    waiting: int
    read_bytes: int
    read_per_second: float
    repeated_readings: int
    unreadable: int
    round_seconds: float
    clock_ms: int
    newest: Sequence[ReportedAt] = ()
