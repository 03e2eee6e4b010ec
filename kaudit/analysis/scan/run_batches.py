"""Reading the batches of one run again: only rows of producers with anomalies need it."""

from contextlib import closing

import numpy as np

from kaudit.analysis.scan.batch_stream import ByteRange, stream_batches
from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.model.batch import last_offsets, last_sequences
from kaudit.model.batch_fields import CONTROL_FLAG
from kaudit.model.columns import Row
from kaudit.model.log_rows import BoundaryBatch
from kaudit.source.layout import PartitionDirectory


class RunFetcher:
    """Reads runs of one partition again, each from its first byte."""

    def __init__(self, directory: PartitionDirectory, open_source: OpenSource) -> None:
        self._directory = directory
        self._open = open_source

    def __call__(self, run: Row) -> list[BoundaryBatch]:
        """Return all batches of a run (one row of RUN).

        Raises:
            OSError: the segment cannot be read any more.

        """
        segment = self._directory.segments[int(run["segment"])]
        present, reached = int(run["present_before_first"]), int(run["first_offset"]) - 1
        boundary_batches: list[BoundaryBatch] = []
        with closing(self._open(segment)) as source:
            for piece in stream_batches(
                source, ByteRange(int(run["first_position"]), segment.size, segment.size), expected_offset=None
            ):
                batches = piece.batches
                lasts, sequences = last_offsets(batches), last_sequences(batches)
                mine = (batches["producer_id"] == run["producer_id"]) & (batches["attributes"] & CONTROL_FLAG == 0)
                covered = present + np.cumsum(lasts - batches["base_offset"] + 1)
                for index in np.flatnonzero(mine & (batches["base_offset"] > reached)).tolist():
                    row = batches[index]
                    if int(row["base_offset"]) > int(run["last_offset"]):
                        return boundary_batches
                    before = int(covered[index]) - (int(lasts[index]) - int(row["base_offset"]) + 1)
                    boundary_batches.append(
                        BoundaryBatch(
                            int(row["base_offset"]),
                            int(lasts[index]),
                            int(row["base_sequence"]),
                            int(sequences[index]),
                            int(row["record_count"]),
                            int(row["crc"]),
                            int(row["max_timestamp"]),
                            before,
                            int(row["position"]),
                            int(row["size"]),
                            int(row["leader_epoch"]),
                            int(run["segment"]),
                        )
                    )
                if len(batches):
                    present = int(covered[-1])
        return boundary_batches
