"""What recorded answers hold that attempts cannot tell: one line each, with the reason."""

from typing import NamedTuple


class Exclusion(NamedTuple):
    topic: str  # "*" for any
    op: str  # "*" for any
    field: str
    reason: str

    def covers(self, topic: str, op: str, field: str) -> bool:
        return self.topic in ("*", topic) and self.op in ("*", op) and self.field == field


EXCLUSIONS = (
    Exclusion("*", "describe", "fetch_error", "the recorder's own fetch, always NONE; no field of attempts or answers"),
    Exclusion("s39c-compacted-txn", "describe", "aborted", "the cleaner removed an aborted transaction; no line tells"),
    Exclusion("s40-truncated-head", "describe", "log_start_offset", "kill -9 before the log start was checkpointed"),
)

# `last_timestamp` where no client sent that time: a marker, LogAppendTime or a batch put on disk has the broker's own
# clock, which attempts tell to the second at best. Compared with this tolerance, exactly everywhere else.
BROKER_CLOCK_TOLERANCE_MS = 120_000
