"""Reads one replica of a partition as a fingerprint, of the whole log or of the ranges of another site's fingerprint."""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from kaudit.audits.replicas.compare import Columns
from kaudit.audits.replicas.replica_reader import ReplicaReader
from kaudit.model.digests import LEAF_OFFSETS, MOST_RANGES, RangeDigests
from kaudit.model.fingerprint import HeldBatch, ListedBatches, PartitionFingerprint
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.digest_leaves import Leaves, range_leaves
from kaudit.reading.digest_tree import Leaf, RowOfRanges, Tree, WholeLog, hexadecimal
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import ALWAYS_COMPACTED, PartitionDirectory, Unreadable

_NO_END = 1 << 63


class Rows(Struct, frozen=True):
    """The digests to make: rows of ranges as (first offset, width, count), and leaves whose batches are listed.

    `most_ranges` is the length of the row over the whole log, 0 for no such row. `cleaned`: offsets below the cleaner's
    checkpoint are included.
    """

    most_ranges: int = MOST_RANGES
    ranges: Sequence[tuple[int, int, int]] = ()
    listed: Sequence[int] = ()
    start_offset: int = 0
    end_offset: int = _NO_END
    cleaned: bool = False


class FingerprintTask(Struct, frozen=True):
    """One partition to read, and the digests to make of it."""

    directory: PartitionDirectory
    rows: Rows

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return self.directory.bytes

    @property
    def directories(self) -> Sequence[PartitionDirectory]:
        """The one directory that is read."""
        return [self.directory]


class ReadFingerprint(Struct, frozen=True):
    """A fingerprint, and the parts of the log that could not be read."""

    fingerprint: PartitionFingerprint
    unreadable: Sequence[Unreadable]
    removed: Sequence[Unreadable]


def rows_of(other: PartitionFingerprint) -> Rows:
    """Return the digests that can be compared with another site's: the same ranges, of the offsets it has."""
    return Rows(
        most_ranges=0,
        ranges=[(row.first_offset, row.width, len(row.digests)) for row in other.ranges],
        listed=[row.first_offset for row in other.listed],
        start_offset=other.start_offset,
        end_offset=other.end_offset,
    )


def read_fingerprint(task: FingerprintTask, options: ScanOptions, open_source: OpenSource) -> ReadFingerprint:
    """Read one partition; the function every engine schedules. Memory is one window, and one digest a level of each range."""
    directory, rows = task.directory, task.rows
    # below its checkpoint the log cleaner has removed records, on each replica at another time
    own_start = max(directory.log_start_offset or 0, 0 if rows.cleaned else directory.first_dirty_offset or 0)
    start = max(own_start, rows.start_offset)
    reader = ReplicaReader(directory, open_source, verify=options.verifies, log_start_offset=own_start)
    leaves, digests, batches = Leaves(), _Digests(rows), 0
    while True:
        reader.fill()
        taken = _between(reader.take(_NO_END - 1), start, rows.end_offset)
        batches += len(taken["base_offset"])
        columns = (taken[name] for name in ("base_offset", "last_offset", "leader_epoch", "crc"))
        digests.add(leaves.feed(range_leaves(*columns)))
        digests.note(taken)
        if reader.ended:
            break
    digests.add(leaves.rest())
    says_compacted = directory.topic in ALWAYS_COMPACTED or options.says_compacted(directory.topic)
    end = min(reader.end_offset, rows.end_offset)
    first = _first_offset(reader)
    start = min(max(start, first), end)
    fingerprint = PartitionFingerprint(
        topic=directory.topic,
        partition=directory.partition,
        log_start_offset=min(max(own_start, first), reader.end_offset),
        log_end_offset=reader.end_offset,
        start_offset=start,
        end_offset=end,
        batches=batches,
        digest=digests.digest(),
        ranges=digests.ranges(start, end),
        listed=digests.listed(),
        compacted=(says_compacted and directory.first_dirty_offset is None) or reader.gaps.compacted,
        damaged=reader.damaged,
    )
    return ReadFingerprint(fingerprint, reader.unreadable, reader.removed)


def _first_offset(reader: ReplicaReader) -> int:
    """Return where the log begins: retention may have removed segments since they were listed."""
    removed = {entry.path for entry in reader.removed}
    begins = (segment.base_offset for segment in reader.directory.segments if segment.path not in removed)
    return next(begins, reader.end_offset)


class _Digests:
    """Makes all digests in one pass."""

    def __init__(self, rows: Rows) -> None:
        self._rows = [RowOfRanges(*row) for row in rows.ranges]
        self._whole = WholeLog(rows.most_ranges) if rows.most_ranges else None
        self._all = Tree()
        self._listed: dict[int, list[HeldBatch]] = {first: [] for first in rows.listed}

    def add(self, leaves: Iterable[Leaf]) -> None:
        for leaf in leaves:
            self._all.add(*leaf)
            for row in self._rows:
                row.add(leaf)
            if self._whole is not None:
                self._whole.add(leaf)

    def note(self, rows: Columns) -> None:
        for first in self._listed:
            bases = rows["base_offset"]
            within = (bases >= first) & (bases < first + LEAF_OFFSETS)
            if within.any():
                self._listed[first] += _batches({name: column[within] for name, column in rows.items()})

    def digest(self) -> str | None:
        return hexadecimal(self._all.digest())

    def ranges(self, start: int, end: int) -> list[RangeDigests]:
        whole = self._whole.ranges(start, end) if self._whole is not None else None
        return [*([] if whole is None else [whole]), *(row.ranges() for row in self._rows)]

    def listed(self) -> list[ListedBatches]:
        return [ListedBatches(first, batches) for first, batches in self._listed.items()]


def _between(rows: Columns, start: int, end: int) -> Columns:
    """Return the batches whose last offset lies in `start` to `end` (exclusive)."""
    kept = (rows["last_offset"] >= start) & (rows["last_offset"] < end) & (rows["base_offset"] >= 0)
    return rows if kept.all() else {name: column[kept] for name, column in rows.items()}


def _batches(rows: Columns) -> list[HeldBatch]:
    columns = (
        rows["base_offset"],
        rows["last_offset"],
        rows["leader_epoch"],
        rows["crc"].astype(np.int64) & 0xFFFF_FFFF,
    )
    return [HeldBatch(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
