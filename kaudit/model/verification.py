"""Whether a log still holds what a report judged, by the report's digests."""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from kaudit.model.json_record import JsonRecord
from kaudit.model.replicas import OffsetRange
from kaudit.model.result import NotAudited


class Verdict(Enum):
    """What became of a partition since it was judged."""

    UNCHANGED = "unchanged"
    """All that can be compared is the same."""
    DIFFERS = "differs"
    """Some of it is not the same, or the log ends before it."""
    CLEANED = "cleaned"
    """It differs only where the log cleaner may have been."""
    UNPROVEN = "unproven"
    """Nothing of it can be compared: retention has removed too much, or it cannot be read."""
    MISSING = "missing"
    """The partition is not there."""


class PartitionVerification(JsonRecord, frozen=True):
    """What a log holds now of offsets `start_offset` to `end_offset` (exclusive) of a partition, which a report judged.

    `unchanged`, `differing`, `cleaned` and `not_compared` are ranges of these offsets: differing somewhere in the range; not
    compared where the digest covers removed records too. `removed`: what the log no longer begins with, `lost`: what it no longer
    ends with. `log_start_offset` and `log_end_offset` are the log's own now, None where it is not there.
    """

    topic: str
    partition: int
    replica: str
    verdict: Verdict
    start_offset: int
    end_offset: int
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    unchanged: Sequence[OffsetRange] = ()
    differing: Sequence[OffsetRange] = ()
    cleaned: Sequence[OffsetRange] = ()
    not_compared: Sequence[OffsetRange] = ()
    removed: OffsetRange | None = None
    lost: OffsetRange | None = None
    damaged: bool = False
    """Some bytes of the log are no valid batch."""

    @property
    def grown(self) -> OffsetRange | None:
        """Offsets that the log has beyond what was judged."""
        end = self.log_end_offset
        return OffsetRange(self.end_offset, end - 1) if end is not None and end > self.end_offset else None


class Verification(Struct, frozen=True):
    """All partitions of a report, and those that lie beside them and that it did not judge."""

    inputs: Sequence[str]
    partitions: Sequence[PartitionVerification]
    not_judged: Sequence[tuple[str, int]]
    not_audited: Sequence[NotAudited] = ()
    incomplete: bool = False
