"""Reading the batches of one run again: only rows of producers with anomalies need it."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from kaudit.model.batch import Batches, last_offsets, last_sequences
from kaudit.model.batch_fields import CONTROL_FLAG
from kaudit.model.columns import Row
from kaudit.model.log_rows import BoundaryBatch
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory


def boundary_batches(batches: Batches, present_before: NDArray[np.int64] | int, segment: int) -> list[BoundaryBatch]:
    """Return batches of a segment as boundary batches; `present_before` as in BoundaryBatch, shape (n,) or one for all."""
    computed = {
        "last_offset": last_offsets(batches),
        "first_sequence": batches["base_sequence"],
        "last_sequence": last_sequences(batches),
        "present_before": np.broadcast_to(present_before, len(batches)),
        "segment": np.broadcast_to(segment, len(batches)),
    }
    columns = (computed[name] if name in computed else batches[name] for name in BoundaryBatch._fields)
    return [BoundaryBatch._make(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


class RunFetcher:
    """Reads runs of one partition again, each from its first byte."""

    def __init__(self, directory: PartitionDirectory, open_source: OpenSource) -> None:
        self._directory = directory
        self._open = open_source

    def __call__(self, run: Row) -> Iterator[BoundaryBatch]:
        """Yield all batches of a run (one row of RUN), some MiB of the log in memory at a time.

        Raises:
            OSError: the segment cannot be read any more.

        """
        segment = self._directory.segments[int(run["segment"])]
        present, reached = int(run["present_before_first"]), int(run["first_offset"]) - 1
        with closing(self._open(segment)) as source:
            for piece in stream_batches(
                source, ByteRange(int(run["first_position"]), segment.size, segment.size), expected_offset=None
            ):
                batches = piece.batches
                bases, covered = batches["base_offset"], last_offsets(batches) - batches["base_offset"] + 1
                before = present + np.cumsum(covered) - covered
                mine = (batches["producer_id"] == run["producer_id"]) & (batches["attributes"] & CONTROL_FLAG == 0)
                own = np.flatnonzero(mine & (bases > reached) & (bases <= run["last_offset"]))
                yield from boundary_batches(batches[own], before[own], int(run["segment"]))
                if (mine & (bases > run["last_offset"])).any():
                    return
                present += int(covered.sum())
