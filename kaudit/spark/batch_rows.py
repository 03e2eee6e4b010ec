"""Batches as rows of the DataFrame `batches`, and such rows as batches again."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kaudit.model.batch import BATCH_NAMES, Batches, batches_of
from kaudit.model.batch_fields import NO_CONTROL_TYPE, NO_COORDINATOR_EPOCH
from kaudit.partition.batch_export import SegmentTask
from kaudit.report.machine.streamed_tables import batch_columns
from kaudit.spark.schemas import milliseconds, to_batch

NEEDED = (
    "topic", "partition", "replica", "segment", "position", "bytes", "base_offset", "last_offset", "magic", "leader_epoch",
    "crc", "max_timestamp", "producer_id", "producer_epoch", "first_sequence", "records", "attributes", "base_timestamp",
    "control_type", "coordinator_epoch", "path", "segment_number", "log_start_offset", "clock_limit", "exact",
)  # fmt: skip
"""What runs() needs of a row of `batches`."""
_WHERE_NULL = {
    "producer_id": -1,
    "producer_epoch": -1,
    "first_sequence": -1,
    "records": -1,
    "control_type": NO_CONTROL_TYPE,
    "coordinator_epoch": NO_COORDINATOR_EPOCH,
}
_RENAMED = {"size": "bytes", "base_sequence": "first_sequence", "record_count": "records"}


def batch_rows(task: SegmentTask, batches: Batches) -> pa.RecordBatch:
    """Return batches of a segment as rows of `batches`."""
    spec, count = task.spec, len(batches)
    columns: dict[str, Any] = batch_columns(task, batches)
    columns |= {
        "attributes": batches["attributes"],
        "base_timestamp": batches["base_timestamp"],
        "control_type": _masked(batches["control_type"], NO_CONTROL_TYPE),
        "coordinator_epoch": _masked(batches["coordinator_epoch"], NO_COORDINATOR_EPOCH),
        "path": pa.repeat(spec.file.path, count),
        "segment_number": np.full(count, spec.segment, np.int32),
        "log_start_offset": pa.array([spec.log_start_offset], pa.int64()).take(pa.array(np.zeros(count, np.int64))),
        "clock_limit": np.full(count, spec.latest_timestamp, np.int64),
        "exact": np.ones(count, bool),
    }
    for name in ("topic", "replica", "segment"):
        columns[name] = pa.repeat(str(columns[name][0]) if count else "", count)
    rows = to_batch("batches", columns)
    read_back = batches_of_rows(rows)
    same = [read_back[name] == batches[name] for name in BATCH_NAMES]
    exact = pa.array(np.logical_and.reduce(same))
    return rows.set_column(rows.schema.get_field_index("exact"), rows.schema.field("exact"), exact)


def _masked(values: NDArray[Any], none: int) -> Any:  # noqa: ANN401 - numpy's masked arrays
    return np.ma.array(values, mask=values == none)


def batches_of_rows(rows: pa.RecordBatch) -> Batches:
    """Return rows of `batches` as the batches they were, where they are `exact`."""
    columns: dict[str, NDArray[Any]] = {
        name: _numbers(rows, _RENAMED.get(name, name))
        for name in BATCH_NAMES
        if name not in ("last_offset_delta", "base_timestamp", "max_timestamp")
    }
    columns["last_offset_delta"] = _numbers(rows, "last_offset") - columns["base_offset"]
    for name in ("base_timestamp", "max_timestamp"):
        columns[name] = milliseconds(rows.column(name))
    return batches_of(columns)


def _numbers(rows: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    column = rows.column(name).cast(pa.int64())
    if column.null_count:
        column = pc.fill_null(column, _WHERE_NULL[name])
    numbers: NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    return numbers
