"""Logs compared by digests of ranges of their offsets: the fingerprints of two sites, or a log and an earlier report."""

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from kaudit.model.digests import LEAF_OFFSETS, Digest, Offset, RangeDigests
from kaudit.model.json_record import JsonRecord
from kaudit.model.replicas import OffsetRange, Relation
from kaudit.model.result import NotAudited

MOST_NARROWED = 8
"""Ranges of one partition that are cut into narrower ones at a time, the first of those that differ."""


class HeldBatch(Struct, frozen=True, array_like=True):
    """What identifies a batch on every replica. `crc` is unsigned; `leader_epoch` is -1 where a batch has none."""

    base_offset: Offset
    last_offset: Offset
    leader_epoch: Annotated[int, Meta(ge=-1, le=(1 << 31) - 1)]
    crc: Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]


class ListedBatches(Struct, frozen=True):
    """All batches that begin in LEAF_OFFSETS offsets from `first_offset`, a multiple of that. Raises ValueError for others."""

    first_offset: Offset
    batches: Annotated[Sequence[HeldBatch], Meta(max_length=LEAF_OFFSETS)]

    def __post_init__(self) -> None:
        bases = [batch.base_offset for batch in self.batches]
        within = all(self.first_offset <= base < self.end_offset for base in bases)
        if self.first_offset % LEAF_OFFSETS or not within or any(one >= other for one, other in pairwise(bases)):
            raise ValueError("batches are listed in offset order, within their range")

    @property
    def end_offset(self) -> int:
        """Offset after the range."""
        return self.first_offset + LEAF_OFFSETS


class PartitionFingerprint(Struct, frozen=True):
    """What one replica of a partition holds from `start_offset` to `end_offset` (exclusive) of its log.

    `digest` is that of all of it. A digest covers base offset, last offset, leader epoch and CRC of every batch with a valid
    CRC: replicas that hold the same have the same, whatever their segments are.
    """

    topic: str
    partition: Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
    log_start_offset: Offset
    log_end_offset: Offset
    start_offset: Offset
    end_offset: Offset
    batches: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    digest: Digest | None
    ranges: Annotated[Sequence[RangeDigests], Meta(max_length=MOST_NARROWED + 1)]
    listed: Annotated[Sequence[ListedBatches], Meta(max_length=MOST_NARROWED)] = ()
    compacted: bool = False
    """The log cleaner may have removed batches from these offsets, at a time of its own on each replica."""
    damaged: bool = False
    """Some bytes were no valid batch: they are in no digest."""

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition."""
        return self.topic, self.partition


class Fingerprint(Struct, frozen=True):
    """What the logs under some paths hold: a row for each partition, in (topic, partition) order."""

    inputs: Sequence[str]
    partitions: Sequence[PartitionFingerprint]
    not_audited: Sequence[NotAudited] = ()
    incomplete: bool = False


class FingerprintComparison(JsonRecord, frozen=True):
    """One partition by the fingerprints of two sites, which are named.

    `relation` is None where they have nothing in common that could be compared. `identical_up_to` is the offset up to which
    both are known to hold the same, from the later of their starts. `differing` are ranges in which they differ: somewhere,
    unless `first_difference` names the batch each holds there (None: none). `not_compared` are ranges that both have, but
    one of them has no digest of.
    """

    topic: str
    partition: int
    relation: Relation | None
    start_offsets: Mapping[str, int]
    end_offsets: Mapping[str, int]
    identical_up_to: int | None
    differing: Sequence[OffsetRange]
    not_compared: Sequence[OffsetRange]
    first_difference: Mapping[str, HeldBatch | None] | None
    compacted: bool
    damaged_on: Sequence[str]


class FingerprintDiff(Struct, frozen=True):
    """All partitions of two sites compared; `names` are theirs, `only_on` the partitions that just one of them has."""

    names: tuple[str, str]
    inputs: Sequence[str]
    partitions: Sequence[FingerprintComparison]
    only_on: Mapping[str, Sequence[tuple[str, int]]]
    not_audited: Sequence[NotAudited]
    incomplete: bool


class VerificationOutcome(Enum):
    """How a partition compares with what an earlier report recorded."""

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
    """What a log holds now of the offsets `start_offset` to `end_offset` (exclusive) that an earlier report covers.

    `unchanged`, `differing`, `cleaned` and `not_compared` are ranges of these offsets: `differing` somewhere in the
    range; `not_compared` where the digest covers removed records too. `removed` are offsets now missing at the start
    of the log, `lost` those missing at its end. `log_start_offset` and `log_end_offset` are the log's own now, None
    where the partition is not there.
    """

    topic: str
    partition: int
    replica: str
    verdict: VerificationOutcome
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
        """The offsets of the log after those of the report."""
        end = self.log_end_offset
        return OffsetRange(self.end_offset, end - 1) if end is not None and end > self.end_offset else None


class Verification(Struct, frozen=True):
    """All partitions of a report, and those beside them that it does not cover."""

    inputs: Sequence[str]
    partitions: Sequence[PartitionVerification]
    not_in_report: Sequence[tuple[str, int]]
    not_audited: Sequence[NotAudited] = ()
    incomplete: bool = False
