"""The segments of one partition of a capture, and where batches begin and end in what is written to them.

Segments are rolled as LogSegment.shouldRoll does: by size, and by how far offsets reach. Of a batch only the header is read.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from kaudit.capture.directory import CaptureDirectory
from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER, LOG_OVERHEAD, PREFIX_SIZE, plausible_length

NO_LEADER_EPOCH: Final = -1
_PREFIX: Final = HEADER.struct("base_offset", "batch_length", "leader_epoch", "magic")
_DELTA: Final = HEADER.struct("last_offset_delta")
_DELTA_OFFSET: Final = HEADER.offset("last_offset_delta")


class Frame(NamedTuple):
    """One whole batch: its bytes from `start` to `end` (exclusive), its offsets, its leader epoch (-1 before magic 2)."""

    start: int
    end: int
    base_offset: int
    last_offset: int
    leader_epoch: int


class NotABatchError(ValueError):
    """The bytes at `position`, after the last whole batch, cannot be a batch."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position


def frames(data: bytes | memoryview) -> Iterator[Frame]:
    """Yield the batches that `data` holds whole; the last one may be cut off, as in the answer to a fetch.

    Raises:
        NotABatchError: a length, a magic or an offset that no batch has.

    """
    at = 0
    while len(data) - at >= PREFIX_SIZE:
        base, length, epoch, magic = _PREFIX.unpack_from(data, at)
        if not plausible_length(magic, length):
            raise NotABatchError(at, f"magic {magic} and a length of {length} bytes")
        end = at + LOG_OVERHEAD + length
        if end > len(data):
            return
        last = base
        if magic == CURRENT_MAGIC:
            last += _DELTA.unpack_from(data, at + _DELTA_OFFSET)[0]
        else:
            epoch = NO_LEADER_EPOCH
        if not 0 <= base <= last < 1 << 63:
            raise NotABatchError(at, f"offsets {base} to {last}")
        yield Frame(at, end, base, last, epoch)
        at = end


_MOST_RELATIVE_OFFSET: Final = (1 << 31) - 1
"""An index holds offsets relative to its segment's base offset, as int32."""


class SegmentWriter:
    """Appends whole batches to the last segment of a partition, or begins the next.

    `base_offset` is the last segment's, None before there is one, `size` its bytes; `next_offset` follows the last batch
    and is None before there is one; `written` counts the bytes of all segments.
    """

    def __init__(self, directory: CaptureDirectory, partition: str, segment_bytes: int) -> None:
        """List what earlier runs left in its place; `take_up` comes before anything else is asked. Raises OSError."""
        self._directory = directory
        self._partition = partition
        self._segment_bytes = segment_bytes
        self._out: BinaryIO | None = None
        self._grows = False
        self._ends = False  # nothing may be appended to the last segment
        self._end = 0  # of the batches written; next_offset may be higher
        self._placed = directory.segments(partition)
        self.first_offset = self._placed[0][0] if self._placed else -1
        """The base offset of the oldest segment, -1 before there is one."""
        self.base_offset: int | None = None
        self.size = 0
        self.next_offset: int | None = None
        self.written = sum(size for _, size in self._placed)
        if self._placed:
            self.base_offset, self.size = self._placed[-1]

    def take_up(self, recovery_point: int) -> Iterator[Frame]:
        """Find where to go on, and yield the batches of segments that begin at `recovery_point` or after it.

        What lies before was accounted for. The segment that a killed run was writing comes last, cut to whole batches.
        Raises NotABatchError where a segment is not as kaudit left it, OSError.
        """
        self._directory.make_partition(self._partition)
        self._end = recovery_point
        for base, _ in self._placed:
            if base >= recovery_point:
                self._end = base
                for _, frame in _walk(self._directory.pieces(self._partition, base)):
                    yield frame
                    self._end = frame.last_offset + 1
        yield from self._take_up_growing()
        self.next_offset = None if self.base_offset is None else self._end

    def _take_up_growing(self) -> Iterator[Frame]:
        for base in self._directory.growing(self._partition):
            file = self._directory.growing_file(self._partition, base)
            whole = 0
            for position, frame in _walk(_pieces(file)):
                yield frame
                whole, self._end = position, frame.last_offset + 1
            if not whole:
                file.unlink()
                continue
            os.truncate(file, whole)
            self.base_offset, self.size, self._grows = base, whole, True
            self.first_offset = base if self.first_offset < 0 else self.first_offset
            self.written += whole

    def grow(self) -> None:
        """Take the last segment out of its place, unless it is full or there is none: it is going to be appended to."""
        if self._grows or self._ends or self.base_offset is None or self.size >= self._segment_bytes:
            return
        self._directory.take_back(self._partition, self.base_offset)
        self._grows = True

    def append(self, data: bytes, batches: Iterable[Frame]) -> None:
        """Write batches of `data`, in the order of their offsets. `grow` comes first."""
        view, start, end = memoryview(data), 0, 0
        for frame in batches:
            if not self._grows or self._is_full(frame, end - start):
                self._write(view[start:end])
                assert self.next_offset is not None
                # the first batch after the log start may begin before it
                self._begin(max(min(self.next_offset, frame.base_offset), self._end))
                start = frame.start
            elif start == end:
                start = frame.start
            end = frame.end
            self._end = self.next_offset = max(self._end, frame.last_offset + 1)
        self._write(view[start:end])

    def _is_full(self, frame: Frame, pending: int) -> bool:
        assert self.base_offset is not None
        too_large = self.size + pending + frame.end - frame.start > self._segment_bytes
        return too_large or frame.last_offset - self.base_offset > _MOST_RELATIVE_OFFSET

    def _write(self, data: memoryview) -> None:
        if not data:
            return
        if self._out is None:
            assert self.base_offset is not None
            self._out = self._directory.growing_file(self._partition, self.base_offset).open("ab")
        self._out.write(data)
        self._out.flush()
        self.size += len(data)
        self.written += len(data)

    def _begin(self, base_offset: int) -> None:
        self.publish(grows_on=False)
        self.base_offset, self.size, self._grows, self._ends = base_offset, 0, True, False
        self.first_offset = base_offset if self.first_offset < 0 else self.first_offset
        self._directory.growing_file(self._partition, base_offset).touch()

    def skip_to(self, offset: int) -> None:
        """Go on at `offset`, in a new segment: the offsets before it are lost."""
        self.publish(grows_on=False)
        self.next_offset, self._ends = offset, True

    def publish(self, *, grows_on: bool) -> None:
        """Put the last segment in its place, safe on disk; with `grows_on` it is not the end of it."""
        if not self._grows:
            return
        assert self.base_offset is not None
        if self._out is not None:
            os.fsync(self._out.fileno())
            self._out.close()
            self._out = None
        self._directory.publish(self._partition, self.base_offset, grows_on=grows_on)
        self._grows = False

    def begin_empty(self, offset: int) -> None:
        """Begin the first segment, as a broker does before there is a batch."""
        self._begin(offset)
        self.next_offset = offset

    def close(self) -> None:
        """Let go of the file; what grows is taken up by the next run."""
        if self._out is not None:
            self._out.close()


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        while data := source.read(4 << 20):
            yield data


def _walk(pieces: Iterable[bytes]) -> Iterator[tuple[int, Frame]]:
    """Yield each whole batch of a segment with the position after it. Raises NotABatchError."""
    held, at = b"", 0
    for piece in pieces:
        data, end = held + piece, 0
        for frame in frames(data):
            end = frame.end
            yield at + end, frame
        held, at = data[end:], at + end
