"""The one error that every parser of this package raises, and the damage that a parser lists beside rows."""

from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct


class Reason(StrEnum):
    """Kind of a fault, for machines; the sentence for people is the error's `detail`."""

    TRUNCATED = "truncated"  # the buffer ends before what it announces
    LENGTH = "length"  # a length or size contradicts the bytes around it
    COUNT = "count"  # a count contradicts what is there
    TRAILING = "trailing"  # bytes left over after everything announced
    VERSION = "version"  # a version (or magic) this format never had
    CRC = "crc"
    CODEC = "codec"  # unknown compression codec
    DECOMPRESSION = "decompression"  # the codec's own library refuses the bytes
    LIMIT = "limit"  # may be correct, but larger than kaudit holds
    VARINT = "varint"  # a variable-length integer without end or beyond its type
    ORDER = "order"  # offsets or deltas that run backwards or leave their range
    TEXT = "text"  # not UTF-8, or not the text expected here
    VALUE = "value"  # a field outside what its type can mean


class WireError(ValueError):
    """Bytes that do not have the format expected at their place.

    `position` is the byte in the buffer handed to the parser (for text: the byte the line starts at) where the
    contradiction shows, `reason` its kind, `detail` one sentence with the values seen.
    """

    def __init__(self, position: int, reason: Reason, detail: str) -> None:
        self.position = position
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.detail} (at byte {self.position})"


class LimitExceededError(WireError):
    """Output or a declared size above the limit the caller set; nothing larger was allocated."""

    def __init__(self, position: int, limit: int, detail: str) -> None:
        super().__init__(position, Reason.LIMIT, detail)
        self.limit = limit

    @classmethod
    def of_output(cls, position: int, limit: int) -> "LimitExceededError":
        """The error for compressed bytes that become more than `limit` bytes."""
        return cls(position, limit, f"decompresses to more than the limit of {limit} bytes")


class MissingContentError(Exception):
    """A text of kafka-dump-log lacks records that its segment holds, or what is in them; says which."""


class Damage(Struct, frozen=True):
    """A part of a file of rows that gave no row: bytes `position` to `end` (exclusive), kept beside the good rows."""

    position: int
    end: int
    reason: Reason
    detail: str


RowT = TypeVar("RowT")


class ParsedRows(Struct, Generic[RowT], frozen=True):
    """A file of rows: those that could be read, in file order, and the parts that gave none."""

    rows: tuple[RowT, ...]
    damage: tuple[Damage, ...]
