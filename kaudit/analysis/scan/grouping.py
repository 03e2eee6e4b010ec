"""Bringing batches of the same producer id together, in their order: a sort without comparisons of rows.

A stable argsort of 64-bit ids costs 100 ns a row. Instead id and row number share one 64-bit key, id in the high bits:
the keys are distinct, so any sort of them is stable in the ids, and numpy sorts plain integers with vector instructions.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_KEY_BITS = 63


class Grouped(NamedTuple):
    """`order`: indexes that sort the ids, equal ones in their order; `ids`: the ids so sorted."""

    order: NDArray[np.intp]
    ids: NDArray[np.int64]


def group(ids: NDArray[np.int64]) -> Grouped:
    """Sort ids as a stable argsort does."""
    count = len(ids)
    if not count:
        return Grouped(np.empty(0, dtype=np.intp), ids)
    low, high = int(ids.min()), int(ids.max())
    if low == high:
        return Grouped(np.arange(count, dtype=np.intp), ids)
    bits = count.bit_length()
    if (high - low).bit_length() + bits > _KEY_BITS:
        order = np.argsort(ids, kind="stable")
        return Grouped(order, ids[order])
    keys = ((ids - low) << bits) | np.arange(count, dtype=np.int64)
    keys.sort()
    return Grouped((keys & ((1 << bits) - 1)).astype(np.intp, copy=False), (keys >> bits) + low)
