"""Texts of kafka-dump-log in place of segments: which lines show which segment, and those lines as a source."""

import re
from collections.abc import Iterator
from itertools import chain

from msgspec import Struct

from kaudit.source.bytes import ByteSource
from kaudit.source.layout import TextRange

_PIECE_BYTES = 1 << 20
_PROBE_BYTES = 1 << 16
_BATCH_LINE = re.compile(rb"\nbaseOffset: [0-9][^\n]* position: ([0-9]{1,18}) ")


class Section(Struct, frozen=True):
    """The lines between two `Dumping` headers. `path` is what the header says, None before the first one."""

    path: str | None
    range: TextRange


class SegmentText:
    """The lines of one segment. There are no bytes of the segment to read: `read_into` finds none."""

    def __init__(self, source: ByteSource, place: TextRange) -> None:
        self._source = source
        self._place = place

    def size(self) -> int:
        """Return the size of the text in bytes."""
        return self._place.end - self._place.start

    def read_into(self, position: int, buffer: memoryview) -> int:  # noqa: ARG002 - as every source
        """Find nothing: a text holds no bytes of records."""
        return 0

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield the text from byte `start` of it to its end."""
        return _pieces(self._source, self._place.start + start, self._place.end)

    def line_before(self, position: int) -> int:
        """Byte of the text where a batch line begins that lies before byte `position` of the segment or at it; 0 is safe.

        Positions ascend in a text, so it is halved again and again. A payload may imitate a batch line: what is read
        from here on must show a batch at `position`, or all has to be read.
        """
        low, high = 0, self.size()
        while high - low > _PROBE_BYTES:
            middle = (low + high) // 2
            found = self._batch_line_from(middle)
            if found is None or found[0] >= high or found[1] > position:
                high = middle
            else:
                low = found[0]
        return low

    def _batch_line_from(self, start: int) -> tuple[int, int] | None:
        """Where the first batch line after byte `start` of the text begins, and the position it prints."""
        for piece in _pieces(self._source, self._place.start + start, self._place.end):
            line = _BATCH_LINE.search(piece)
            return None if line is None else (start + line.start() + 1, int(line[1]))
        return None

    def close(self) -> None:
        """Release the file."""
        self._source.close()


def find_sections(source: ByteSource) -> list[Section]:
    """Read a text once and list the files it shows, in order; a text without headers shows one."""
    size = source.size()
    headers: list[tuple[int, int, str]] = []  # where a header begins, where it ends, the path
    at = 0
    carried = b""
    for piece in chain(_pieces(source, 0, size), (b"\n",)):
        text = carried + piece
        end = text.rfind(b"\n") + 1
        headers += [(at + begin, at + stop, path) for begin, stop, path in _headers(text[:end])]
        at, carried = at + end, text[end:]
        if len(carried) > _PIECE_BYTES:  # a line of megabytes is no header: its end is all that matters
            at, carried = at + len(carried) - 1, carried[-1:]
    first = headers[0][0] if headers else size
    found = [Section(None, TextRange(0, first))] if first else []
    ends = [*(begin for begin, _, _ in headers[1:]), size]
    found += [
        Section(path, TextRange(min(begin, size), end)) for (_, begin, path), end in zip(headers, ends, strict=False)
    ]
    return found


def first_offset(source: ByteSource, section: Section) -> int | None:
    """Return the first offset a section shows, None if it shows neither batches nor records."""
    end = min(section.range.end, section.range.start + _PROBE_BYTES)
    # imported here, as below: few logs are texts, and what reads their lines takes 5 ms
    from kaudit.formats.dump_text.rows import DumpBatch, DumpRecord, DumpStart  # noqa: PLC0415
    from kaudit.formats.dump_text.text import read_dump  # noqa: PLC0415

    started: int | None = None
    for row in read_dump(_pieces(source, section.range.start, end)):
        if isinstance(row, DumpStart):
            started = row.offset
        elif isinstance(row, DumpBatch | DumpRecord):
            if started is not None:
                return started
            offset = row.offset if isinstance(row, DumpRecord) else row.base_offset
            return row.last_offset if offset is None else offset
    return None


def _headers(text: bytes) -> Iterator[tuple[int, int, str]]:
    """Header lines of a text of whole lines: where each begins, where the next line does, and its path."""
    from kaudit.formats.dump_text.lines import FILE_START  # noqa: PLC0415

    at = 0
    while True:
        if not text.startswith(FILE_START, at):
            at = text.find(b"\n" + FILE_START, at) + 1
            if not at:
                return
        end = text.index(b"\n", at) + 1
        yield at, end, text[at + len(FILE_START) : end].rstrip(b"\r\n").decode("utf-8", "surrogateescape")
        at = end


def _pieces(source: ByteSource, start: int, end: int) -> Iterator[bytes]:
    buffer = memoryview(bytearray(min(_PIECE_BYTES, max(end - start, 0))))
    while start < end:
        count = source.read_into(start, buffer[: min(len(buffer), end - start)])
        if not count:
            return
        yield bytes(buffer[:count])
        start += count
