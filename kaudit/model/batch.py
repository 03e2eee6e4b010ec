"""Columns of record batches: one row a batch, the same for every magic.

A batch is one RecordBatch (magic 2), or one legacy message or message set wrapper (magic 0, 1), which has no producer.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kaudit.model.batch_fields import NO_CONTROL_TYPE, NO_COORDINATOR_EPOCH
from kaudit.model.columns import Column, Columns, joined, no_rows

BATCH = np.dtype(
    [
        ("position", np.int64),
        ("size", np.int64),
        ("base_offset", np.int64),
        ("last_offset_delta", np.int32),
        ("leader_epoch", np.int32),
        ("magic", np.int8),
        ("crc", np.uint32),
        ("attributes", np.int16),
        ("base_timestamp", np.int64),
        ("max_timestamp", np.int64),
        ("producer_id", np.int64),
        ("producer_epoch", np.int16),
        ("base_sequence", np.int32),
        ("record_count", np.int32),
        ("control_type", np.int8),
        ("coordinator_epoch", np.int32),
    ]
)
"""`position` and `size` are bytes in the segment file; the rest as in DefaultRecordBatch. For magic 0 and 1
`base_offset` is the offset field (a wrapper's last offset), `record_count` -1 for a compressed wrapper."""
BATCH_NAMES: tuple[str, ...] = BATCH.names or ()

Batches = Columns
"""Columns of dtype BATCH: batches in file order."""
_NO_CONTROL_BATCHES = {"control_type": NO_CONTROL_TYPE, "coordinator_epoch": NO_COORDINATOR_EPOCH}


def batches_of(columns: Mapping[str, Column]) -> Batches:
    """Batches of these columns, shape (n,) each, by the names of BATCH; `position` must be an array.

    Control batches are rare: `control_type` and `coordinator_epoch` may be left out, then none of these is one.
    """
    position = columns["position"]
    assert isinstance(position, np.ndarray)
    return Columns(BATCH, len(position), {**_NO_CONTROL_BATCHES, **columns})


def empty_batches() -> Batches:
    """No batches."""
    return no_rows(BATCH)


def concatenate(parts: Sequence[Batches]) -> Batches:
    """All batches of `parts`, one after the other."""
    return joined(parts) if parts else empty_batches()


def last_offsets(batches: Batches) -> NDArray[np.int64]:
    """Offset of each batch's last record, shape (n,)."""
    offsets: NDArray[np.int64] = batches["base_offset"] + batches["last_offset_delta"]
    return offsets


def last_sequences(batches: Batches) -> NDArray[np.int64]:
    """Sequence of each batch's last record, shape (n,), -1 where it has none.

    It follows lastOffsetDelta, which compaction keeps.
    """
    base = batches["base_sequence"].astype(np.int64)
    wrapped = (base + batches["last_offset_delta"]) & 0x7FFFFFFF
    return np.where(base < 0, base, wrapped)
