"""Text of kafka-dump-log, 0.11 to 4.2, as typed rows: shallow, deep, with or without data, of any kind of file."""

from collections.abc import Iterable, Iterator
from typing import Final

from kaudit.wire.dump_columns import DumpBatchColumns, parse_block, shapes
from kaudit.wire.dump_layout import learn
from kaudit.wire.dump_lines import FILE_START, MAX_LINE_BYTES, OFFSET_STARTS, ROW_STARTS, DumpLines
from kaudit.wire.dump_rows import DumpRow

# Enough lines for numpy to pay, few enough that columns stay in cache.
_PIECE_BYTES: Final = 1 << 18
# Columns pay where most lines are batches; in a deep dump few follow one another.
_BATCH_LINE: Final = b"\nbaseOffset: "


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
        if 2 * text.count(_BATCH_LINE) < text.count(b"\n"):
            yield from lines.feed(text[:-1].split(b"\n"))
            continue
        for start, end, count, is_block in shapes(text):
            block = parse_block(text[start:end], count, lines.number + 1) if is_block else None
            if block is not None:
                yield from lines.finish()
                lines.skip(count)
                yield block
            else:
                yield from lines.feed(text[start : end - 1].split(b"\n"))
    yield from lines.finish()


def looks_like_dump(data: bytes) -> bool:
    """Tell from its first lines whether a file is text of kafka-dump-log (a row or a `Dumping` header among 20)."""
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
