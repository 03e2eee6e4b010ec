"""Cutting segments into chunks: by bytes when planning, at batch boundaries where the bytes are."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.formats.log import resync
from kaudit.formats.log.batch_header import HEADER_SIZE, batch_size
from kaudit.model.grouping import grouped
from kaudit.reading.read_window import Window
from kaudit.reading.saved_partition import SavedPartition, SavedRows
from kaudit.source.bytes import ByteSource, announce
from kaudit.source.kafka.fetched_segment import FetchedSegment
from kaudit.source.layout import PartitionDirectory, SegmentFile

_PROBE_BYTES = 64 << 10

OpenSource = Callable[[SegmentFile], ByteSource]


class ChunkSpec(Struct, frozen=True):
    """Bytes `start`..`stop` of a segment of `end` bytes; batches that start in them are the chunk's."""

    segment: int
    file: SegmentFile
    start: int
    stop: int
    end: int
    log_start_offset: int | None
    verify: bool
    latest_timestamp: int
    """Timestamps (ms) beyond this are no clock: a producer's mistake, or a field of another unit."""
    decode: bool = False
    """Decode the records of every batch."""
    digests: bool = False
    """Return what digests need of the batches."""
    expected_offset: int | None = None
    """Offset after the batch that ends at `start`, where that is known; at the segment's first byte it is its base offset.

    `start` is where reading begins then, whatever is there.
    """
    joined: Sequence[SegmentFile] = ()
    """The segments that follow, read whole with this one as if their bytes were its."""
    saved: SavedRows | None = None
    """The rows of these bytes that an earlier audit saved."""
    limit: int | None = None
    """No range that is cut from this one ends after this position, wherever the next batch begins."""

    @property
    def bytes_to_read(self) -> int:
        """How many bytes of the log have to be read for it."""
        return 0 if self.saved is not None else self.stop - self.start


def whole_segments(
    directory: PartitionDirectory, *, log_start_offset: int | None, verify: bool, latest_timestamp: int
) -> list[ChunkSpec]:
    """One spec a segment, for reading a partition from its first byte to its last; empty segments have none."""
    return [
        ChunkSpec(index, segment, 0, segment.size, segment.size, log_start_offset, verify, latest_timestamp)
        for index, segment in enumerate(directory.segments)
        if segment.size > 0
    ]


def with_saved(plan: Sequence[ChunkSpec], saved: SavedPartition) -> list[ChunkSpec]:
    """Return a plan of whole segments with what is saved of them in its place, and in front of what is not.

    What need not be put together again is left out.
    """
    resumed = {(piece.segment, piece.start) for piece in saved.pieces[: saved.resumed]}
    pieces = grouped((piece.segment, piece) for piece in saved.pieces)
    together = {piece.segment + number for piece in saved.pieces for number in range(1, piece.joined + 1)}
    specs = {spec.segment: spec for spec in plan}
    found: list[ChunkSpec] = []
    for segment, spec in specs.items():
        own = pieces.get(segment, ())
        for piece in own:
            if (segment, piece.start) in resumed:
                continue
            joined = [specs[segment + number].file for number in range(1, piece.joined + 1)]
            end = piece.stop if joined else spec.end
            part = replace(spec, start=piece.start, stop=piece.stop, end=end, joined=joined, saved=saved.rows)
            found.append(replace(part, expected_offset=piece.expected_offset))
        start = own[-1].stop if own else 0
        if start < spec.stop and segment not in together:
            expected_offset = own[-1].next_offset if own else spec.expected_offset
            found.append(replace(spec, start=start, expected_offset=expected_offset))
    return found


def cut(spec: ChunkSpec, chunk_bytes: int) -> Iterator[ChunkSpec]:
    """Cut a range of a segment into ranges of about `chunk_bytes`, without reading the file.

    `settle` moves the cuts to batch boundaries.
    """
    rest: ChunkSpec | None = spec
    while rest is not None:
        part, rest = cut_first(rest, chunk_bytes)
        yield part


def cut_first(spec: ChunkSpec, chunk_bytes: int) -> tuple[ChunkSpec, ChunkSpec | None]:
    """Cut off the first range as `cut` does; return it and the rest, None if that was all."""
    if spec.file.text is not None or spec.joined or spec.saved is not None:
        return spec, None  # positions in a text are not the segment's, and small segments are no longer than a range
    if spec.stop - spec.start <= chunk_bytes * 3 // 2:
        return spec, None
    stop = spec.start + chunk_bytes
    return replace(spec, stop=stop), replace(spec, start=stop, expected_offset=None)


def settle(spec: ChunkSpec, source: ByteSource) -> ChunkSpec:
    """Move a range's ends to where a valid batch begins at or after them.

    Neighbours settle on the same boundary, each by itself. It is only a guess that reading the chunk before it
    confirms: that chunk must end exactly there. A range that lies within one batch ends up empty.
    """
    announce(source, spec.start, spec.stop)
    stop = boundary_from(source, spec.stop, spec.end) if spec.stop < spec.end else spec.end
    known = spec.start == 0 or spec.expected_offset is not None
    # last, as reading goes on from there
    start = spec.start if known else boundary_from(source, spec.start, spec.end)
    if spec.limit is not None:
        start, stop = min(start, spec.limit), min(stop, spec.limit)
    return replace(spec, start=start, stop=stop)


def boundary_from(source: ByteSource, position: int, end: int) -> int:
    """Return the first position at or after `position` where a batch begins whose CRC holds; `end` if none does."""
    if isinstance(source, FetchedSegment):
        return min(source.place.position(source.place.offset(position)), end)
    window = Window(source, end, _PROBE_BYTES)
    while position < end:
        view = window.load(position)
        if not len(view):
            return end
        after = end - (position + len(view))
        for at in resync.candidates(view, 0, after).tolist():
            if window.is_batch(position + at, batch_size(view, at)):
                return int(position + at)
        position += max(len(view) - HEADER_SIZE + 1, 1)
    return end
