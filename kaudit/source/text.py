"""The lines of a text of kafka-dump-log that show one segment, in place of the segment."""

import re
from collections.abc import Callable, Iterator

from kaudit.formats.plain_text.forms import PLAIN
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import TextRange
from kaudit.source.plain_text import PlainText

PIECE_BYTES = 1 << 20
PROBE_BYTES = 1 << 16
_BATCH_LINE = re.compile(rb"\nbaseOffset: [0-9][^\n]* position: ([0-9]{1,18}) ")


class SegmentText:
    """The lines of one segment. There are no bytes of the segment to read: `read_into` finds none."""

    def __init__(self, source: ByteSource, place: TextRange) -> None:
        self._file = source
        self._source = source if place.form == PLAIN else PlainText(source, place.form)
        self._place = place

    def over(self, changed: Callable[[ByteSource], ByteSource]) -> "SegmentText":
        """Return these lines of the file as `changed` reads it."""
        return SegmentText(changed(self._file), self._place)

    @property
    def lines_before(self) -> int:
        """Return how many lines of the file come before these."""
        return self._place.lines_before

    def size(self) -> int:
        """Return the size of the text in bytes."""
        return self._place.end - self._place.start

    def read_into(self, position: int, buffer: memoryview) -> int:  # noqa: ARG002 - as every source
        """Return 0: a text holds no bytes of records."""
        return 0

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield the text from byte `start` of it to its end."""
        return pieces_of(self._source, self._place.start + start, self._place.end)

    def line_before(self, position: int) -> int:
        """Return the byte of the text where a batch line at or before byte `position` of the segment begins; 0 is always safe.

        A bisection, since positions ascend in a text. A payload may imitate a batch line: if reading from here on shows no batch at
        `position`, the whole text has to be read.
        """
        low, high = 0, self.size()
        while high - low > PROBE_BYTES:
            middle = (low + high) // 2
            found = self._batch_line_from(middle)
            if found is None or found[0] >= high or found[1] > position:
                high = middle
            else:
                low = found[0]
        return low

    def _batch_line_from(self, start: int) -> tuple[int, int] | None:
        """Return where the first batch line after byte `start` of the text begins, and the position it prints."""
        for piece in pieces_of(self._source, self._place.start + start, self._place.end):
            line = _BATCH_LINE.search(piece)
            return None if line is None else (start + line.start() + 1, int(line[1]))
        return None

    def close(self) -> None:
        """Release the file."""
        self._source.close()


def pieces_of(source: ByteSource, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes `start` to `end` (exclusive) of a source, at most PIECE_BYTES at a time."""
    buffer = memoryview(bytearray(min(PIECE_BYTES, max(end - start, 0))))
    while start < end:
        count = source.read_into(start, buffer[: min(len(buffer), end - start)])
        if not count:
            return
        yield bytes(buffer[:count])
        start += count
