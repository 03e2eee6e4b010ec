"""Text of kafka-dump-log, 0.11 to 4.2, as typed rows: shallow, deep, with or without data, of any kind of file.

A line is a row, part of a row (of the free text of a record, or of one that was wrapped), the beginning of one that was cut, or a
note. Usual lines are read many at once; where they could be anything else than what they look like, `DumpLines` reads them again.
"""

from collections.abc import Iterable, Iterator
from itertools import repeat
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.dump_text.columns import DumpBatchColumns, Int64Column, parse_block, shapes
from kaudit.formats.dump_text.layout import learn
from kaudit.formats.dump_text.lines import DumpLines
from kaudit.formats.dump_text.other_lines import MAX_LINE_BYTES
from kaudit.formats.dump_text.partial_rows import is_whole
from kaudit.formats.dump_text.rows import DumpBatch, DumpRecord, DumpRow

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
    if "position" in layout.fields and None in header_keys and not all(map(is_whole, rows)):
        return None  # cut before the producer
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
            may_go_on = any(row.payload is not None and len(row.payload) < row.value_size for row in records[0])
            if not lines.swallowed and not (may_go_on and _any_stray(rows)):
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
    for text in _whole_lines(chunks):
        start = 0
        if not lines.saw_batch:
            # records before the first batch are kept: it is searched for line by line
            start = text.find(b"\n", text.find(_BATCH_LINE[1:])) + 1 or len(text)
            yield from lines.feed(text[: start - 1].split(b"\n"))
        rest = text[start:]
        if lines.saw_batch:
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


def _any_stray(rows: Iterable[DumpRow]) -> bool:
    """Return whether a record's offset does not fit the batch or the record before it: it may be text of that."""
    last = least = None
    for row in rows:
        if isinstance(row, DumpBatch):
            last, least = row.last_offset, None
        elif isinstance(row, DumpRecord):
            if (least is not None and row.offset <= least) or (last is not None and row.offset > last):
                return True
            least = row.offset
    return False


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
            lines.skip(block)
            yield block
        else:
            yield from lines.feed_numbered(zip(map(int, run), text[start : end - 1].split(b"\n"), strict=True))


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
