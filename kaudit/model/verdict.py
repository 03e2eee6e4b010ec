"""The verdict over a result: what was lost or written twice, what is blocked, and what to do first."""

from collections.abc import Sequence

from kaudit.model.finding import Severity
from kaudit.model.impact import Caution
from kaudit.model.json_record import JsonRecord


class PartitionBounds(JsonRecord, frozen=True):
    """Records lost, or written twice, over partitions: `at_most` bounds those where a bound is known.

    `partitions` counts them; in `unknown_in` others only the lower bound is known. `at_least` is of all of them.
    """

    at_least: int = 0
    at_most: int = 0
    partitions: int = 0
    unknown_in: int = 0

    @property
    def nothing(self) -> bool:
        """Whether no partition is concerned."""
        return not self.partitions and not self.unknown_in


class BlockedPartition(JsonRecord, frozen=True):
    """A partition whose last stable offset an open transaction holds back, and since when (ms since the epoch).

    `offsets_invisible` is None where the end of the log is not known. `severity`: note where the transaction may still
    end by itself. `open_transactions` are all of the partition, `siblings` the ids of members of their applications that went on.
    `aborted_at_timestamp` (ms) is when a coordinator aborts the first of them.
    """

    topic: str
    partition: int
    last_stable_offset: int | None
    offsets_invisible: int | None
    since_timestamp: int | None
    severity: Severity
    transactional_ids: Sequence[str] = ()
    open_transactions: int = 0
    siblings: Sequence[str] = ()
    aborted_at_timestamp: int | None = None


class Verdict(JsonRecord, frozen=True):
    """At most three lines, the same in every format, and the numbers in them.

    `lines`: what was lost or written twice, with bounds; what is blocked now and since when; what to do first, and what
    not to do before. `severity` is the worst of the new findings, None without errors and warnings. `first` is the command
    or the act to begin with, `blocked` lists the first partitions by name.
    """

    lines: Sequence[str]
    severity: Severity | None
    records_lost: PartitionBounds
    records_duplicated: PartitionBounds
    blocked: Sequence[BlockedPartition] = ()
    blocked_partitions: int = 0
    first: str | None = None
    cautions: Sequence[Caution] = ()
