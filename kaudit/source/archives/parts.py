"""A file that lies in another one: a range of its bytes, or ranges with holes between them."""

import errno
from bisect import bisect_right
from collections.abc import Sequence

from kaudit.source.bytes import ByteSource, announce


class CutOffError(OSError):
    """An archive ends in the middle of a file. `readable`: how many bytes of the file there are."""

    def __init__(self, readable: int, size: int) -> None:
        super().__init__(errno.EIO, f"the archive ends after {readable:,} of its {size:,} bytes")
        self.readable = readable


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
        for index in range(max(bisect_right(self._positions, position) - 1, 0), len(self._positions)):
            first = max(self._positions[index], position)
            last = min(self._positions[index] + self._lengths[index], position + wanted)
            if self._positions[index] >= position + wanted:
                break
            if first < last:
                at = self._starts[index] + first - self._positions[index]
                self._stored.read_into(at, buffer[first - position : last - position])
        return wanted

    def close(self) -> None:
        """Leave the archive open: others read it."""
