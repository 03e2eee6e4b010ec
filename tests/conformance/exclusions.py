"""What recorded answers hold that attempts cannot express: one line each, with the reason."""

from typing import NamedTuple


class Exclusion(NamedTuple):
    topic: str  # "*" for any
    op: str  # "*" for any
    field: str
    reason: str
    only: tuple[str, str] | None = None
    """What we answer and what is recorded, where the exclusion is for no other difference."""

    def covers(self, topic: str, op: str, field: str, values: tuple[object, object]) -> bool:
        named = self.topic in ("*", topic) and self.op in ("*", op) and self.field == field
        return named and self.only in (None, values)


_WRITTEN_BEFORE = "the batch had been written when it came with acks=0 (its CRC is on disk): the recorder called it new"


EXCLUSIONS = (
    Exclusion("*", "describe", "fetch_error", "the recorder's own fetch, always NONE; no field of attempts or answers"),
    Exclusion(
        "s39c-compacted-txn", "describe", "aborted", "the cleaner removed an aborted transaction; no line says so"
    ),
    Exclusion(
        "*",
        "produce",
        "outcome",
        "the recorder did not look whether a refused acks=0 closed its connection",
        ("connection-closed", "no-response"),
    ),
    Exclusion("s40-truncated-head", "describe", "log_start_offset", "kill -9 before the log start was checkpointed"),
    Exclusion("s55-acks-0", "produce", "outcome", _WRITTEN_BEFORE, ("duplicate", "appended")),
    Exclusion("b11-acks0", "produce", "outcome", _WRITTEN_BEFORE, ("duplicate", "appended")),
)

# `last_timestamp` where no client sent that time: a marker, LogAppendTime or a batch put on disk has the broker's own
# clock, which attempts give to the second at best. Compared with this tolerance, exactly everywhere else.
BROKER_CLOCK_TOLERANCE_MS = 120_000

# What the recorded brokers were configured with but their lines do not say (tests/live_brokers/jvm.py): how often a coordinator looks
# for transactions that timed out, and how often log starts are checkpointed.
UNRECORDED_CONFIG = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
}
