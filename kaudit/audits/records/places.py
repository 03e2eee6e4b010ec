"""A record's place: partition, offset, and whether its value is null, in 64 bits that ascend with partition and offset."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.uint64]

OFFSET_BITS = 44
"""Offsets from the first one of a log: no log reaches further than 17,592,186,044,415 records."""
MOST_PARTITIONS = 1 << 19
NOWHERE = np.uint64(2**64 - 1)
"""The place of a record that the other side does not have."""
_SHIFT = np.uint64(OFFSET_BITS + 1)
_REST = np.uint64((1 << (OFFSET_BITS + 1)) - 1)
_ONE = np.uint64(1)


def places(number: int, offsets: NDArray[Any], null_values: NDArray[np.bool_]) -> Column:
    """Return the places of records of partition `number`; `offsets` count from the partition's first."""
    return (np.uint64(number) << _SHIFT) | (offsets.astype(np.uint64) << _ONE) | null_values.astype(np.uint64)


def numbers_of(found: Column) -> NDArray[np.int64]:
    """Return the numbers of the partitions, int64."""
    return (found >> _SHIFT).astype(np.int64)


def offsets_of(found: Column) -> NDArray[np.int64]:
    """Return the offsets, counted from the partition's first, int64."""
    return ((found & _REST) >> _ONE).astype(np.int64)


def null_value(found: Column) -> NDArray[np.bool_]:
    """Return which records have a null value."""
    return (found & _ONE).astype(np.bool_)
