"""The end of one partition's log, from an offset on."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import PREFIX_SIZE, base_offset_of
from kaudit.model.batch import Batches, last_offsets
from kaudit.model.batch_fields import CONTROL_FLAG
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource, boundary_from
from kaudit.reading.segment import ByteRange
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import PartitionDirectory, SegmentFile

_NEAR_BYTES = 4 << 20
_TAIL_BYTES = 64 << 10


def batches_from(directory: PartitionDirectory, open_source: OpenSource, first: int) -> Iterator[Batches]:
    """Yield the valid batches that end at or after offset `first`, as the segments hold them, some at a time.

    Raises:
        OSError: a segment cannot be read.

    """
    return (batches for _, batches in placed_batches_from(directory, open_source, first))


def placed_batches_from(
    directory: PartitionDirectory, open_source: OpenSource, first: int
) -> Iterator[tuple[int, Batches]]:
    """Yield the same with the number of the segment that holds them."""
    segments = directory.segments
    begin = max((index for index, segment in enumerate(segments) if segment.base_offset <= first), default=0)
    for number, segment in enumerate(segments[begin:], begin):
        with closing(open_source(segment)) as source:
            start = _before(first, source, segment.size) if number == begin else 0
            tail = ByteRange(start, segment.size, segment.size)
            for piece in stream_batches(source, tail, expected_offset=segment.base_offset):
                found = piece.batches[last_offsets(piece.batches) >= first]
                if len(found):
                    yield number, found


def position_of(segment: SegmentFile, open_source: OpenSource, offset: int) -> int:
    """Return where the first valid batch of a segment begins that is at or after `offset`; its size where there is none.

    Raises:
        OSError: the segment cannot be read.

    """
    with closing(open_source(segment)) as source:
        tail = ByteRange(_before(offset, source, segment.size), segment.size, segment.size)
        for piece in stream_batches(source, tail, expected_offset=None):
            after = piece.batches[piece.batches["base_offset"] >= offset]
            if len(after):
                return int(after["position"][0])
    return segment.size


def last_batches(segment: SegmentFile, open_source: OpenSource) -> Iterator[Batches]:
    """Yield the valid batches that begin in a segment's last bytes, all of them where none begins there.

    Raises:
        OSError: the segment cannot be read.

    """
    with closing(open_source(segment)) as source:
        start = boundary_from(source, max(segment.size - _TAIL_BYTES, 0), segment.size)
        tail = ByteRange(0 if start == segment.size else start, segment.size, segment.size)
        for piece in stream_batches(source, tail, expected_offset=segment.base_offset):
            if len(piece.batches):
                yield piece.batches


def end_of(segments: Sequence[SegmentFile], open_source: OpenSource) -> int:
    """Return where a log of so many segments ends (exclusive), by its last batch: an empty last segment begins there.

    Raises:
        OSError: a segment cannot be read.

    """
    written = [segment for segment in segments if segment.size]
    found = last_batches(written[-1], open_source) if written else ()
    return max([segments[-1].base_offset, *(int(last_offsets(batches).max()) + 1 for batches in found)])


def _before(offset: int, source: ByteSource, size: int) -> int:
    """Return where a batch begins that is at or before `offset`, not far from the batch that holds it."""
    low, high = 0, size
    while high - low > _NEAR_BYTES:
        middle = (low + high) // 2
        at = boundary_from(source, middle, high)
        if at < high and _base_offset(source, at) <= offset:
            low = at
        else:
            high = middle
    return low


def _base_offset(source: ByteSource, position: int) -> int:
    head = bytearray(PREFIX_SIZE)
    source.read_into(position, memoryview(head))
    return base_offset_of(head)


def producers_records(batches: Batches) -> NDArray[np.int64]:
    """Return how many records of producers each batch holds, shape (n,): a control batch has none.

    A compressed set of magic 0 or 1 does not say: it holds those between the batch before it and its own offset.
    """
    control = batches["attributes"] & CONTROL_FLAG != 0
    counts = np.where(control, 0, batches["record_count"]).astype(np.int64)
    if (unknown := counts < 0).any():
        lasts = last_offsets(batches)
        counts[unknown] = np.diff(lasts, prepend=lasts[:1] - 1)[unknown]
    return counts


def log_end(directory: PartitionDirectory, next_offset: int | None, log_start: int) -> int:
    """Return the offset after the last valid batch; for a log without one, or whose last segment is empty, where it begins."""
    segments = directory.segments
    empty = segments[-1].base_offset if segments and not segments[-1].size else 0
    if next_offset is not None:
        return max(next_offset, empty)
    return max(empty, log_start, segments[0].base_offset if segments else 0)
