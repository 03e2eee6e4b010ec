"""Breaks in a partition's offsets and leader epochs, and the damage behind them."""

import enum

from msgspec import Struct

from kaudit.model.damage import LogDamage


class MissingCause(enum.Enum):
    """Why offsets are missing (the timeline's `cause`)."""

    LOG_START = "log-start"
    COMPACTION = "compaction"
    DAMAGE = "damage"
    MISSING_SEGMENT = "missing-segment"
    UNKNOWN = "unknown"


class MissingOffsets(Struct, frozen=True):
    """Offsets no valid batch covers, inclusive; `position` is the byte in `segment` where the log goes on."""

    first_offset: int
    last_offset: int
    cause: MissingCause
    segment: int
    position: int
    empty_segment: int | None = None

    @property
    def count(self) -> int:
        """How many, at least 1."""
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
