"""Text of kafka-dump-log, 0.11 to 4.2, as typed rows: shallow, deep, with or without data, of any kind of file.

A line is a row, part of the free text of a record, or a note. A record whose printed key or payload holds line breaks is put
together again from the lines that follow, up to the next line that is a row itself: text alone does not distinguish a row from
a payload that imitates one.
"""

import re
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import repeat
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.dump_text.columns import DumpBatchColumns, Int64Column, parse_block, shapes
from kaudit.formats.dump_text.layout import Layout, learn
from kaudit.formats.dump_text.rows import (
    DumpBatch,
    DumpDataRow,
    DumpFile,
    DumpNote,
    DumpRecord,
    DumpRow,
    DumpStart,
    NoteKind,
)
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
        self._record_lines = list(self._record_lines)  # the copy has the old list
        self._swallowed = False
        return copied

    def skip_to(self, number: int) -> None:
        """Count lines up to this one that were read elsewhere; the last of them is not a record."""
        self._number = number
        self._passed_over = False

    def feed(self, lines: Iterable[bytes]) -> Iterator[DumpRow]:
        """Yield the rows that are complete once these lines (without line feeds) are known."""
        return self.feed_numbered(enumerate(lines, self._number + 1))

    def feed_numbered(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[DumpRow]:
        """Yield rows as `feed` does; lines whose numbers are left out were records that the caller does not want."""
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


_RECORD_LINE: Final = b"\n| offset: "
_KEY_BYTES: Final = len(b" key: ")
_PAYLOAD_BYTES: Final = len(b" payload: ")

Records = tuple[list[DumpRecord], bytes, NDArray[np.int64]]


def take_records(text: bytes, first_line: int) -> Records | None:
    """Take the records of data out of whole lines: their rows, the lines that are left, and the numbers of those.

    A record stays among the lines where the next one may go on with its text. None: the text has no such records, or
    some whose printed key is not of the size it should have, and each must be checked.
    """
    at = text.find(_RECORD_LINE)
    layout = learn(text[at + 1 : text.index(b"\n", at + 1)]) if at >= 0 else None
    if layout is None or layout.data_records is None:
        return None
    parts: list[Any] = layout.data_records.split(text)
    stride = layout.data_records.groups + 1
    left: list[bytes] = parts[0::stride]
    count = len(left) - 1
    columns: dict[str, Iterable[Any]] = {
        "timestamp_type": repeat(layout.timestamp_type),
        "fields": repeat(layout.fields),
    }
    for number, ((field, _), read) in enumerate(zip(layout.known, layout.usual_readers, strict=True), start=1):
        if field in columns:
            continue  # the first of two equal names counts, as where lines are read one by one
        texts = parts[number::stride]
        columns[field] = (
            list(map(read, texts)) if None not in texts else [None if it is None else read(it) for it in texts]
        )
    header_keys, keys, payloads = (parts[number::stride] for number in range(stride - 3, stride))
    columns["header_keys"] = header_keys
    columns["key"] = keys = [None if key is None else key[_KEY_BYTES:] for key in keys]
    columns["payload"] = [None if payload is None else payload[_PAYLOAD_BYTES:] for payload in payloads]
    if any(key is not None and len(key) != size for key, size in zip(keys, columns["key_size"], strict=True)):
        return None
    # Each record is one line, and begins with the line feed of the line before it.
    ends = np.fromiter((piece.count(b"\n") for piece in left), np.int64, count + 1)
    lines = np.cumsum(ends[:-1]) + np.arange(1, count + 1)
    columns["line"] = (lines + first_line).tolist()
    is_left = np.ones(int(ends.sum()) + count, dtype=np.bool_)
    is_left[lines] = False
    rows = list(
        map(DumpRecord._make, zip(*(columns.get(field, repeat(None)) for field in DumpRecord._fields), strict=False))
    )
    return rows, b"".join(left), np.flatnonzero(is_left) + first_line


# Enough lines for numpy to pay, few enough that columns stay in cache.
_PIECE_BYTES: Final = 1 << 18
# Columns pay where most lines are batches; in a deep dump few follow one another.
_BATCH_LINE: Final = b"\nbaseOffset: "
_NEWLINE: Final = ord("\n")
_LINE: Final = itemgetter(0)


def read_dump(chunks: Iterable[bytes]) -> Iterator[DumpRow]:
    """Yield the rows of a dump handed in pieces of any size (an open binary file, reads of a MiB, or one bytes in a list).

    Never raises for what the text says: every line is a row, part of a record's free text, or a DumpNote.
    """
    for row in read_dump_columns(chunks):
        if isinstance(row, DumpBatchColumns):
            yield from row.rows()
        else:
            yield row


def read_dump_columns(chunks: Iterable[bytes]) -> Iterator[DumpRow | DumpBatchColumns]:
    """Yield the rows of a dump as read_dump does, but runs of batch lines of one shape as columns."""
    lines = DumpLines()
    for text in _whole_lines(chunks):
        records = take_records(text, lines.number + 1)
        if records is not None:
            before = lines.kept()
            rows = list(_merged(lines, *records))
            if not lines.swallowed:
                yield from rows
                continue
            lines = before
        if 2 * text.count(_BATCH_LINE) < text.count(b"\n"):
            yield from lines.feed(text[:-1].split(b"\n"))
        else:
            yield from _by_shape(lines, text, range(lines.number + 1, lines.number + 1 + text.count(b"\n")))
    yield from lines.finish()


def read_dump_batches(chunks: Iterable[bytes]) -> Iterator[DumpRow | DumpBatchColumns]:
    """Yield the rows of a dump as read_dump_columns does, without most records that say nothing about their batch.

    What is left out are records of data (no markers, no control records) after a batch line.
    """
    lines = DumpLines()
    saw_batch = False
    for text in _whole_lines(chunks):
        start = 0
        if not saw_batch:
            # records before the first batch are kept: it is searched for line by line
            start = text.find(b"\n", text.find(_BATCH_LINE[1:])) + 1 or len(text)
            for row in lines.feed(text[: start - 1].split(b"\n")):
                saw_batch = saw_batch or isinstance(row, DumpBatch)
                yield row
        rest = text[start:]
        if saw_batch:
            before = lines.kept()
            batches = list(_by_shape(lines, *_without_data_records(rest, lines.number + 1)))
            if lines.swallowed:
                lines = before
                batches = list(lines.feed(rest[:-1].split(b"\n")))
            yield from batches
        elif rest:
            yield from lines.feed(rest[:-1].split(b"\n"))
    yield from lines.finish()


def _merged(lines: DumpLines, records: list[DumpRecord], left: bytes, numbers: Int64Column) -> Iterator[DumpRow]:
    rows: list[DumpRow] = list(records)
    for row in _by_shape(lines, left, numbers):
        if isinstance(row, DumpBatchColumns):
            rows += row.rows()
        else:
            rows.append(row)
    rows.sort(key=_LINE)
    return iter(rows)


def _without_data_records(text: bytes, first_line: int) -> tuple[bytes, range | Int64Column]:
    """Return whole lines without records of data, and the numbers of the lines left."""
    count = text.count(b"\n")
    every = range(first_line, first_line + count)
    at = text.find(_RECORD_LINE)
    # records become empty lines: a text that has empty lines is read as it is
    if at < 0 or text.startswith(b"\n") or b"\n\n" in text:
        return text, every
    layout = learn(text[at + 1 : text.index(b"\n", at + 1)])
    if layout is None or layout.data_record_lines is None:
        return text, every
    emptied = np.frombuffer(layout.data_record_lines.sub(b"\n", text), np.uint8)
    is_end = emptied == _NEWLINE
    ends = np.flatnonzero(is_end)
    is_empty = np.concatenate(([False], is_end[1:] & is_end[:-1]))
    return emptied[~is_empty].tobytes(), np.flatnonzero(~is_empty[ends]) + first_line


def _by_shape(lines: DumpLines, text: bytes, numbers: range | Int64Column) -> Iterator[DumpRow | DumpBatchColumns]:
    line = 0
    for start, end, count, is_block in shapes(text):
        run = numbers[line : line + count]
        line += count
        block = parse_block(text[start:end], run) if is_block else None
        if block is not None:
            yield from lines.finish()
            lines.skip_to(int(run[-1]))
            yield block
        else:
            yield from lines.feed_numbered(zip(map(int, run), text[start : end - 1].split(b"\n"), strict=True))


def looks_like_dump(data: bytes) -> bool:
    """Return whether a file's first 20 lines have a row or a `Dumping` header of kafka-dump-log."""
    lines = data[:65536].split(b"\n", 20)[:20]
    return any(
        line.startswith((FILE_START, *OFFSET_STARTS)) or (line.startswith(ROW_STARTS) and learn(line) is not None)
        for line in lines
    )


def _whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Join and cut pieces to about _PIECE_BYTES of whole lines each; a line above MAX_LINE_BYTES comes cut off."""
    carried: list[bytes] = []
    carried_bytes = 0
    for chunk in chunks:
        for start in range(0, len(chunk), _PIECE_BYTES):
            piece = chunk[start : start + _PIECE_BYTES]
            end = piece.rfind(b"\n") + 1
            if end and carried_bytes + end >= _PIECE_BYTES:
                yield b"".join([*carried, piece[:end]])
                carried, carried_bytes = [piece[end:]], len(piece) - end
            elif end or carried_bytes <= MAX_LINE_BYTES:
                carried.append(piece)
                carried_bytes += len(piece)
    if carried_bytes:
        last = b"".join(carried)
        yield last if last.endswith(b"\n") else last + b"\n"
