"""Rows of `batches` to rows of `runs`, in any order and with any of them left out: what runs() does in tasks."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kaudit.model.batch import Batches, concatenate
from kaudit.partition.batch_export import SegmentTask
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_reader import CHUNK_BATCHES, rows_of
from kaudit.reading.chunk_rows import ChunkRange
from kaudit.source.layout import SegmentFile
from kaudit.spark.batch_rows import NEEDED, batches_of_rows
from kaudit.spark.run_rows import run_rows

NO_STOP = -1
"""Of a chunk that cannot stand for its segment's bytes."""


def batches_to_runs(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reduce the rows of a task: those that lie side by side in a segment become one chunk.

    Rows that came twice count once. A chunk with batches whose rows do not hold the whole header has no `stop`: findings() reads
    its segment again.
    """
    held: _Stretch | None = None
    for batch in rows:
        for stretch in _stretches(batch):
            if held is not None and held.goes_on_with(stretch):
                held = held.with_next(stretch)
                continue
            if held is not None:
                yield held.rows()
            held = stretch
    if held is not None:
        yield held.rows()


class _Stretch:
    """Batches of one segment that lie side by side."""

    def __init__(self, task: SegmentTask, parts: list[Batches], *, exact: bool) -> None:
        self.task = task
        self.parts = parts
        self.exact = exact

    @property
    def _end(self) -> int:
        last = self.parts[-1][len(self.parts[-1]) - 1]
        return int(last["position"]) + int(last["size"])

    def goes_on_with(self, other: "_Stretch") -> bool:
        return (
            self.task.spec.file.path == other.task.spec.file.path
            and self._end == int(other.parts[0]["position"][0])
            and sum(map(len, self.parts)) < CHUNK_BATCHES
        )

    def with_next(self, other: "_Stretch") -> "_Stretch":
        return _Stretch(self.task, [*self.parts, *other.parts], exact=self.exact and other.exact)

    def rows(self) -> pa.RecordBatch:
        batches = concatenate(self.parts)
        spec, start, end = self.task.spec, int(batches["position"][0]), self._end
        where = ChunkRange(spec.segment, start, end, end if self.exact else NO_STOP)
        return run_rows(self.task, [rows_of(spec, None, batches, [], where)])


def _stretches(batch: pa.RecordBatch) -> Iterator[_Stretch]:
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
        yield _Stretch(
            _task(rows.slice(first, 1).to_pylist()[0]), [batches[first:stop]], exact=bool(exact[first:stop].all())
        )


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
