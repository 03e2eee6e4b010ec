"""Rows a chunk of a log is compressed to: runs, their boundary batches, markers, and a summary.

What a row holds is declared in model/log_rows.py. Runs, boundary batches and markers, which may be as many as batches, are
Columns; the rest are numpy structured arrays. So a million rows are not objects; all survive pickling and map one to one to Arrow columns.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.model.dtypes import dtype_of
from kaudit.model.log_rows import (
    BoundaryBatch,
    EndTxnMarker,
    LeaderEpochStart,
    NonIdempotentBatch,
    OffsetGap,
    Run,
    TailBatch,
)

SILENCE_MS = 3_600_000
"""A silence this long between max timestamps ends a run: producers expire."""

RUN = dtype_of(Run)
BOUNDARY_BATCH = dtype_of(BoundaryBatch)
MARKER = dtype_of(EndTxnMarker)
GAP = dtype_of(OffsetGap)
LEADER_EPOCH_START = dtype_of(LeaderEpochStart)
NON_IDEMPOTENT_BATCH = dtype_of(NonIdempotentBatch)
TAIL_BATCH = dtype_of(TailBatch)
TAIL_BATCHES = 64
"""The last batches of a producer, many times what clients have in flight."""

Rows = NDArray[Any]

NO_TAILS: Rows = np.empty(0, dtype=TAIL_BATCH)

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
