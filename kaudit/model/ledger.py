"""The ledger of two topics: which records of one are in the other, and how often."""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from kaudit.model.json_record import JsonRecord, rfc3339
from kaudit.model.replicas import Replica
from kaudit.model.result import ScanResult

_MAP_ROWS = 10_000
MOST_RANGES = 10_000
"""Ranges of each kind that a ledger lists of one pair of topics; the rest is counted."""


class RecordRange(JsonRecord, frozen=True, rename={"first": "first_offset", "last": "last_offset"}):
    """Records of one partition with no other record that consumers see between them: `records` at offsets `first`..`last`."""

    partition: int
    first: int
    last: int
    records: int


class RepeatedRange(JsonRecord, frozen=True, rename={"first": "first_offset", "last": "last_offset"}):
    """Records of the target that are there again, as a RecordRange; the source has each of them once less.

    They are the source's at `source_first_offset`..`source_last_offset`, and in the target already at
    `earlier_first_offset`..`earlier_last_offset`: the lowest and the highest offset of each.
    """

    partition: int
    first: int
    last: int
    records: int
    source_partition: int
    source_first_offset: int
    source_last_offset: int
    earlier_partition: int
    earlier_first_offset: int
    earlier_last_offset: int


class MovedRecord(JsonRecord, frozen=True):
    """A record that the target has before the record of the same key that precedes it in the source.

    The record that precedes it is at `preceding_source_offset`, and in the target at `preceding_target_offset`.
    """

    source_partition: int
    source_offset: int
    target_partition: int
    target_offset: int
    preceding_source_offset: int
    preceding_target_offset: int


class MappedRange(NamedTuple):
    """Records that lie as far apart in the target as in the source: an offset plus `target_first_offset` - `source_first_offset` is the target's."""

    source_partition: int
    source_first_offset: int
    source_last_offset: int
    target_partition: int
    target_first_offset: int
    target_last_offset: int
    records: int


class PartitionPair(JsonRecord, frozen=True):
    """Records that a partition of the source and one of the target have in common, with their first and last offsets.

    The logs' own first records are at `source_begins` and `target_begins`.
    """

    source_partition: int
    target_partition: int
    records: int
    source_first_offset: int
    source_last_offset: int
    target_first_offset: int
    target_last_offset: int
    source_begins: int
    target_begins: int


class SideCounts(JsonRecord, frozen=True):
    """What was read of one side of a ledger.

    `records` that consumers see; `batches_undecoded` cannot be read; `compared_whole` records lack a part of the identity;
    `appended_times` have the broker's time instead of the producer's; `too_far` lie at offsets that no log can reach, and are not compared.
    """

    records: int = 0
    batches_undecoded: int = 0
    compared_whole: int = 0
    appended_times: int = 0
    too_far: int = 0

    def __add__(self, other: "SideCounts") -> "SideCounts":
        """Add up the counts of two partitions."""
        return SideCounts(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


def mapped_ranges(map_file: str) -> Iterator[MappedRange]:
    """Yield the ranges of a map of offsets, in the order of the source, while its file is there."""
    row = struct.Struct(f"<{len(MappedRange._fields)}q")
    with Path(map_file).open("rb") as file:
        while data := file.read(_MAP_ROWS * row.size):
            yield from map(MappedRange._make, row.iter_unpack(data))


class WindowDifference(JsonRecord, frozen=True):
    """A window of event time in which two topics differ: where it begins (ms since 1970, None without a timestamp), and the records of each."""

    start: int | None
    source_records: int
    target_records: int

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form, the time in RFC 3339."""
        return {**super().to_dict(), "start": None if self.start is None else rfc3339(self.start)}


class WindowCounts(JsonRecord, frozen=True):
    """Two topics compared by windows of `milliseconds` of event time, of which `differing` are not equal, the first of them as `differences`.

    `compared_whole`: why all records were compared nevertheless; None where only those of windows that differ were.
    """

    milliseconds: int
    windows: int
    differing: int
    differences: Sequence[WindowDifference]
    compared_whole: str | None = None


class TopicLedger(JsonRecord, frozen=True):
    """Two topics compared record by record. `matched` records are on both sides, each counted once.

    Differences: `missing` of the source's records are not in the target, `repeated` of the target's are there again, `only_in_target` are
    not in the source, `out_of_order` change their order within a key.
    No differences: `pending` records of the source come after the last that both have, `ahead` ones of the target after it; `expired` and
    `older` ones lie before the first record of the other side, where retention or DeleteRecords has removed the other side's; `cleaned` ones may have
    been removed by the other side's log cleaner. `but_for_headers` of those matched have other headers in the target. `counted_only` are records with so many equal ones that they were counted and not placed.
    """

    source: str
    target: str
    identity: str
    read_committed: bool
    source_counts: SideCounts
    target_counts: SideCounts
    matched: int = 0
    missing: int = 0
    repeated: int = 0
    only_in_target: int = 0
    out_of_order: int = 0
    pending: int = 0
    ahead: int = 0
    expired: int = 0
    older: int = 0
    cleaned: int = 0
    counted_only: int = 0
    but_for_headers: int = 0
    partitions: Sequence[PartitionPair] = ()
    missing_ranges: Sequence[RecordRange] = ()
    repeated_ranges: Sequence[RepeatedRange] = ()
    only_in_target_ranges: Sequence[RecordRange] = ()
    pending_ranges: Sequence[RecordRange] = ()
    moved: Sequence[MovedRecord] = ()
    more_ranges: int = 0
    """Ranges that are counted and not listed, of all kinds."""
    windows: WindowCounts | None = None
    """Where windows were compared first."""
    map_file: str = ""
    """The map of offsets, rows of MappedRange as int64, in the order of the source."""

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form, without the name of a temporary file; windows where some were compared."""
        left_out = {"map_file", *(("windows",) if self.windows is None else ())}
        return {name: value for name, value in super().to_dict().items() if name not in left_out}

    @property
    def agrees(self) -> bool:
        """Whether the target has every record once, in order, and no other, as far as both go."""
        return not (self.missing or self.repeated or self.only_in_target or self.out_of_order)


class LedgerResult(Struct, frozen=True):
    """Topics of two inputs compared record by record; `scan` holds findings and totals."""

    scan: ScanResult
    sides: Sequence[Replica]
    ledgers: Sequence[TopicLedger] = ()
