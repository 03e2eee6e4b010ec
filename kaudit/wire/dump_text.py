"""Text of kafka-dump-log, 0.11 to 4.2, as typed rows: shallow, deep, with or without data, of any kind of file.

A record whose printed key or payload holds line breaks is put together again from the lines that follow, up to the next
line that is a row itself: text alone cannot tell a row from a payload that imitates one.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from kaudit.wire.dump_layout import Layout, learn
from kaudit.wire.dump_rows import DumpDataRow, DumpFile, DumpNote, DumpRecord, DumpRow, DumpStart, NoteKind

MAX_LINE_BYTES: Final = 1 << 26
"""Longest line, and longest record over several lines, that is held; what is longer becomes a note."""

_MAX_LAYOUTS: Final = 32
_ROW_STARTS: Final = (b"baseOffset: ", b"| offset: ", b"offset: ", b"producerId: ", b"version: ", b"timestamp: ")
_FILE: Final = b"Dumping "
_STARTS: Final = (b"Log starting offset: ", b"Starting offset: ")
_INVALID_BYTES: Final = re.compile(rb"Found ([0-9]{1,19}) invalid bytes at the end of .*")
_NOTE_STARTS: Final = (
    (b"Non-consecutive offsets in", NoteKind.NON_CONSECUTIVE),
    (b"Mismatches in", NoteKind.MISMATCH),
    (b"Found timestamp mismatch in", NoteKind.MISMATCH),
    (b"Found out of order timestamp in", NoteKind.MISMATCH),
    (b"Exception in thread", NoteKind.OTHER),
)
_SANITY_PASSED: Final = b" passed sanity check."
_NOTE_PAIR: Final = re.compile(rb"  (?:-?[0-9]+ is followed by -?[0-9]+|Index (?:offset|timestamp): .*)")
_HEADER_KEYS: Final = b" headerKeys: ["
_HEADER_KEYS_END: Final = re.compile(rb"\](?= key: | payload: | endTxnMarker: | controlType: | [A-Z]\w+: \{|$)")
_KEY: Final = b" key: "
_PAYLOAD: Final = b" payload: "
_END_MARKER: Final = re.compile(rb" endTxnMarker: (\w+) coordinatorEpoch: (-?[0-9]{1,10})")
_CONTROL: Final = re.compile(rb" (controlType: .*|[A-Z]\w+: \{.*)", re.DOTALL)

_KEY_SIZE: Final = DumpRecord._fields.index("key_size")
_HEADER_KEYS_FIELD: Final = DumpRecord._fields.index("header_keys")
_END_MARKER_FIELD: Final = DumpRecord._fields.index("end_marker")
_COORDINATOR_EPOCH_FIELD: Final = DumpRecord._fields.index("coordinator_epoch")
_CONTROL_FIELD: Final = DumpRecord._fields.index("control")
_KEY_FIELD: Final = DumpRecord._fields.index("key")
_PAYLOAD_FIELD: Final = DumpRecord._fields.index("payload")


def read_dump(chunks: Iterable[bytes]) -> Iterator[DumpRow]:
    """Yield the rows of a dump handed in pieces of any size (an open binary file, reads of a MiB, or one bytes in a list).

    Never raises for what the text says: every line is a row, part of a record's free text, or a DumpNote.
    """
    reader = DumpLines()
    for lines in split_lines(chunks):
        for line in lines:
            yield from reader.feed(line)
    yield from reader.finish()


def looks_like_dump(data: bytes) -> bool:
    """Tell from its first lines whether a file is text of kafka-dump-log (rows or a `Dumping` header among 20)."""
    lines = data[:65536].split(b"\n", 20)[:20]
    return any(
        line.startswith((_FILE, *_STARTS)) or (line.startswith(_ROW_STARTS) and learn(line) is not None)
        for line in lines
    )


def split_lines(chunks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Cut pieces into lists of whole lines without their terminator; a line above MAX_LINE_BYTES comes cut."""
    carried: list[bytes] = []
    carried_bytes = 0
    for chunk in chunks:
        lines = chunk.split(b"\n")
        if len(lines) == 1:
            if carried_bytes <= MAX_LINE_BYTES:
                carried.append(chunk)
                carried_bytes += len(chunk)
            continue
        if carried:
            carried.append(lines[0])
            lines[0] = b"".join(carried)
        last = lines.pop()
        carried, carried_bytes = ([last], len(last)) if last else ([], 0)
        yield lines
    if carried_bytes:
        yield [b"".join(carried)]


class DumpLines:
    """Turns lines into rows one by one; holds at most one record whose text may go on."""

    def __init__(self) -> None:
        self._number = 0
        self._layouts: dict[bytes, list[Layout]] = {}
        self._pending: list[Any] | None = None
        self._tail: list[bytes] = []
        self._tail_bytes = 0

    def feed(self, line: bytes) -> Iterator[DumpRow]:
        """Yield what is complete now that `line` is known: none, one or two rows."""
        self._number += 1
        if len(line) > MAX_LINE_BYTES:
            yield from self.finish()
            yield DumpNote(self._number, NoteKind.TOO_LONG, line[:200].decode("utf-8", "replace"), None)
            return
        if line.startswith(_ROW_STARTS):
            layout, read = self._match(line)
            if layout is not None and read is not None:
                yield from self.finish()
                values, tail = read
                if layout.row_type is DumpRecord:
                    self._pending = values
                    self._tail, self._tail_bytes = ([tail], len(tail)) if tail else ([], 0)
                else:
                    yield _row(layout.row_type, values)
                return
        other = self._other_row(line)
        if other is not None:
            yield from self.finish()
            yield other
        elif self._tail and self._tail_bytes + len(line) < MAX_LINE_BYTES:
            self._tail.append(line)
            self._tail_bytes += len(line) + 1
        else:
            yield from self.finish()
            kind = NoteKind.NON_CONSECUTIVE if _NOTE_PAIR.fullmatch(line) else NoteKind.OTHER
            if line:
                yield DumpNote(self._number, kind, line.decode("utf-8", "replace"), None)

    def finish(self) -> Iterator[DumpRow]:
        """Yield the record that was held, if any."""
        values = self._pending
        if values is not None:
            self._pending = None
            tail = b"\n".join(self._tail)
            self._tail = []
            if tail:
                _read_tail(values, tail)
            yield DumpRecord._make(values)

    def skip(self, lines: int) -> None:
        """Count lines that were read elsewhere."""
        self._number += lines

    @property
    def number(self) -> int:
        """Lines fed or skipped so far."""
        return self._number

    def _match(self, line: bytes) -> tuple[Layout | None, tuple[list[Any], bytes | None] | None]:
        # Six bytes tell the kinds of rows apart, and a file has one layout or two of each.
        known = self._layouts.setdefault(line[:6], [])
        for index, layout in enumerate(known):
            read = layout.read(line, self._number)
            if read is not None:
                if index:
                    known.insert(0, known.pop(index))
                return layout, read
        learned = learn(line)
        if learned is None:
            return None, None
        read = learned.read(line, self._number)
        if read is not None:
            known.insert(0, learned)
            del known[_MAX_LAYOUTS:]
        return learned, read

    def _other_row(self, line: bytes) -> DumpRow | None:
        if line.startswith(_FILE):
            return DumpFile(self._number, line[len(_FILE) :].rstrip(b"\r").decode("utf-8", "surrogateescape"))
        for start in _STARTS:
            digits = line[len(start) :].rstrip(b"\r")
            if line.startswith(start) and digits.isdigit() and len(digits) <= 20:
                return DumpStart(self._number, int(digits))
        text = line.decode("utf-8", "replace")
        if found := _INVALID_BYTES.fullmatch(line):
            return DumpNote(self._number, NoteKind.INVALID_BYTES, text, int(found[1]))
        if line.endswith(_SANITY_PASSED):
            return DumpNote(self._number, NoteKind.SANITY_PASSED, text, None)
        for start, kind in _NOTE_STARTS:
            if line.startswith(start):
                return DumpNote(self._number, kind, text, None)
        return None


def _row(row_type: type[DumpDataRow], values: list[Any]) -> DumpDataRow:
    return row_type._make(values)


def _read_tail(values: list[Any], tail: bytes) -> None:
    """Fill a record's free fields from the text behind its pairs: header keys, marker or control, key, payload."""
    if tail.startswith(_HEADER_KEYS):
        end = _HEADER_KEYS_END.search(tail, len(_HEADER_KEYS))
        if end is None:
            values[_HEADER_KEYS_FIELD] = tail[len(_HEADER_KEYS) :]
            return
        values[_HEADER_KEYS_FIELD] = tail[len(_HEADER_KEYS) : end.start()]
        tail = tail[end.end() :]
    marker = _END_MARKER.fullmatch(tail.rstrip(b"\r"))
    if marker:
        values[_END_MARKER_FIELD] = marker[1].decode("ascii", "replace")
        values[_COORDINATOR_EPOCH_FIELD] = int(marker[2])
        return
    control = _CONTROL.fullmatch(tail)
    if control:
        values[_CONTROL_FIELD] = control[1].decode("utf-8", "replace")
        return
    if tail.startswith(_KEY):
        start = len(_KEY)
        # A key may hold " payload: " itself: its size tells where it ends, unless a decoder printed something else.
        end_of_key = start + values[_KEY_SIZE]
        if not (values[_KEY_SIZE] >= 0 and tail.startswith(_PAYLOAD, end_of_key)):
            found = tail.find(_PAYLOAD, start)
            end_of_key = len(tail) if found < 0 else found
        values[_KEY_FIELD] = tail[start:end_of_key]
        tail = tail[end_of_key:]
    if tail.startswith(_PAYLOAD):
        values[_PAYLOAD_FIELD] = tail[len(_PAYLOAD) :]
