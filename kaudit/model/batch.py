"""Columns of record batches: one row a batch, the same for every magic.

A batch is one RecordBatch (magic 2), or one legacy message or message set wrapper (magic 0, 1), which has no producer.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.model.batch_fields import (
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_CONTROL_TYPE,
    NO_COORDINATOR_EPOCH,
)
from kaudit.model.columns import Column, Columns, joined, no_rows
from kaudit.model.dtypes import dtype_of
from kaudit.model.schema import Int8, Int16, Int32, Int64, UInt32
from kaudit.model.sequence import MAX_SEQUENCE


class Batch(NamedTuple):
    """One batch; fields not explained here are those of DefaultRecordBatch."""

    position: Int64
    """Its first byte in the segment file."""
    size: Int64
    """Its bytes, offset and length included."""
    base_offset: Int64
    """For magic 0 and 1 the offset field: that of a compressed wrapper is its last offset."""
    last_offset_delta: Int32
    leader_epoch: Int32
    magic: Int8
    crc: UInt32
    attributes: Int16
    base_timestamp: Int64
    max_timestamp: Int64
    producer_id: Int64
    producer_epoch: Int16
    base_sequence: Int32
    record_count: Int32
    """-1 for a compressed wrapper of magic 0 or 1."""
    control_type: Int8
    """What its first record says if it is a control batch, else NO_CONTROL_TYPE."""
    coordinator_epoch: Int32
    """Of a marker, else NO_COORDINATOR_EPOCH."""


BATCH = dtype_of(Batch)
BATCH_NAMES = Batch._fields

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


_HIGHEST_OFFSET = np.int64(2**63 - 1)


def last_offsets(batches: Batches) -> NDArray[np.int64]:
    """Offset of each batch's last record, shape (n,): never below its first, and the highest int64 where a header claims more."""
    bases = batches["base_offset"]
    deltas = np.maximum(batches["last_offset_delta"], 0).astype(np.int64)
    lasts: NDArray[np.int64] = bases + np.minimum(deltas, _HIGHEST_OFFSET - np.maximum(bases, 0))
    return lasts


def first_timestamps(batches: Batches) -> NDArray[np.int64]:
    """Time of each batch's first record, ms, shape (n,): the max timestamp where the base timestamp is no record's time.

    It is not under log append time, and where it is the delete horizon (KIP-534).
    """
    no_base = batches["attributes"] & (LOG_APPEND_TIME_FLAG | DELETE_HORIZON_FLAG) != 0
    firsts: NDArray[np.int64] = np.where(no_base, batches["max_timestamp"], batches["base_timestamp"])
    return firsts


def last_sequences(batches: Batches) -> NDArray[np.int64]:
    """Sequence of each batch's last record, shape (n,), -1 where it has none.

    It follows lastOffsetDelta, which compaction keeps.
    """
    base = batches["base_sequence"].astype(np.int64)
    wrapped = (base + batches["last_offset_delta"]) & MAX_SEQUENCE
    return np.where(base < 0, base, wrapped)
