"""What tasks read: segments to rows of `batches`, `runs` and `records`, as Arrow record batches."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import numpy as np
import pyarrow as pa

from kaudit.model.batch import Batches, concatenate, first_timestamps, last_offsets
from kaudit.partition.assembler import read_range
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.segment import ByteRange
from kaudit.reading.unread_segments import require_whole
from kaudit.source.bytes import ByteSource
from kaudit.source.schemes import open_segment
from kaudit.spark.batch_rows import batch_rows
from kaudit.spark.options import ReadOptions
from kaudit.spark.planning import SegmentRead
from kaudit.spark.record_rows import record_rows
from kaudit.spark.run_rows import run_rows

_ROWS_AT_ONCE = 1 << 16
Reader = Callable[[SegmentRead, ReadOptions], Iterator[pa.RecordBatch]]


def read_batches(read: SegmentRead, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield a segment's valid batches. Raises OSError: Spark tries the task again, and says why the last attempt failed."""
    for _, batches in _pieces(read, options):
        yield batch_rows(read.task, batches)


def read_records(read: SegmentRead, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield a segment's records of data, decompressed. Raises as `read_batches` does."""
    for source, batches in _pieces(read, options):
        yield from record_rows(read.task, source, batches, options)


def read_runs(read: SegmentRead, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield a segment's runs, markers and chunks; with `cut` chunks only, of the range. A file that cannot be read is a chunk too."""
    if options.since is not None and read.ends_before(options.since):
        return
    yield run_rows(read.task, [read_range(read.task.spec)], chunks_only=options.cut)


READERS: Mapping[str, Reader] = {"batches": read_batches, "runs": read_runs, "records": read_records}


def _pieces(read: SegmentRead, options: ReadOptions) -> Iterator[tuple[ByteSource, Batches]]:
    """Yield the batches asked for, some ten thousand at a time, with the source that they are read from."""
    if options.since is not None and read.ends_before(options.since):
        return
    spec = read.task.spec
    where = ByteRange(spec.start, spec.stop, spec.end)
    held: list[Batches] = []
    count = 0
    with closing(open_segment(spec.file)) as source:
        for piece in stream_batches(source, where, expected_offset=spec.file.base_offset, verify=spec.verify):
            held.append(_wanted(piece.batches, options))
            count += len(held[-1])
            if count >= _ROWS_AT_ONCE:
                yield source, concatenate(held)
                held, count = [], 0
        require_whole(spec.file, source)
        if count:
            yield source, concatenate(held)


def _wanted(batches: Batches, options: ReadOptions) -> Batches:
    """Leave the batches that overlap the offsets and times asked for."""
    bounds = (options.first_offset, options.last_offset, options.since, options.until)
    if bounds == (None, None, None, None) or not len(batches):
        return batches
    chosen = np.ones(len(batches), dtype=bool)
    if options.first_offset is not None:
        chosen &= last_offsets(batches) >= options.first_offset
    if options.last_offset is not None:
        chosen &= batches["base_offset"] <= options.last_offset
    if options.since is not None:
        chosen &= batches["max_timestamp"] >= options.since
    if options.until is not None:
        firsts = first_timestamps(batches)
        chosen &= np.where(firsts < 0, batches["max_timestamp"], firsts) <= options.until
    return batches[chosen]
