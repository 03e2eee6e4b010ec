"""What side files are compared with: a partition as it was read."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.analysis.scan.rows import Rows
from kaudit.model.continuity import MissingCause, MissingOffsets, PlacedDamage
from kaudit.source.kafka.fetched_segment import Aborted
from kaudit.source.layout import PartitionDirectory


class LogFacts(Struct, frozen=True):
    """A partition as it was read. Offsets named `end` are exclusive.

    `ended` are its markers (analysis.transactions.transaction_spans.ENDED), None if not all could be kept; `epoch_steps`
    the first batch of every run of one leader epoch, in offset order; `unread`: a segment could not be read; `listed_aborts`: what brokers
    list as aborted, where they sent the log.
    """

    directory: PartitionDirectory
    damages: Sequence[PlacedDamage]
    missing: Sequence[MissingOffsets]
    compacted: bool
    first_offset: int | None
    log_end_offset: int | None
    has_legacy: bool
    epoch_regressions: bool
    epoch_steps: Rows
    ended: Rows | None
    unread: bool
    listed_aborts: Aborted = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether nothing but what retention deleted is missing."""
        return not (self.damages or self.compacted or self.unread) and all(
            gap.cause is MissingCause.LOG_START for gap in self.missing
        )
