"""The duplicates of all partitions, read again when they are asked for, and their totals."""

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from kaudit.audits.repeats.duplicates import DuplicateReader, PartitionDuplicates
from kaudit.model.duplicates import Duplicate, DuplicateCounts, RepeatedRange
from kaudit.model.result import ScanResult
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.failed_reads import FailedReads
from kaudit.source.layout import Unreadable

MAX_RANGES = 1000
"""Ranges kept to be shown above the rows."""


class PartitionTotal(Struct, frozen=True):
    """The records that a consumer of one partition reads twice; `unread` and `undecoded` count batches."""

    topic: str
    partition: int
    replica: str
    records: int
    compacted: bool
    counts: DuplicateCounts
    more: int
    unread: int
    undecoded: int
    known_keys: int
    without_key: int
    identity: str
    """By which records were compared, as `--identity` names it."""


class DuplicateListing(Struct):
    """The duplicates of an input. `totals` are those of the partitions that have been listed."""

    scan: ScanResult
    partitions: Sequence[PartitionDuplicates]
    open_source: OpenSource
    totals: list[PartitionTotal] = field(default_factory=list)
    failed: list[Unreadable] = field(default_factory=list)
    """Files that could not be read again, of the partitions that have been listed."""

    ranges: list[tuple[PartitionDuplicates, RepeatedRange]] = field(default_factory=list)
    """The first MAX_RANGES ranges of repeats of the partitions that have been listed."""
    range_count: int = 0

    def found(self, *, read_committed: bool) -> Iterator[tuple[PartitionDuplicates, Duplicate | RepeatedRange]]:
        """Yield the duplicates partition by partition, and their ranges; with `read_committed` those that such consumers read."""
        self.totals, self.ranges, self.range_count, reads = [], [], 0, FailedReads(self.open_source)
        for partition in self.partitions:
            reader = DuplicateReader(partition, reads)
            for found in reader.found(read_committed=read_committed):
                if isinstance(found, RepeatedRange):
                    self.range_count += 1
                    self.ranges += [(partition, found)] if len(self.ranges) < MAX_RANGES else []
                yield partition, found
            self.totals.append(_total(partition, reader))
        self.failed = [*reads.unreadable]


def _total(partition: PartitionDuplicates, reader: DuplicateReader) -> PartitionTotal:
    directory = partition.directory
    return PartitionTotal(
        directory.topic,
        directory.partition,
        directory.replica,
        partition.read.counts.records,
        partition.read.cleaned,
        reader.counts,
        partition.read.sequences.more,
        reader.unread,
        partition.read.counts.batches_undecoded,
        partition.known_keys,
        partition.without_key,
        partition.reader.identity.text,
    )
