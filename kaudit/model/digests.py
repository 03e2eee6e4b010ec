"""Digests of ranges of a log's offsets, and of the batches that a report is about."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from kaudit.model.json_record import JsonRecord

ALGORITHM = "kaudit.fingerprint/1"
"""How digests are made: the schema of a fingerprint. SHA-256 over base offset, last offset, leader epoch and CRC of each valid batch."""
LEAF_OFFSETS = 1024
"""Offsets of the narrowest range that has a digest."""
MOST_RANGES = 64
"""Digests of one row of ranges."""
DIGESTS = 1024
"""Digests of a whole document, as long as each partition gets FEWEST_RANGES: 64 bytes each."""
FEWEST_RANGES = 4

Offset = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


def ranges_each(partitions: int) -> int:
    """Return the number of digests that each partition gets in a document with this many partitions."""
    return max(FEWEST_RANGES, min(MOST_RANGES, DIGESTS // max(partitions, 1)))


class RangeDigests(JsonRecord, frozen=True):
    """Digests of ranges of `width` offsets each, side by side from `first_offset`; None: no batch begins in the range.

    Widths are powers of two from LEAF_OFFSETS, and ranges begin at multiples of them. Raises ValueError for others.
    """

    first_offset: Offset
    width: Annotated[int, Meta(ge=LEAF_OFFSETS, le=1 << 62)]
    digests: Annotated[Sequence[Digest | None], Meta(min_length=1, max_length=MOST_RANGES)]

    def __post_init__(self) -> None:
        if self.width & (self.width - 1) or self.first_offset % self.width:
            raise ValueError("ranges begin at multiples of their width, a power of two")

    @property
    def end_offset(self) -> int:
        """Offset after the last range."""
        return self.first_offset + self.width * len(self.digests)


class PartitionDigest(JsonRecord, frozen=True):
    """The batches of one partition replica that an audit covers: those of its log from `start_offset` to `end_offset` (exclusive).

    `digest` is that of all of them, `ranges` those of ranges of their offsets; None where there is no batch.
    """

    topic: str
    partition: Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
    replica: str
    start_offset: Offset
    end_offset: Offset
    batches: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    digest: Digest | None
    ranges: RangeDigests | None
    compacted: bool
    """The log cleaner may rewrite these offsets, or has."""
    damaged: bool
    """Some bytes were no valid batch: they are in no digest."""

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition."""
        return self.topic, self.partition


class Digests(JsonRecord, frozen=True):
    """The batches that an audit covers, for each partition replica that was read whole, in the order of the partitions."""

    algorithm: str
    partitions: Sequence[PartitionDigest]
