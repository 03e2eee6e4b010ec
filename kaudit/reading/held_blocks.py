"""Files whose places are read one by one: those near one another cost one reading."""

from collections import OrderedDict
from contextlib import closing
from typing import Self

from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import SegmentFile

_BLOCK_BYTES, _BLOCKS = 64 << 10, 64


class HeldBlocks:
    """An OpenSource: the file opened last stays open, and the last 4 MiB that were read of it are held, until `close`.

    Texts, and what brokers send, are opened as without it: their positions are not those of bytes.
    """

    def __init__(self, open_source: OpenSource) -> None:
        self._open = open_source
        self._file: SegmentFile | None = None
        self._source: ByteSource | None = None
        self._blocks: OrderedDict[int, memoryview] = OrderedDict()

    def __call__(self, segment: SegmentFile) -> ByteSource:
        """Open a file. Raises OSError as the OpenSource does."""
        if segment.text is not None or segment.fetched is not None:
            return self._open(segment)
        if segment is not self._file:
            self.close()
            self._source = self._open(segment)
            self._file = segment
        assert self._source is not None
        return _Held(self._source, self._blocks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file opened last, and forget what was read of it."""
        if self._source is not None:
            self._source.close()
        self._file = self._source = None
        self._blocks = OrderedDict()


class _Held:
    def __init__(self, source: ByteSource, blocks: OrderedDict[int, memoryview]) -> None:
        self._source = source
        self._blocks = blocks
        self.size = source.size

    def read_into(self, position: int, buffer: memoryview) -> int:
        if len(buffer) > _BLOCK_BYTES:
            return self._source.read_into(position, buffer)
        done = 0
        while done < len(buffer):
            number, skipped = divmod(position + done, _BLOCK_BYTES)
            part = self._block(number)[skipped : skipped + len(buffer) - done]
            if not part:
                break
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    def _block(self, number: int) -> memoryview:
        held = self._blocks.get(number)
        if held is None:
            data = memoryview(bytearray(_BLOCK_BYTES))
            held = data[: self._source.read_into(number * _BLOCK_BYTES, data)]
            self._blocks[number] = held
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return held

    def close(self) -> None:
        """Stay open: whoever holds the blocks closes the file."""


class HeldRange:
    """Ranges of files, at most half of `capacity` long, or of files that are no longer than it: what one has in common with the one read before it is not read again."""

    def __init__(self, open_source: OpenSource, capacity: int) -> None:
        self._open = open_source
        self._data = bytearray(capacity)
        self._file: SegmentFile | None = None
        self._start = self._end = 0

    def read(self, segment: SegmentFile, start: int, stop: int) -> tuple[bytearray, int, int]:
        """Return bytes, and where in them the range begins and ends, at the end of the file at the latest. Raises OSError."""
        held = memoryview(self._data)
        if segment is not self._file or not self._start <= start <= self._end:
            self._file, self._start, self._end = segment, start, start
        if stop - self._start > len(held):
            held[: self._end - start] = held[start - self._start : self._end - self._start]
            self._start = start
        if stop > self._end:
            with closing(self._open(segment)) as source:
                self._end += source.read_into(self._end, held[self._end - self._start : stop - self._start])
        return self._data, start - self._start, min(stop, self._end) - self._start

    def close(self) -> None:
        """Forget what was read; nothing is read after it."""
        self._data = bytearray()
