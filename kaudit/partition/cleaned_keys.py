"""Whether the keys of a log contradict that its log cleaner has been there."""

from collections.abc import Iterator
from contextlib import closing

from kaudit.model.batch import last_offsets
from kaudit.model.batch_fields import CONTROL_FLAG
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.content_rows import NO_KEY, decodable_records, key_of
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory

_SEARCHED_BYTES = 1 << 20
"""A log that was never cleaned mostly shows it in its first batches."""


def is_uncleaned(directory: PartitionDirectory, open_source: OpenSource, end: int) -> bool:
    """Return whether the first records below `end` show that the log cleaner has not been at all of them.

    It removes records without a key, and of each key all records but the last (Cleaner.shouldRetainRecord).

    Raises:
        OSError: a segment cannot be read.

    """
    seen: set[int] = set()
    for key in _keys(directory, open_source, end):
        if key == NO_KEY or key in seen:
            return True
        seen.add(key)
    return False


def _keys(directory: PartitionDirectory, open_source: OpenSource, end: int) -> Iterator[int]:
    left = _SEARCHED_BYTES
    for segment in directory.segments:
        if segment.base_offset >= end or left <= 0 or segment.text is not None or segment.deleted:
            return
        with closing(open_source(segment)) as source:
            searched = ByteRange(0, min(segment.size, left), segment.size)
            for piece in stream_batches(source, searched, expected_offset=segment.base_offset):
                whole = (piece.batches["attributes"] & CONTROL_FLAG == 0) & (last_offsets(piece.batches) < end)
                whole &= piece.batches["size"] <= _SEARCHED_BYTES
                yield from map(key_of, decodable_records(source, piece.batches[whole]))
        left -= segment.size
