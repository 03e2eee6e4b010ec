"""Fields that a text of kafka-dump-log prints as columns of batches."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.dump_text.columns import DumpBatchColumns
from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER_SIZE
from kaudit.formats.log.codecs import Codec
from kaudit.model.batch import BATCH, BATCH_NAMES, Batches, batches_of
from kaudit.model.batch_fields import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_CONTROL_TYPE,
    NO_COORDINATOR_EPOCH,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
)

_CODECS = {codec.name.lower(): codec.value for codec in Codec}
_UNKNOWN_CODEC = 7


def attributes_of(
    codec: str,
    timestamp_type: str | None,
    is_transactional: bool | None,  # noqa: FBT001
    is_control: bool,  # noqa: FBT001
    delete_horizon_ms: int | None,
) -> int:
    """Return the attributes of a batch (RecordBatch) as the text describes them."""
    return (
        _CODECS.get(codec, _UNKNOWN_CODEC)
        | (LOG_APPEND_TIME_FLAG if timestamp_type == "LogAppendTime" else 0)
        | (TRANSACTIONAL_FLAG if is_transactional else 0)
        | (CONTROL_FLAG if is_control else 0)
        | (DELETE_HORIZON_FLAG if delete_horizon_ms is not None else 0)
    )


def columns_of_rows(rows: Iterable[Mapping[str, int]]) -> Batches:
    """Return batches by field, one a row."""
    held = list(rows)
    return batches_of(
        {name: _fitted(np.array([row[name] for row in held], dtype=np.int64), name) for name in BATCH_NAMES}
    )


def _fitted(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Values in their field's type; a number no field holds, which no tool prints, becomes the largest or -1."""
    limits = np.iinfo(BATCH[name])
    outside = (values < limits.min) | (values > limits.max)
    if outside.any():
        values = np.where(outside, -1 if limits.min < 0 else limits.max, values)
    return values.astype(BATCH[name])


def columns_of_block(block: DumpBatchColumns) -> dict[str, NDArray[Any]]:
    """The columns of data batches of magic 2, all of one shape."""
    constants = block.constants

    def column(field: str, absent: int) -> NDArray[np.int64]:
        known = block.columns.get(field)
        if known is None:
            value = constants.get(field)
            return np.full(block.count, absent if value is None else value, dtype=np.int64)
        return known

    base = column("base_offset", 0)
    max_timestamp = column("max_timestamp", NO_TIMESTAMP)
    horizon = "delete_horizon_ms" in block.columns
    attributes = attributes_of(
        constants["codec"],
        constants["timestamp_type"],
        constants["is_transactional"],
        False,
        0 if horizon else None,
    )
    values = {
        "position": column("position", 0),
        "size": column("size", HEADER_SIZE),
        "base_offset": base,
        "last_offset_delta": column("last_offset", 0) - base,
        "leader_epoch": column("leader_epoch", NO_LEADER_EPOCH),
        "magic": column("magic", CURRENT_MAGIC),
        "crc": column("crc", 0),
        "attributes": np.full(block.count, attributes),
        "base_timestamp": column("delete_horizon_ms", 0) if horizon else max_timestamp,
        "max_timestamp": max_timestamp,
        "producer_id": column("producer_id", NO_PRODUCER_ID),
        "producer_epoch": column("producer_epoch", NO_PRODUCER_EPOCH),
        "base_sequence": column("base_sequence", NO_SEQUENCE),
        "record_count": column("record_count", 0),
        "control_type": np.full(block.count, NO_CONTROL_TYPE),
        "coordinator_epoch": np.full(block.count, NO_COORDINATOR_EPOCH),
    }
    return {name: _fitted(values[name], name) for name in BATCH_NAMES}
