"""The compressed form of a chunk of a segment: its rows, its damage, its counts."""

import copy
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.model.columns import Columns, no_rows
from kaudit.model.coverage import NO_LINES, TextLines
from kaudit.model.damage import LogDamage, MalformedBatch
from kaudit.model.result import CoverageGap
from kaudit.reading.batch_starts import BATCH_START
from kaudit.reading.digest_leaves import RangeLeaves
from kaudit.reading.equal_batches import NO_RANGES, Ranges
from kaudit.reading.rows import (
    BOUNDARY_BATCH,
    GAP,
    LEADER_EPOCH_START,
    MARKER,
    NO_TAILS,
    NON_IDEMPOTENT_BATCH,
    RUN,
    Rows,
)
from kaudit.reading.unread_segments import Failure
from kaudit.source.kafka.fetched_segment import Aborted


class Counts(Struct, array_like=True):
    """How many of each there are, and the greatest and least timestamp in ms, -1 where none is known."""

    batches: int = 0
    records: int = 0
    bytes: int = 0
    legacy_batches: int = 0
    compressed_legacy: int = 0
    compressed: int = 0
    largest_batch: int = 0
    """In bytes."""
    without_producer: int = 0
    partial_batches: int = 0
    empty_batches: int = 0
    delete_horizons: int = 0
    markers: int = 0
    log_append_time: int = 0
    max_timestamp: int = -1
    min_timestamp: int = -1
    broker_timestamp: int = -1
    """The greatest that a broker wrote: of control batches, and of batches with LogAppendTime."""
    broker_timestamps: int = 0
    """The number of these batches."""
    dated_ahead: int = 0
    """Batches whose timestamps are not counted: they lie beyond the plan's `latest_timestamp`."""

    def add(self, other: "Counts") -> None:
        """Add another chunk's counts."""
        newest = max(self.max_timestamp, other.max_timestamp)
        oldest = min((time for time in (self.min_timestamp, other.min_timestamp) if time >= 0), default=-1)
        of_broker = max(self.broker_timestamp, other.broker_timestamp)
        largest = max(self.largest_batch, other.largest_batch)
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.max_timestamp, self.min_timestamp, self.broker_timestamp = newest, oldest, of_broker
        self.largest_batch = largest


class LastBatch(Struct, frozen=True, array_like=True):
    """The last valid batch of a range: where it begins in its segment, its bytes, and what its header says.

    The CRC is of what follows the header's leader epoch, so that with the offset it names the batch.
    """

    position: int
    size: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int

    @property
    def end(self) -> int:
        """Position after its last byte."""
        return self.position + self.size


class ChunkRange(NamedTuple):
    """The bytes `start` to `stop` of a segment; those before `read_to` gave rows."""

    segment: int
    start: int
    read_to: int
    stop: int


class NonIdempotentRows(Struct, array_like=True):
    """The batches without a producer id: `rows`, of NON_IDEMPOTENT_BATCH, are those of them that may be copies.

    `batches` counts them all, `regressions` those whose base timestamp is lower than that of the one before. `recurring`:
    ranges of ordinals where records recur that no client sends again, shape (m, 2), both inclusive.
    """

    rows: Rows = field(default_factory=lambda: np.empty(0, dtype=NON_IDEMPOTENT_BATCH))
    batches: int = 0
    regressions: int = 0
    recurring: Ranges = field(default_factory=NO_RANGES.copy)


class ChunkRows(Struct, array_like=True):
    """A chunk of one segment, or several small ones, compressed: bytes and segment as in ChunkRange.

    `first_offset`/`last_offset` bound the valid batches at or above the log start offset (None without one), `last_position` is
    where the last of them begins; `ordered` is False if their offsets do not ascend, and then nothing else here may be
    used but `counts` and `damages`.
    """

    segment: int
    start: int
    read_to: int
    stop: int
    runs: Columns = field(default_factory=lambda: no_rows(RUN))
    boundary_batches: Columns = field(default_factory=lambda: no_rows(BOUNDARY_BATCH))
    markers: Columns = field(default_factory=lambda: no_rows(MARKER))
    gaps: Rows = field(default_factory=lambda: np.empty(0, dtype=GAP))
    leader_epochs: Rows = field(default_factory=lambda: np.empty(0, dtype=LEADER_EPOCH_START))
    non_idempotent: NonIdempotentRows = field(default_factory=NonIdempotentRows)
    counts: Counts = field(default_factory=Counts)
    offsets_present: int = 0
    marker_offsets: int = 0
    """Those of `offsets_present` that control batches cover."""
    cleaned_offsets: int = 0
    """Those of them that batches cover and no record has: the log cleaner removed the record and kept the batch."""
    cleaned_to: int = -1
    """Last offset of the last batch that a log cleaner rewrote: fewer records than offsets, or a delete horizon."""
    first_offset: int | None = None
    first_position: int | None = None
    last_offset: int | None = None
    last_position: int = -1
    wrapper_first: bool = False
    """The first batch is a compressed wrapper of magic 0 or 1, which names its last offset only."""
    ordered: bool = True
    damages: list[LogDamage] = field(default_factory=list)
    expected_offsets: list[int | None] = field(default_factory=list)
    """For each of `damages` the offset after the last valid batch of the chunk in front of it, None without one."""
    malformed: list[MalformedBatch] = field(default_factory=list)
    more_malformed: int = 0
    still_growing: bool = False
    decoded: bool = False
    """Every record was decoded."""
    listed_aborts: Aborted = frozenset()
    """The aborted transactions that a broker listed with its batches."""
    not_read: Failure | None = None
    """The part of the range before these rows that could not be read."""
    coverage_gaps: frozenset[CoverageGap] = frozenset()
    """Gaps that a text in place of the segment leaves in the coverage."""
    text_lines: TextLines = NO_LINES
    """The lines of such a text."""
    joined: int = 0
    """Number of following segments that were read with this one."""
    leaves: RangeLeaves | None = None
    """Leaves of the batches' digests, where they are asked for."""
    last_batch: LastBatch | None = None
    least_beyond: int | None = None
    """The least timestamp that was not counted as it lies beyond the plan's `latest_timestamp`."""
    batch_starts: Rows = field(default_factory=lambda: np.empty(0, dtype=BATCH_START))
    """Positions where some of the batches begin, also below the log start offset."""
    tails: Rows = NO_TAILS
    """Of the first producers that raised their epoch here the last batches before it."""
    is_saved: bool = False
    """An earlier audit read it: it comes from the saved state."""

    def row_bytes(self) -> int:
        """Return how many bytes the rows take."""
        values = (self.non_idempotent.rows, *(getattr(self, name) for name in self.__struct_fields__))
        tables = [value for value in values if isinstance(value, Columns | np.ndarray)]
        of_leaves = 0 if self.leaves is None else self.leaves.bytes
        return sum(len(table) * table.dtype.itemsize for table in tables) + of_leaves

    def renumbered(self, segment: int) -> "ChunkRows":
        """Return the same rows for a partition where the segment of this number is the chunk's first."""
        moved, by = copy.copy(self), segment - self.segment
        if not by:
            return moved
        moved.segment = segment
        for name in self.__struct_fields__:
            table = getattr(self, name)
            if isinstance(table, Columns) and "segment" in (table.dtype.names or ()):
                setattr(moved, name, table.plus(by, "segment"))
            elif isinstance(table, np.ndarray):
                setattr(moved, name, _moved(table, by))
        moved.non_idempotent = replace(self.non_idempotent, rows=_moved(self.non_idempotent.rows, by))
        moved.malformed = [replace(batch, segment=batch.segment + by) for batch in self.malformed]
        return moved

    def count_from(self, present: int) -> None:
        """Make `present_before` columns, which count from the chunk's start, count from the log's.

        `present` offsets of the log lie before the chunk.
        """
        for name in self.__struct_fields__:
            table = getattr(self, name)
            if isinstance(table, Columns):
                counting = [column for column in table.dtype.names or () if column.startswith("present_before")]
                setattr(self, name, table.plus(present, *counting))


Outcome = ChunkRows | Failure
"""The outcome of reading a range: its rows, or why there are none."""


def _moved(rows: Rows, by: int) -> Rows:
    if "segment" not in (rows.dtype.names or ()):
        return rows
    moved = rows.copy()
    moved["segment"] += by
    return moved
