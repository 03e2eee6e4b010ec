"""The batches of a segment, whatever its bytes come from: a file, a fetch, or the text of a dump."""

from collections.abc import Iterator

from kaudit.reading.segment import WINDOW_BYTES, ByteRange, Piece, segment_batches
from kaudit.source.bytes import ByteSource
from kaudit.source.kafka.fetched_segment import FetchedSegment
from kaudit.source.text import SegmentText


def stream_batches(
    source: ByteSource,
    where: ByteRange,
    *,
    expected_offset: int | None,
    verify: bool = True,
    window_bytes: int = WINDOW_BYTES,
) -> Iterator[Piece]:
    """Yield the batches that start in a range of a file.

    `where.start` is a batch boundary. The last piece's `read_to` is where the first batch not yielded starts: `stop` when the
    ranges of a file were cut at boundaries. With `verify` every batch's CRC is checked; without, framing is trusted.
    A segment of which only a text is there is one range, from a byte of the segment to its end.
    """
    start, stop, _ = where
    if isinstance(source, SegmentText):
        from kaudit.reading.dump_text import dump_text_batches  # noqa: PLC0415 - few logs are texts: 5 ms for the others

        for batches, damages, gaps in dump_text_batches(source, start):
            yield Piece(batches, damages, stop, coverage_gaps=gaps)
        return
    if isinstance(source, FetchedSegment):
        from kaudit.reading.fetched import fetched_batches  # noqa: PLC0415 - few logs are fetched

        yield from fetched_batches(source, start, stop, verify=verify)
        return
    yield from segment_batches(source, where, expected_offset=expected_offset, verify=verify, window_bytes=window_bytes)
