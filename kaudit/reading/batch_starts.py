"""Positions where some of a segment's batches begin: its offset index is compared with them, without reading the log twice.

The position alone decides which are kept, so that a row of the index shows whether its batch is among them.
"""

import numpy as np
from numpy.typing import NDArray

from kaudit.model.batch import Batches
from kaudit.model.dtypes import dtype_of
from kaudit.model.log_rows import BatchStart
from kaudit.reading.rows import Rows, assemble

BATCH_START = dtype_of(BatchStart)
ALL_KEPT_BYTES = 256 << 10
"""In a segment's first bytes every batch is kept, after them fewer and fewer: about 600 batch starts of a GiB of 4 KiB batches."""
_HASH = np.uint64(0x9E3779B1)
"""2**32 by the golden ratio: multiples of it spread positions evenly, regular ones too (Knuth 6.4)."""
_LOW_BITS = np.uint64(0xFFFF_FFFF)
_BOUND = np.uint64(ALL_KEPT_BYTES << 32)


def is_kept(positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return of each position, 0 to 2**31 - 1, whether a batch that begins there is kept: one in position / ALL_KEPT_BYTES."""
    wide = positions.astype(np.uint64)
    kept: NDArray[np.bool_] = ((wide * _HASH) & _LOW_BITS) * wide < _BOUND
    return kept


def batch_starts(batches: Batches, segment: NDArray[np.int32] | int) -> Rows:
    """Return which of the batches are kept, in file order; `segment`: that of all of them, or of each, shape (n,)."""
    if not len(batches):
        return np.empty(0, dtype=BATCH_START)
    index = np.flatnonzero(is_kept(batches["position"]))
    columns = {name: batches[name].take(index) for name in ("position", "base_offset")}
    own = segment if isinstance(segment, int) else segment.take(index)
    return assemble(BATCH_START, len(index), {**columns, "segment": own})
