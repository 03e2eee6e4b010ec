"""Records of places of a partition read again, and compared: what scan's repeats are found by, as `kaudit dedup` finds them in all of a log."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.model.batch import Batches, concatenate, empty_batches
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource, boundary_from
from kaudit.reading.content_rows import read_batches
from kaudit.reading.identity.columns import IdentityColumns, IdentityReader
from kaudit.reading.record_content import MAX_BATCH_BYTES
from kaudit.reading.segment import ByteRange
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import PartitionDirectory

Ranges = Mapping[int, Iterable[tuple[int, int]]]
"""Of segments by number: first bytes, and bytes after the last."""


MOST_RECORDS, MOST_BYTES = 1 << 20, 64 << 20
"""Records of one partition that are held, and bytes of their batches; what lies beyond is not compared."""


class ReadAgain(NamedTuple):
    """Records in the order of the log, shape (n,), `contents` (n, 2); the number of each one's batch, and the batches with their segments.

    `ended`: these are all.
    """

    contents: NDArray[np.uint64]
    timestamps: NDArray[np.int64]
    offsets: NDArray[np.int64]
    numbers: NDArray[np.int64]
    batches: Batches
    segments: NDArray[np.int64]
    ended: bool


class RecordsAgain(Struct, frozen=True):
    """Reads the batches of a partition that `chosen` marks, and their records. Raises OSError as sources do."""

    directory: PartitionDirectory
    open_source: OpenSource
    reader: IdentityReader
    chosen: Callable[[Batches], NDArray[np.bool_]]

    def fits(self) -> bool:
        """Return whether the partition is small enough to be read."""
        return self.directory.bytes <= MOST_BYTES

    def read(self, ranges: Ranges | None = None) -> ReadAgain:
        """Return the records of ranges, of all of the log without, that there is room for."""
        if ranges is None:
            ranges = {number: [(0, segment.size)] for number, segment in enumerate(self.directory.segments)}
        parts: list[tuple[NDArray[Any], ...]] = [(np.empty((0, 2), np.uint64), *[np.empty(0, np.int64)] * 4)]
        batches, room, left, before, ended = [empty_batches()], MOST_BYTES, MOST_RECORDS, 0, True
        for segment, rows, columns in self.within(ranges):
            room, left = room - int(rows["size"].sum()), left - len(columns.offsets)
            if min(room, left) < 0:
                ended = False
                break
            ended = ended and len(columns.offsets) >= int(np.maximum(rows["record_count"], 0).sum(dtype=np.int64))
            own = columns.identities, columns.timestamps, columns.offsets, columns.batches + before
            parts.append((*own, np.full(len(rows), segment)))
            batches.append(rows)
            before += len(rows)
        contents, timestamps, offsets, numbers, segments = map(np.concatenate, zip(*parts, strict=True))
        return ReadAgain(contents, timestamps, offsets, numbers, concatenate(batches), segments, ended)

    def within(self, ranges: Ranges) -> Iterator[tuple[int, Batches, IdentityColumns]]:
        """Yield segment, batches, and records whose `batches` are numbers of these, of ranges in the order of the log; none of texts."""
        for segment, own in sorted(ranges.items()):
            file = self.directory.segments[segment]
            if file.text is not None:
                continue
            with closing(self.open_source(file)) as source:
                for start, stop in _apart(own):
                    for rows in self.batches(source, segment, start, stop):
                        for batches, columns in self.decoded(source, rows):
                            yield segment, batches, columns

    def batches(self, source: ByteSource, segment: int, start: int, stop: int) -> Iterator[Batches]:
        """Yield the chosen batches that begin within bytes of a segment."""
        size = self.directory.segments[segment].size
        begin = boundary_from(source, start, size) if start else 0
        for piece in stream_batches(source, ByteRange(begin, stop, size), expected_offset=None, verify=False):
            yield piece.batches[self.chosen(piece.batches)]

    def decoded(self, source: ByteSource, rows: Batches) -> Iterator[tuple[Batches, IdentityColumns]]:
        """Yield batches of a segment, some at once, and their records; those that cannot be decoded have none."""
        for numbers, data in read_batches(source, rows["position"], rows["size"]):
            columns, _ = self.reader.columns(data, MAX_BATCH_BYTES)
            yield rows[numbers], columns


def _apart(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges of bytes ascending and apart."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found
