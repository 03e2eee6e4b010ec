"""Rows a chunk of a log is compressed to: runs, their boundary batches, markers, and a summary.

What a row holds is declared in model/log_rows.py. Runs, boundary batches and markers, which may be as many as batches, are
Columns; the rest are numpy structured arrays. So a million rows are not objects; all survive pickling and map one to one to Arrow columns.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.model.columns import Columns
from kaudit.model.coverage_gap import CoverageGap
from kaudit.model.damage import LogDamage
from kaudit.model.dtypes import dtype_of
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker, LeaderEpochStart, NonIdempotentBatch, OffsetGap, Run
from kaudit.model.malformed import MalformedBatch

SILENCE_MS = 3_600_000
"""A silence this long between max timestamps ends a run: producers expire."""

RUN = dtype_of(Run)
BOUNDARY_BATCH = dtype_of(BoundaryBatch)
MARKER = dtype_of(EndTxnMarker)
GAP = dtype_of(OffsetGap)
LEADER_EPOCH_START = dtype_of(LeaderEpochStart)
NON_IDEMPOTENT_BATCH = dtype_of(NonIdempotentBatch)

Rows = NDArray[Any]

_BLOCK_ROWS = 2048
"""Rows filled at a time: they stay in the processor's cache while field after field is written into them."""


def assemble(dtype: np.dtype[Any], count: int, columns: Mapping[str, NDArray[Any] | int]) -> Rows:
    """Make `count` rows of `dtype` from a column for each of its fields; an int fills the whole column."""
    rows = np.empty(count, dtype=dtype)
    for first in range(0, count, _BLOCK_ROWS):
        block = slice(first, first + _BLOCK_ROWS)
        part = rows[block]
        for name in dtype.names or ():
            column = columns[name]
            part[name] = column if isinstance(column, int) else column[block]
    return rows


def pick(rows: Rows, chosen: NDArray[Any]) -> Rows:
    """Return the rows at these indexes, or where the mask is set: `rows[chosen]`, twenty times as fast.

    Indexing copies a record field by field, these copy it whole.
    """
    picked: Rows = rows.compress(chosen, axis=0) if chosen.dtype == np.bool_ else rows.take(chosen, axis=0)
    return picked


def put(rows: Rows, places: NDArray[Any], values: Rows) -> None:
    """Write rows to these indexes: `rows[places] = values`, twenty times as fast; `rows` may be one field of others."""
    whole = np.dtype((np.void, rows.dtype.itemsize))
    rows.view(whole)[places] = values.view(whole)


def whole(rows: Rows, name: str) -> NDArray[np.void]:
    """Return a field of contiguous rows as plain bytes, a view: a structured field is copied field by field, this at once."""
    assert rows.dtype.fields is not None
    dtype, offset = rows.dtype.fields[name][:2]
    return np.ndarray(rows.shape, np.dtype((np.void, dtype.itemsize)), rows, offset, rows.strides)


class Counts(Struct):
    """What was seen, whatever it belongs to."""

    batches: int = 0
    records: int = 0
    bytes: int = 0
    legacy_batches: int = 0
    compressed_legacy: int = 0
    without_producer: int = 0
    partial_batches: int = 0
    empty_batches: int = 0
    delete_horizons: int = 0
    markers: int = 0
    log_append_time: int = 0
    max_timestamp: int = -1
    min_timestamp: int = -1

    def add(self, other: "Counts") -> None:
        """Add another chunk's counts."""
        for name in self.__struct_fields__:
            if name not in ("max_timestamp", "min_timestamp"):
                setattr(self, name, getattr(self, name) + getattr(other, name))
        self.max_timestamp = max(self.max_timestamp, other.max_timestamp)
        known = [value for value in (self.min_timestamp, other.min_timestamp) if value >= 0]
        self.min_timestamp = min(known) if known else -1


class ChunkRows(Struct):
    """A chunk of one segment, compressed. `present_before` columns count from the chunk's start.

    `first_offset`/`last_offset` bound the sound batches at or above the log start offset (None without one), `last_end` is
    the byte after the last of them; `ordered`
    is False if their offsets do not ascend, and then nothing else here may be used but `counts` and `damages`.
    """

    segment: int
    start: int
    read_to: int
    stop: int
    runs: Columns
    boundary_batches: Columns
    markers: Columns
    gaps: Rows
    leader_epochs: Rows
    counts: Counts
    offsets_present: int = 0
    first_offset: int | None = None
    first_position: int | None = None
    last_offset: int | None = None
    last_end: int = -1
    wrapper_first: bool = False
    """The first batch is a compressed wrapper of magic 0 or 1, which names its last offset only."""
    ordered: bool = True
    damages: list[LogDamage] = field(default_factory=list)
    expected_offsets: list[int | None] = field(default_factory=list)
    """For each of `damages` the offset after the last sound batch of the chunk in front of it, None without one."""
    malformed: list[MalformedBatch] = field(default_factory=list)
    more_malformed: int = 0
    still_growing: bool = False
    plain: Rows = field(default_factory=lambda: np.empty(0, dtype=NON_IDEMPOTENT_BATCH))
    """Batches without a producer id that may be sent again, or be the second copy: see pipeline.plain_rows."""
    plain_batches: int = 0
    """How many such batches there are, of which `plain` are some."""
    plain_regressions: int = 0
    """How many of them regress."""
    decoded: bool = False
    """Every record was decoded: what records say may be looked at."""
    untold: frozenset[CoverageGap] = frozenset()
    """What a text in place of the segment does not tell."""

    def row_bytes(self) -> int:
        """Return how many bytes the rows take."""
        tables = (self.runs, self.boundary_batches, self.markers, self.gaps, self.leader_epochs, self.plain)
        return sum(len(table) * table.dtype.itemsize for table in tables)

    def count_from(self, present: int) -> None:
        """Let the `present_before` columns count from the log's start: so many offsets are present before the chunk."""
        self.runs = self.runs.plus(present, "present_before_first", "present_before_last")
        self.boundary_batches = self.boundary_batches.plus(present, "present_before")
        self.markers = self.markers.plus(present, "present_before")
