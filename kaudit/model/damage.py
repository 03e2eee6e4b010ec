"""Faults of a log itself: ranges without usable batches, batches that contradict themselves, missing offsets."""

import enum

from msgspec import Struct


class DamageKind(enum.Enum):
    """The kind of damage, as far as the bytes show it."""

    CRC_MISMATCH = "crc-mismatch"
    """Framing holds, content does not match its CRC."""
    TORN = "torn"
    """The file ends inside a batch that is valid so far."""
    UNPARSABLE = "unparsable"
    """Garbage, an unknown magic, or a length that lost the framing."""
    ZEROS = "zeros"
    OUT_OF_ORDER = "out-of-order"
    """A valid batch whose offsets do not follow its neighbours'."""
    LEFT_OUT = "left-out"
    """Not damage of the log: a text of the log does not show these bytes."""


_PAGE_BYTES = 4096
"""The least size of a page of memory."""


class LogDamage(Struct, frozen=True):
    """Bytes `position` (inclusive) to `end` (exclusive) of a segment; `base_offset`/`last_offset` as the header claims.

    `resynchronised` says whether a batch whose CRC holds follows; otherwise the range reaches the end of the file.
    """

    kind: DamageKind
    position: int
    end: int
    resynchronised: bool
    detail: str
    base_offset: int | None = None
    last_offset: int | None = None
    producer_id: int | None = None

    @property
    def ends_inside_append(self) -> bool:
        """Whether the file was cut by something other than its broker: it ends inside a batch, and not with a page.

        A broker writes what it appends at once (MemoryRecords.writeFullyTo), and truncates a log at a batch. Of a write that a copy, a
        stop or a full disk interrupts, whole pages are there.
        """
        return self.kind is DamageKind.TORN and self.end % _PAGE_BYTES != 0


class MalformedBatch(Struct, frozen=True):
    """One batch; `limited`: its content was larger than the limit, not wrong.

    `position` and `size` in the segment file of index `segment`, `record_count` as its header claims.
    """

    segment: int
    position: int
    size: int
    base_offset: int
    last_offset: int
    record_count: int
    producer_id: int
    producer_epoch: int
    detail: str
    limited: bool = False
    limit: int | None = None


class MissingCause(enum.Enum):
    """Why offsets are missing (the timeline's `cause`)."""

    LOG_START = "log-start"
    COMPACTION = "compaction"
    DAMAGE = "damage"
    MISSING_SEGMENT = "missing-segment"
    UNKNOWN = "unknown"


class MissingOffsets(Struct, frozen=True):
    """Offsets that no valid batch covers, inclusive; `position` is the byte in `segment` where the next batch begins.

    `fetched_cleaned`: no log cleaner of this broker removed them, but batches above them were rewritten by one: a leader's
    cleaner had been there when this replica fetched them, or it removed them before this replica did.
    """

    first_offset: int
    last_offset: int
    cause: MissingCause
    segment: int
    position: int
    empty_segment: int | None = None
    fetched_cleaned: bool = False

    @property
    def count(self) -> int:
        """The number of missing offsets, at least 1."""
        return self.last_offset - self.first_offset + 1


class PlacedDamage(Struct, frozen=True):
    """Damage in a segment, with the offsets it cost: None if it cost none or that is unknown."""

    damage: LogDamage
    segment: int
    expected_offset: int | None
    first_missing: int | None
    last_missing: int | None


class LeaderEpochRegression(Struct, frozen=True):
    """A batch whose leader epoch does not fit its neighbours."""

    leader_epoch: int
    expected_epoch: int
    base_offset: int
    last_offset: int
    position: int
    segment: int
