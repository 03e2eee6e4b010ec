"""A range of a segment file that holds no usable batch."""

import enum

from msgspec import Struct


class DamageKind(enum.Enum):
    """What the bytes seem to be."""

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
    """No damage of the log: a text of it does not show these bytes."""


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
