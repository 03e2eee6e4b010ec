"""Where batches of data lie: noted for parts of a log that were decoded at once, and read again from its headers where one is asked for."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.audits.records.spill import Rows
from kaudit.model.batch import last_offsets
from kaudit.model.batch_fields import CONTROL_FLAG
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory

PART = np.dtype([(name, "<i8") for name in ("first", "last", "start", "end", "segment")])
"""Batches of data in one segment: the first and the last offset, and bytes from the first batch's to one of the last."""
STORED = np.dtype(
    [
        *(("offset", "<i8"), ("position", "<i8"), ("producer_id", "<i8"), ("segment", "<i4"), ("size", "<i4")),
        *(("span", "<i4"), ("sequence", "<i4"), ("epoch", "<i2"), ("attributes", "<i2")),
    ]
)
"""A batch of data: its base offset and where it lies, `span` its last offset delta, `sequence` its base sequence."""
_PARTS_HELD = 64


def part_of(batches: Mapping[str, NDArray[Any]]) -> tuple[int, int, int, int, int]:
    """Return the row of PART of batches of one segment, ascending by offsets."""
    positions = batches["position"]
    ends = int(batches["base_offset"][0]), int(batches["last_offset"][-1])
    return *ends, int(positions.min()), int(positions.max()) + 1, int(batches["segment"][0])


def stored_rows(batches: Mapping[str, NDArray[Any]]) -> Rows:
    """Return batches as STORED."""
    rows = np.empty(len(batches["base_offset"]), dtype=STORED)
    rows["offset"], rows["span"] = batches["base_offset"], batches["last_offset"] - batches["base_offset"]
    rows["sequence"], rows["epoch"] = batches["base_sequence"], batches["producer_epoch"]
    for name in ("position", "producer_id", "segment", "size", "attributes"):
        rows[name] = batches[name]
    return rows


class StoredBatches:
    """The batches of data of a partition that was read, a few parts at a time; `parts` are rows of PART in the order of the log."""

    def __init__(self, directory: PartitionDirectory, parts: Rows, open_source: OpenSource) -> None:
        self._directory = directory
        self._parts = parts
        self._open = open_source
        self._part = lru_cache(maxsize=_PARTS_HELD)(self._read)

    def parts(self) -> Iterator[Rows]:
        """Yield rows of STORED in the order of the log; none of what cannot be read any more."""
        yield from map(self._read, range(len(self._parts)))

    def at(self, offsets: NDArray[np.int64]) -> Rows:
        """Return the batch of each offset as STORED, shape of `offsets`; of size 0 where it cannot be read any more."""
        found = np.zeros(len(offsets), dtype=STORED)
        # by last offsets: the batches of magic 0 and 1 have no other
        parts = np.minimum(np.searchsorted(self._parts["last"], offsets), max(len(self._parts) - 1, 0))
        for number in np.unique(parts).tolist():
            own = np.flatnonzero(parts == number)
            rows = self._part(number)
            found["segment"][own] = self._parts["segment"][number]
            if len(rows):
                at = np.searchsorted(rows["offset"] + rows["span"], offsets[own])
                inside = at < len(rows)
                found[own[inside]] = rows.take(at[inside])
        return found

    def _read(self, number: int) -> Rows:
        first, last, start, end, segment = self._parts[number].tolist()
        file, read = self._directory.segments[segment], [np.empty(0, dtype=STORED)]
        try:
            with closing(self._open(file)) as source:
                for piece in stream_batches(source, ByteRange(start, end, file.size), expected_offset=None):
                    batches = piece.batches[piece.batches["attributes"] & CONTROL_FLAG == 0]
                    columns = {name: batches[name] for name in batches.dtype.names or ()}
                    columns |= {"last_offset": last_offsets(batches), "segment": np.full(len(batches), segment)}
                    read.append(stored_rows(columns))
        except OSError:
            return read[0]  # noted by whoever opened it
        rows = np.concatenate(read)
        lasts = rows["offset"] + rows["span"]
        inside = np.flatnonzero((rows["offset"] >= first) & (lasts <= last))
        # of batches with the same offsets the first one counts
        _, chosen = np.unique(lasts[inside], return_index=True)
        return rows[inside[chosen]]
