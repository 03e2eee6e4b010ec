"""Partitions written for tests of repeats, and their batches as rows."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from kaudit.model.log_rows import BoundaryBatch
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.run_batches import boundary_batches
from kaudit.reading.segment import ByteRange
from kaudit.source.discover import discover
from kaudit.source.layout import PartitionDirectory
from kaudit.source.schemes import open_segment
from tests.logs import Batch, Log


def written(
    tmp_path: Path, *batches: Batch, starts: tuple[int, ...] = (), times: Iterable[int] | None = None
) -> PartitionDirectory:
    """A partition of these batches, with a segment from each of these offsets on; `times` are their timestamps, ms."""
    log = Log()
    for batch in batches if times is None else map(_at, batches, times):
        log.append(batch, keep_time=times is not None)
    (directory,) = discover([str(log.write(tmp_path / "orders-0", segment_starts=starts))]).everything
    return directory


def _at(batch: Batch, timestamp: int) -> Batch:
    return replace(batch, timestamp=timestamp)


def batches_of(directory: PartitionDirectory, segment: int = 0) -> list[BoundaryBatch]:
    """The batches of a small segment."""
    file = directory.segments[segment]
    with closing(open_segment(file)) as source:
        whole = ByteRange(0, file.size, file.size)
        (rows,) = [piece.batches for piece in stream_batches(source, whole, expected_offset=None)]
    return boundary_batches(rows, 0, segment)
