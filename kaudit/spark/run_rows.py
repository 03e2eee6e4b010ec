"""What a chunk is reduced to as rows of the DataFrame `runs`: its runs, its markers, and itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER, UNREPORTED_CONTROL
from kaudit.model.columns import Columns, joined
from kaudit.partition.batch_export import SegmentTask
from kaudit.reading.chunk_codec import pack_chunk
from kaudit.reading.chunk_rows import ChunkRows, Outcome
from kaudit.spark.schemas import to_batch

CHUNK, RUN, MARKER = "chunk", "run", "marker"
_RUN_COLUMNS = (
    "producer_id", "producer_epoch", "first_offset", "last_offset", "first_sequence", "last_sequence", "batches", "records",
    "bytes", "min_timestamp", "max_timestamp", "is_transactional", "first_leader_epoch", "last_leader_epoch",
)  # fmt: skip


def run_rows(task: SegmentTask, outcomes: Sequence[Outcome], *, chunks_only: bool = False) -> pa.RecordBatch:
    """Return the rows of a range of a segment: its chunk first, then by producer id and offset."""
    chunks = [outcome for outcome in outcomes if isinstance(outcome, ChunkRows) and not chunks_only]
    runs = joined([chunk.runs for chunk in chunks]) if chunks else None
    markers = joined([chunk.markers for chunk in chunks]) if chunks else None
    counts = [1, 0 if runs is None else len(runs), 0 if markers is None else len(markers)]
    first = outcomes[0].start if isinstance(outcomes[0], ChunkRows) else task.spec.start
    total = sum(counts)
    columns: dict[str, Any] = {
        "topic": pa.repeat(task.topic, total),
        "partition": np.full(total, task.partition),
        "replica": pa.repeat(task.replica, total),
        "segment": pa.repeat(task.spec.file.name, total),
        "row": np.repeat([CHUNK, RUN, MARKER], counts),
        "segment_number": np.full(total, task.spec.segment),
        "first_position": np.full(total, first),
        "chunk": pa.array([pack_chunk(outcomes), *[None] * (total - 1)], pa.binary()),
    }
    if runs is not None and markers is not None and total > 1:
        columns |= {name: _join(counts, runs[name], None) for name in _RUN_COLUMNS} | _of_markers(markers, counts, runs)
        columns["position"] = _join(counts, runs["first_position"], markers["position"])
    return to_batch("runs", columns)


def _join(counts: Sequence[int], runs: Any, markers: Any) -> Any:  # noqa: ANN401 - numpy, None: null
    """Return a column of a chunk's row, its runs and its markers."""
    dtype = (markers if runs is None else runs).dtype
    parts = (None, runs, markers)
    values = [np.zeros(count, dtype) if part is None else part for part, count in zip(parts, counts, strict=True)]
    absent = [np.full(count, part is None) for part, count in zip(parts, counts, strict=True)]
    return np.ma.array(np.concatenate(values), mask=np.concatenate(absent))


def _of_markers(markers: Columns, counts: Sequence[int], runs: Columns) -> dict[str, Any]:
    kind, offset = markers["type"], markers["offset"]
    unreported = kind == UNREPORTED_CONTROL
    names = np.select([kind == ABORT_MARKER, kind == COMMIT_MARKER], ["ABORT", "COMMIT"], "CLEANED")
    coordinator = _join(counts, None, markers["coordinator_epoch"])
    marker = _join(counts, None, names)
    for column in (coordinator, marker):
        column[len(column) - len(markers) :][unreported] = np.ma.masked
    return {
        **{name: _join(counts, runs[name], markers[name]) for name in ("producer_id", "producer_epoch")},
        "first_offset": _join(counts, runs["first_offset"], offset),
        "last_offset": _join(counts, runs["last_offset"], offset),
        "min_timestamp": _join(counts, runs["min_timestamp"], markers["timestamp"]),
        "max_timestamp": _join(counts, runs["max_timestamp"], markers["timestamp"]),
        "first_leader_epoch": _join(counts, runs["first_leader_epoch"], markers["leader_epoch"]),
        "last_leader_epoch": _join(counts, runs["last_leader_epoch"], markers["leader_epoch"]),
        "coordinator_epoch": coordinator,
        "marker": marker,
    }
