"""One line of kafka-dump-log after the other: rows, the free text of records, and everything else as notes.

A record whose printed key or payload holds line breaks is put together again from the lines that follow, up to the next
line that is a row itself: text alone does not distinguish a row from a payload that imitates one.
"""

import re
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Final

from kaudit.formats.dump_text.layout import Layout, learn
from kaudit.formats.dump_text.rows import DumpDataRow, DumpFile, DumpNote, DumpRecord, DumpRow, DumpStart, NoteKind
from kaudit.model.limits import DUMP_LINE_BYTES

MAX_LINE_BYTES: Final = DUMP_LINE_BYTES
"""Longest line, and longest record over several lines, that is held; what is longer becomes a note."""

_MAX_LAYOUTS: Final = 32
_MAX_DIGITS: Final = 19
_MAX_INT64: Final = 2**63 - 1
ROW_STARTS: Final = (b"baseOffset: ", b"| offset: ", b"offset: ", b"producerId: ", b"version: ", b"timestamp: ")
FILE_START: Final = b"Dumping "
OFFSET_STARTS: Final = (b"Log starting offset: ", b"Starting offset: ")
_INVALID_BYTES: Final = re.compile(rb"Found ([0-9]{1,18}) invalid bytes at the end of .*")
_NOTE_STARTS: Final = (
    (b"Non-consecutive offsets in", NoteKind.NON_CONSECUTIVE),
    (b"Mismatches in", NoteKind.MISMATCH),
    (b"Found timestamp mismatch in", NoteKind.MISMATCH),
    (b"Found out of order timestamp in", NoteKind.MISMATCH),
    (b"Exception in thread", NoteKind.OTHER),
)
_SANITY_PASSED: Final = b" passed sanity check."
_NOTE_PAIR: Final = re.compile(rb"  (?:-?[0-9]+ is followed by -?[0-9]+|Index (?:offset|timestamp): .*)")


class DumpLines:
    """Turns lines into rows; holds back at most one record, whose text may go on."""

    def __init__(self) -> None:
        self._number = 0
        self._layouts: dict[bytes, list[Layout]] = {}
        # The record that may go on: its row, its lines so far and their bytes.
        self._record: DumpRecord | None = None
        self._record_lines: list[bytes] = []
        self._record_bytes = 0
        # A record was passed over: its text, too, goes on up to the next row.
        self._passed_over = False
        self._swallowed = False

    @property
    def number(self) -> int:
        """Lines fed or skipped so far."""
        return self._number

    @property
    def swallowed(self) -> bool:
        """Return whether a line since `kept` went on with the text of a record that was passed over."""
        return self._swallowed

    def kept(self) -> "DumpLines":
        """Return a copy to go back to."""
        copied = copy(self)
        self._record_lines = list(self._record_lines)  # the old one is the copy's
        self._swallowed = False
        return copied

    def skip_to(self, number: int) -> None:
        """Count lines up to this one that were read elsewhere; the last of them is no record."""
        self._number = number
        self._passed_over = False

    def feed(self, lines: Iterable[bytes]) -> Iterator[DumpRow]:
        """Yield the rows that are complete once these lines (without line feeds) are known."""
        return self.feed_numbered(enumerate(lines, self._number + 1))

    def feed_numbered(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[DumpRow]:
        """Yield rows as `feed` does; lines whose numbers are left out were records nobody asks for."""
        for number, line in lines:
            if number - self._number > 1:
                yield from self.finish()
                self._passed_over = True
            self._number = number
            row: DumpRow | None = self._read(line, self._number) if line.startswith(ROW_STARTS) else None
            if row is None:
                row = self._other_row(line)
                goes_on = self._record is not None and self._record_bytes + len(line) < MAX_LINE_BYTES
                if row is None and goes_on:
                    self._record_lines.append(line)
                    self._record_bytes += len(line) + 1
                    continue
                if row is None and self._passed_over:
                    self._swallowed = True
                    continue
            self._passed_over = False
            if self._record is not None:
                yield self._release(self._record)
            if row is None:
                if line:
                    yield self._note(line)
            elif type(row) is DumpRecord and (row.payload is not None or row.key is not None):
                self._record, self._record_lines, self._record_bytes = row, [line], len(line)
            else:
                yield row

    def finish(self) -> Iterator[DumpRow]:
        """Yield the record that was held back, if any, with all its lines: no more of them follow."""
        if self._record is not None:
            yield self._release(self._record)

    def _release(self, row: DumpRecord) -> DumpRow:
        self._record = None
        if len(self._record_lines) == 1:
            return row
        whole = self._read(b"\n".join(self._record_lines), row.line)
        assert whole is not None, "more free text does not change the pairs before it"
        return whole

    def _read(self, line: bytes, number: int) -> DumpDataRow | None:
        if len(line) > MAX_LINE_BYTES:
            return None
        # Six bytes distinguish the kinds of rows, and a file has one layout or two of each.
        known = self._layouts.setdefault(line[:6], [])
        for index, layout in enumerate(known):
            row = layout.read(line, number)
            if row is not None:
                if index:
                    known.insert(0, known.pop(index))
                return row
        learned = learn(line)
        if learned is None:
            return None
        row = learned.read(line, number)
        if row is not None:
            known.insert(0, learned)
            del known[_MAX_LAYOUTS:]
        return row

    def _note(self, line: bytes) -> DumpNote:
        if len(line) > MAX_LINE_BYTES:
            return DumpNote(self._number, NoteKind.TOO_LONG, line[:200].decode("utf-8", "replace"), None)
        kind = NoteKind.NON_CONSECUTIVE if _NOTE_PAIR.fullmatch(line) else NoteKind.OTHER
        return DumpNote(self._number, kind, line.decode("utf-8", "replace"), None)

    def _other_row(self, line: bytes) -> DumpRow | None:
        if line.startswith(FILE_START):
            return DumpFile(self._number, line[len(FILE_START) :].rstrip(b"\r").decode("utf-8", "surrogateescape"))
        for start in OFFSET_STARTS:
            digits = line[len(start) :].rstrip(b"\r")
            if line.startswith(start) and digits.isdigit() and len(digits) <= _MAX_DIGITS and int(digits) <= _MAX_INT64:
                return DumpStart(self._number, int(digits))
        if found := _INVALID_BYTES.fullmatch(line):
            return DumpNote(self._number, NoteKind.INVALID_BYTES, line.decode("utf-8", "replace"), int(found[1]))
        if line.endswith(_SANITY_PASSED):
            return DumpNote(self._number, NoteKind.SANITY_PASSED, line.decode("utf-8", "replace"), None)
        for start, kind in _NOTE_STARTS:
            if line.startswith(start):
                return DumpNote(self._number, kind, line.decode("utf-8", "replace"), None)
        return None
