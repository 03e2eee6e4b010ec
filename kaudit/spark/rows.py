"""Rows of the DataFrames `batches` and `runs`, and how runs are made of batches."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kaudit.model.batch import BATCH_NAMES, Batches, batches_of, concatenate
from kaudit.model.batch_fields import (
    ABORT_MARKER,
    COMMIT_MARKER,
    NO_CONTROL_TYPE,
    NO_COORDINATOR_EPOCH,
    UNREPORTED_CONTROL,
)
from kaudit.model.columns import Columns, joined
from kaudit.partition.batch_export import SegmentTask
from kaudit.reading.chunk_codec import pack_chunk
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_reader import CHUNK_BATCHES, rows_of
from kaudit.reading.chunk_rows import ChunkRange, ChunkRows, Outcome
from kaudit.report.machine.tables import batch_columns
from kaudit.source.layout import SegmentFile
from kaudit.spark.schemas import milliseconds, to_batch

NEEDED = (
    "topic", "partition", "replica", "segment", "position", "bytes", "base_offset", "last_offset", "magic", "leader_epoch",
    "crc", "max_timestamp", "producer_id", "producer_epoch", "first_sequence", "records", "attributes", "base_timestamp",
    "control_type", "coordinator_epoch", "path", "segment_number", "log_start_offset", "clock_limit", "exact", "origin",
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


def batch_rows(task: SegmentTask, batches: Batches, origin: str) -> pa.RecordBatch:
    """Return batches of a segment as rows of `batches`; `origin`: what was read."""
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
        "origin": pa.repeat(origin, count),
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


CHUNK, RUN, MARKER = "chunk", "run", "marker"
_RUN_COLUMNS = (
    "producer_id", "producer_epoch", "first_offset", "last_offset", "first_sequence", "last_sequence", "batches", "records",
    "bytes", "min_timestamp", "max_timestamp", "is_transactional", "first_leader_epoch", "last_leader_epoch",
)  # fmt: skip


def run_rows(task: SegmentTask, outcomes: Sequence[Outcome], origin: str) -> pa.RecordBatch:
    """Return the rows of a range of a segment: its chunk first, then by producer id and offset."""
    chunks = [outcome for outcome in outcomes if isinstance(outcome, ChunkRows)]
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
        "path": pa.repeat(task.spec.file.path, total),
        "segment_number": np.full(total, task.spec.segment),
        "first_position": np.full(total, first),
        "chunk": pa.array([pack_chunk(outcomes), *[None] * (total - 1)], pa.binary()),
        "origin": pa.repeat(origin, total),
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


NO_STOP = -1
"""Of a chunk that cannot stand for its segment's bytes."""


def batches_to_runs(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reduce the rows of a task: those that lie side by side in a segment become one chunk.

    Rows that came twice count once. A chunk with batches whose rows do not hold the whole header has no `stop`: findings() reads
    its segment again.
    """
    held: _Adjacent | None = None
    for piece in (piece for batch in rows for piece in _adjacent(batch)):
        if held is not None and held.goes_on_with(piece):
            held = held.with_next(piece)
            continue
        if held is not None:
            yield held.rows()
        held = piece
    if held is not None:
        yield held.rows()


class _Adjacent:
    """Batches of one segment that lie side by side."""

    def __init__(self, task: SegmentTask, origin: str, parts: list[Batches], *, exact: bool) -> None:
        self.task = task
        self.origin = origin
        self.parts = parts
        self.exact = exact

    @property
    def _end(self) -> int:
        last = self.parts[-1][len(self.parts[-1]) - 1]
        return int(last["position"]) + int(last["size"])

    def goes_on_with(self, other: "_Adjacent") -> bool:
        return (
            self.task.spec.file.path == other.task.spec.file.path
            and self.origin == other.origin
            and self._end == int(other.parts[0]["position"][0])
            and sum(map(len, self.parts)) < CHUNK_BATCHES
        )

    def with_next(self, other: "_Adjacent") -> "_Adjacent":
        return _Adjacent(self.task, self.origin, [*self.parts, *other.parts], exact=self.exact and other.exact)

    def rows(self) -> pa.RecordBatch:
        batches = concatenate(self.parts)
        spec, start, end = self.task.spec, int(batches["position"][0]), self._end
        where = ChunkRange(spec.segment, start, end, end if self.exact else NO_STOP)
        return run_rows(self.task, [rows_of(spec, None, batches, [], where)], self.origin)


def _adjacent(batch: pa.RecordBatch) -> Iterator[_Adjacent]:
    rows = batch.select(NEEDED)
    if not rows.num_rows:
        return
    paths = rows.column("path").dictionary_encode().indices.to_numpy(zero_copy_only=False)
    positions = rows.column("position").to_numpy(zero_copy_only=False)
    if not ((paths[1:] > paths[:-1]) | ((paths[1:] == paths[:-1]) & (positions[1:] > positions[:-1]))).all():
        order = np.lexsort((positions, paths))
        rows, paths, positions = rows.take(pa.array(order)), paths[order], positions[order]
    twice = np.zeros(len(paths), dtype=bool)
    twice[1:] = (paths[1:] == paths[:-1]) & (positions[1:] == positions[:-1])
    if twice.any():
        rows, paths, positions = rows.filter(pa.array(~twice)), paths[~twice], positions[~twice]
    batches = batches_of_rows(rows)
    exact = rows.column("exact").to_numpy(zero_copy_only=False)
    for first, stop in _ranges(paths, positions, batches["size"]):
        row = rows.slice(first, 1).to_pylist()[0]
        yield _Adjacent(_task(row), row["origin"], [batches[first:stop]], exact=bool(exact[first:stop].all()))


def _ranges(paths: NDArray[Any], positions: NDArray[Any], sizes: NDArray[Any]) -> Iterator[tuple[int, int]]:
    breaks = (paths[1:] != paths[:-1]) | (positions[1:] != positions[:-1] + sizes[:-1])
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(paths)]
    return pairwise(edges)


def _task(row: dict[str, Any]) -> SegmentTask:
    """Return the segment of a row, as far as a row knows it."""
    file = SegmentFile(row["path"], row["segment"], base_offset=0, size=0, modified_ms=0)
    spec = ChunkSpec(
        row["segment_number"], file, 0, 0, 0, row["log_start_offset"], verify=True, latest_timestamp=row["clock_limit"]
    )
    return SegmentTask(row["topic"], row["partition"], row["replica"], 0, spec)
