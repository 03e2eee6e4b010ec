"""Columns of record batches: one row a batch, the same for every magic.

A batch is one RecordBatch (magic 2), or one legacy message or message set wrapper (magic 0, 1), which has no producer.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1
NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

ABORT_MARKER = 0
COMMIT_MARKER = 1
NO_CONTROL_TYPE = -1
UNDECODED_CONTROL = -2
"""A control batch whose record could not be decoded."""

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

Batches = NDArray[Any]
"""A one-dimensional structured array of dtype BATCH, in file order."""


def empty_batches() -> Batches:
    """No batches."""
    return np.empty(0, dtype=BATCH)


def last_offsets(batches: Batches) -> NDArray[np.int64]:
    """Offset of each batch's last record."""
    offsets: NDArray[np.int64] = batches["base_offset"] + batches["last_offset_delta"]
    return offsets


def last_sequences(batches: Batches) -> NDArray[np.int64]:
    """Sequence of each batch's last record, -1 where it has none; follows lastOffsetDelta, which compaction keeps."""
    base = batches["base_sequence"].astype(np.int64)
    wrapped = (base + batches["last_offset_delta"]) & 0x7FFFFFFF
    return np.where(base < 0, base, wrapped)
