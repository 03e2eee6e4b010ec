"""A file that lies in another one: a range of its bytes, or ranges with holes between them."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from kaudit.formats.log.batch_header import LOG_OVERHEAD, MAGIC_OFFSET, PREFIX_SIZE, batch_size, plausible_length
from kaudit.source.bytes import ByteSource, CutOffError, announce


class FilePart:
    """`size` bytes of a source from `start` on."""

    def __init__(self, source: ByteSource, start: int, size: int) -> None:
        self._source = source
        self._start = start
        self._size = size

    def size(self) -> int:
        """Return how many bytes it has."""
        return self._size

    def announce(self, start: int, stop: int) -> None:
        """Announce the bytes in the whole file."""
        announce(self._source, self._start + start, self._start + min(stop, self._size))

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there. Raises CutOffError where the archive lacks some."""
        wanted = max(min(len(buffer), self._size - position), 0)
        count = self._source.read_into(self._start + position, buffer[:wanted])
        if count < wanted:
            raise CutOffError(max(self._source.size() - self._start, 0), self._size)
        return count

    def close(self) -> None:
        """Leave the archive open: others read it."""


class SparseFile:
    """A file with holes, which are zeros. `data`: position and length of what is stored, one after the other from `start` on."""

    def __init__(self, source: ByteSource, start: int, size: int, data: Sequence[tuple[int, int]]) -> None:
        self._size = size
        self._positions = [position for position, _ in data]
        self._lengths = [length for _, length in data]
        self._starts = [0]
        for length in self._lengths:
            self._starts.append(self._starts[-1] + length)
        self._stored = FilePart(source, start, self._starts[-1])

    def size(self) -> int:
        """Return how many bytes it has, holes included."""
        return self._size

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there."""
        wanted = max(min(len(buffer), self._size - position), 0)
        buffer[:wanted] = bytes(wanted)
        stop = position + wanted
        for index in range(max(bisect_right(self._positions, position) - 1, 0), bisect_left(self._positions, stop)):
            first = max(self._positions[index], position)
            last = min(self._positions[index] + self._lengths[index], stop)
            if first < last:
                at = self._starts[index] + first - self._positions[index]
                try:
                    self._stored.read_into(at, buffer[first - position : last - position])
                except CutOffError as error:
                    raise CutOffError(position, self._size) from error
        return wanted

    def close(self) -> None:
        """Leave the archive open: others read it."""


def end_of_whole_batches(source: ByteSource, start: int, end: int) -> int:
    """Follow the length fields from a batch that begins at `start`; return where the last batch ends that lies before `end` whole."""
    head = memoryview(bytearray(PREFIX_SIZE))
    while end - start >= PREFIX_SIZE and source.read_into(start, head) == PREFIX_SIZE:
        size = batch_size(head)
        if not plausible_length(head[MAGIC_OFFSET], size - LOG_OVERHEAD) or size > end - start:
            break
        start += size
    return start
