"""Lines of kafka-dump-log to rows, one by one: what is a row, what is text of the record before it, what was cut or wrapped.

Payloads may hold line breaks, and text that looks like rows. A row is taken for one if it follows from what was printed before it:
the next offset and the byte where the last batch ended. Otherwise the size of the record before it decides, which the tool prints.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Final

from kaudit.formats.dump_text.columns import DumpBatchColumns
from kaudit.formats.dump_text.layout import ROW_STARTS, Layout, has_open_header_keys, learn
from kaudit.formats.dump_text.other_lines import MAX_LINE_BYTES, note_of, other_row
from kaudit.formats.dump_text.partial_rows import cut_row, expects_batch, fits_sizes, is_whole, joined, says_more
from kaudit.formats.dump_text.rows import (
    DumpBatch,
    DumpCut,
    DumpDataRow,
    DumpNote,
    DumpRecord,
    DumpRow,
    NoteKind,
)

_MAX_LAYOUTS: Final = 32
_SHOWN: Final = 200
_MAX_PIECES: Final = 64
_MAX_PIECED_BYTES: Final = 1 << 13
"""Of one row that was wrapped, up to its free text."""
_MAX_DOUBT_BYTES: Final = 1 << 20
_MAX_DOUBTS: Final = 256
"""How far is read ahead to find the end of a payload, and how often in vain: reading twice must not take quadratic time."""
_MAX_AHEAD: Final = 64
"""Lines after the end of a record's text by its size in which a row is looked for that follows from those before it."""
_MANY_IN_LINE: Final = 2

_Line = tuple[int, bytes]


class DumpLines:
    """Turns lines into rows; holds back one row, which may go on in the next line, or may have to be found in several lines."""

    def __init__(self) -> None:
        self.number = 0
        """Lines fed or skipped so far."""
        self._layouts: dict[bytes, list[Layout]] = {}
        # The row that may go on: the row, its lines so far and their bytes.
        self._held: DumpBatch | DumpRecord | None = None
        self._held_lines: list[bytes] = []
        self._held_bytes = 0
        # Lines of a row whose first line ends too early, with their numbers.
        self._begun: list[_Line] = []
        # Lines after a record whose text is shorter than its size, from the first row that does not follow from it.
        self._doubtful: list[_Line] = []
        self._doubtful_bytes = 0
        self._doubts = 0
        # A record was passed over: its text, too, goes on up to the next row.
        self._passed_over = False
        self.swallowed = False
        """Whether since `kept` a line may have gone on with the text of a record that was passed over."""
        # What follows from the rows so far, None where nothing is known: offsets and the byte where the last batch ends.
        self._last_offset: int | None = None
        self._record_offset: int | None = None
        self._end: int | None = None
        # Batches in line that each followed from the one before.
        self._in_line = 0
        self._cut_width: int | None = None
        # Bytes of the longest piece of a row that was wrapped, None if none was.
        self._width: int | None = None
        # Bytes of the line in which the pairs of the held row end.
        self._first_piece = 0
        self.saw_batch = False
        """Whether a batch has been read, yielded or not."""

    def kept(self) -> "DumpLines":
        """Return a copy to go back to."""
        copied = copy(self)
        self._held_lines, self._begun, self._doubtful = list(self._held_lines), list(self._begun), list(self._doubtful)
        self.swallowed = False
        return copied

    def skip(self, block: DumpBatchColumns) -> None:
        """Count lines that were read elsewhere, the batches of a block; nothing is held back."""
        number = int(block.lines[-1])
        after_records = self._passed_over or number - self.number > block.count
        if after_records:
            base, last, position, _ = block.place(0)
            if not (self._continues(last if base is None else base, position) and block.is_gapless()):
                self.swallowed = True
        self.saw_batch, self._record_offset = True, None
        _, self._last_offset, position, size = block.place(-1)
        self._end = None if position is None or size is None else position + size
        self._in_line = self._in_line + block.count if block.is_gapless() else 0
        self.number = number
        self._passed_over = False

    def feed(self, lines: Iterable[bytes]) -> Iterator[DumpRow]:
        """Yield the rows that are complete once these lines (without line feeds) are known."""
        return self.feed_numbered(enumerate(lines, self.number + 1))

    def feed_numbered(self, lines: Iterable[_Line]) -> Iterator[DumpRow]:
        """Yield rows as `feed` does; lines whose numbers are left out were records that the caller does not want."""
        for number, line in lines:
            if number - self.number > 1:
                self.swallowed = self.swallowed or bool(self._doubtful or self._begun) or self._is_open()
                yield from self.finish()
                self._passed_over, self._record_offset = True, None
            self.number = number
            if self._doubtful:
                yield from self._read_ahead(number, line)
            elif self._begun:
                yield from self._piece(number, line)
            else:
                yield from self._line(number, line)

    def finish(self) -> Iterator[DumpRow]:
        """Yield what was held back: no more lines of it follow."""
        while self._doubtful or self._begun:
            yield from self._settle_doubt(at_end=True) if self._doubtful else self._settle_begun()
        if self._held is not None:
            yield self._release(self._held)

    def _line(self, number: int, line: bytes) -> Iterator[DumpRow]:
        row = self._row(line, number)
        if self._passed_over:
            if row is None or isinstance(row, DumpCut) or not self._is_next(row):
                self.swallowed = True
            if row is None:
                return
            self._passed_over = False
        if self._held is None:
            yield from self._take(row, number, line)
        elif row is None:
            yield from self._go_on(self._held, number, line)
        elif not self._is_open() or (self._is_next(row) and not isinstance(row, DumpCut)):
            yield self._release(self._held)
            yield from self._take(row, number, line)
        elif self._doubts < _MAX_DOUBTS:
            self._doubtful, self._doubtful_bytes = [(number, line)], len(line) + 1
            yield from self._end_doubt()
        else:
            yield from self._take_doubtful(row, number, line)

    def _row(self, line: bytes, number: int) -> DumpRow | None:
        """Read a line by itself: a row, the beginning of one that ends too early, or None."""
        row = self._read(line, number) if line.startswith(ROW_STARTS) else None
        if row is None:
            found = other_row(line, number) or cut_row(line, number)
            return None if self._held is not None and self._is_in(self._held_lines[0], found) else found
        return row if is_whole(row) else cut_row(line, number) or row

    def _is_in(self, begun: bytes, row: DumpRow | None) -> bool:
        """Return whether what looks like the beginning of a batch belongs to a record: its line was wrapped there."""
        if not isinstance(row, DumpCut) or row.kind is not DumpBatch or not expects_batch(begun):
            return False
        base, record = row.known.get("base_offset"), self._record_offset
        return base is None or record is None or base <= record

    def _take(self, row: DumpRow | None, number: int, line: bytes) -> Iterator[DumpRow]:
        """Take a line that does not go on with the row before it, which is not held any more."""
        match row:
            case None:
                if line:
                    yield note_of(line, number)
            case DumpCut():
                self._begun = [(number, line)]
            case DumpBatch() | DumpRecord():
                self._follow(row)
                self._held, self._held_lines, self._held_bytes = row, [line], len(line)
                self._first_piece = len(line)
            case DumpNote():
                yield row
            case _:
                self._last_offset = self._record_offset = self._end = None
                yield row

    def _go_on(self, held: DumpBatch | DumpRecord, number: int, line: bytes) -> Iterator[DumpRow]:
        """Take a line that is no row: text of the record that is held, the rest of its line, or a note."""
        has_text = isinstance(held, DumpRecord) and (held.payload is not None or held.key is not None)
        goes_on = has_text and (self._width is not None or not self._is_complete())
        if goes_on and self._held_bytes + len(line) < MAX_LINE_BYTES:
            self._held_lines.append(line)
            self._held_bytes += len(line) + 1
            return
        whole = None if has_text else self._rest_of(held, line)
        if whole is not None:
            self._held, self._width = None, max(len(self._held_lines[0]), self._width or 0)
            yield from self._take(*whole)
            self._first_piece = len(line)
            return
        if not has_text and self._is_unfinished(held, number, line):
            self._held = None
            return
        yield self._release(held)
        yield from self._take(None, number, line)

    def _rest_of(self, held: DumpBatch | DumpRecord, line: bytes) -> tuple[DumpRow, int, bytes] | None:
        """Return the row that a held one becomes with the rest of its line, None if this is none."""
        if not line or self._held_bytes > _MAX_PIECED_BYTES:
            return None
        text = joined([*self._held_lines, line])
        row = self._read(text, held.line)
        if row is None or type(row) is not type(held) or not is_whole(row):
            return None
        closed = has_open_header_keys(self._held_lines[-1]) and not has_open_header_keys(text)
        return (row, held.line, text) if closed or says_more(row, held) else None

    def _is_unfinished(self, held: DumpBatch | DumpRecord, number: int, line: bytes) -> bool:
        """Return whether a record that has no text yet goes on in more lines than this one, and take them for its pieces."""
        text = joined([*self._held_lines, line])
        is_piece = isinstance(held, DumpRecord) and (
            held.header_keys is None or has_open_header_keys(self._held_lines[0])
        )
        if not line or not is_piece or len(text) > _MAX_PIECED_BYTES or cut_row(text, held.line) is None:
            return False
        self._begun = [*((held.line, piece) for piece in self._held_lines), (number, line)]
        return True

    def _piece(self, number: int, line: bytes) -> Iterator[DumpRow]:
        """Take a line after one that ends too early: its next piece, or else the row was cut."""
        first, start = self._begun[0]
        pieces = [*self._begun, (number, line)]
        text = joined([piece for _, piece in pieces])
        begins = line.startswith((b"baseOffset: ", b"| offset: ", start[:8]))
        if not begins or self._is_in(text[: -len(line)], cut_row(line, number)):
            row = self._read(text, first) if len(text) <= MAX_LINE_BYTES else None
            if row is not None and is_whole(row):
                self._begun, self._width = [], max(len(start), self._width or 0)
                yield from self._take(row, first, text)
                self._first_piece = len(line)
                return
            is_other = not line or self._read(line, number) is not None or other_row(line, number) is not None
            fits = len(pieces) <= _MAX_PIECES and len(text) < _MAX_PIECED_BYTES
            if fits and not is_other and cut_row(text, first) is not None:
                self._begun = pieces
                return
        yield from self._settle_begun()
        yield from self._line(number, line)

    def _settle_begun(self) -> Iterator[DumpRow]:
        """No more pieces follow: the row was cut."""
        first, line = self._begun[0]
        row = cut_row(joined([piece for _, piece in self._begun]), first)
        self._begun = []
        if row is not None:
            self._follow(row)
            self._cut_width = len(line)
            yield row

    def _read_ahead(self, number: int, line: bytes) -> Iterator[DumpRow]:
        """Take a line after one that may be text of the record before it."""
        self._doubtful.append((number, line))
        self._doubtful_bytes += len(line) + 1
        yield from self._end_doubt()

    def _end_doubt(self) -> Iterator[DumpRow]:
        missing = self._missing_bytes() - self._doubtful_bytes
        if not missing and not any(self._is_batch_in_place(*line) for line in self._doubtful):
            # these lines are the rest of the text, to the byte
            self._held_lines += [line for _, line in self._doubtful]
            self._held_bytes += self._doubtful_bytes
            self._doubtful = []
            self._doubts = 0
        elif not missing or (missing < 0 and not self._is_waiting()) or self._doubtful_bytes > _MAX_DOUBT_BYTES:
            yield from self._settle_doubt()

    def _is_waiting(self) -> bool:
        """Return whether a row that follows from those before the record may still come: only a whole row is worth to wait for it."""
        first, *others = self._doubtful
        if len(others) >= _MAX_AHEAD or not self._is_whole_row(*first):
            return False
        return not (others and self._is_next_line(*others[-1]))

    def _settle_doubt(self, *, at_end: bool = False) -> Iterator[DumpRow]:
        """The size of the record does not show that the lines are its text.

        They are if a row among them follows from those before the record, or if no more lines come and every batch before followed
        from the one before it; else the first is what it looks like.
        """
        self._doubts += 1
        others, self._doubtful = self._doubtful, []
        following = next((at for at, (number, line) in enumerate(others) if at and self._is_next_line(number, line)), 0)
        if not following and at_end and self._in_line >= _MANY_IN_LINE and self._is_whole_row(*others[0]):
            following = len(others)
        if following:
            yield from self._take_text(others[:following])
            others = others[following:]
        else:
            (number, line), *others = others
            yield from self._take_doubtful(self._row(line, number), number, line)
        for number, line in others:
            if self._doubtful:
                yield from self._read_ahead(number, line)
            elif self._begun:
                yield from self._piece(number, line)
            else:
                yield from self._line(number, line)

    def _take_doubtful(self, row: DumpRow | None, number: int, line: bytes) -> Iterator[DumpRow]:
        """Take a row that does not follow from those before it, after a record whose text may go on."""
        held = self._held
        is_cut = isinstance(row, DumpCut) and not self._is_next(row)
        is_text = is_cut and len(line) not in (self._cut_width, len(self._held_lines[0]))
        if is_text:
            yield from self._take_text([(number, line)])
            return
        if held is not None:
            yield self._release(held)
        yield from self._take(row, number, line)

    def _take_text(self, lines: Iterable[_Line]) -> Iterator[DumpRow]:
        """Take lines for text of the record that is held; those that look like rows are said to be doubtful."""
        for number, line in lines:
            looks_like_row = self._row(line, number) is not None
            self._held_lines.append(line)
            self._held_bytes += len(line) + 1
            if looks_like_row:
                yield DumpNote(number, NoteKind.DOUBTFUL, line[:_SHOWN].decode("utf-8", "replace"), None)

    def _is_whole_row(self, number: int, line: bytes) -> bool:
        return isinstance(self._row(line, number), DumpBatch | DumpRecord)

    def _is_batch_in_place(self, number: int, line: bytes) -> bool:
        """Return whether a line is the next batch, where the last one ended: a size that a text has by chance shows less."""
        row = self._row(line, number)
        return self._end is not None and isinstance(row, DumpBatch) and row.position == self._end and self._is_next(row)

    def _is_next_line(self, number: int, line: bytes) -> bool:
        """Return whether a line is a whole row that follows from those before the record that is held, a batch among them."""
        row = self._row(line, number)
        return self._last_offset is not None and isinstance(row, DumpBatch | DumpRecord) and self._is_next(row)

    def _is_next(self, row: DumpRow) -> bool:
        """Return whether a row follows from those before it: the next offset, at the byte where the last batch ended."""
        known = row.known if isinstance(row, DumpCut) else row._asdict()
        is_cut = isinstance(row, DumpCut)
        kind = row.kind if isinstance(row, DumpCut) else type(row)
        if kind is DumpRecord:
            offset: int | None = known.get("offset")
            return (
                offset is not None
                and (self._record_offset is None or offset > self._record_offset)
                and (self._last_offset is None or offset <= self._last_offset)
            )
        if kind is not DumpBatch:
            return True
        base: int | None = known.get("base_offset")
        base = known.get("last_offset") if base is None else base
        all_printed = self._record_offset is None or self._record_offset == self._last_offset
        placed = known.get("position") is not None and self._end is not None
        return self._continues(base, known.get("position")) and (all_printed or placed or not is_cut)

    def _continues(self, base: int | None, position: int | None) -> bool:
        """Return whether a batch at a base offset and a position follows from the batches so far."""
        if self._last_offset is None or base is None:
            return base is not None
        if position is not None and self._end is not None:
            return base > self._last_offset and position == self._end
        return base == self._last_offset + 1

    def _follow(self, row: DumpRow) -> None:
        """Take note of what follows from a row."""
        known = row.known if isinstance(row, DumpCut) else row._asdict()
        kind = row.kind if isinstance(row, DumpCut) else type(row)
        if kind is DumpRecord:
            self._record_offset = known.get("offset", self._record_offset)
        elif kind is DumpBatch:
            self.saw_batch = True
            base = known.get("base_offset", known.get("last_offset"))
            follows = self._last_offset is not None and self._continues(base, known.get("position"))
            self._in_line = self._in_line + 1 if follows else 0
            self._last_offset, self._record_offset = known.get("last_offset"), None
            position, size = known.get("position"), known.get("size")
            self._end = None if position is None or size is None else position + size

    def _missing_bytes(self) -> int:
        """Return how many bytes of the held record's text are missing by its size; negative if there are more."""
        row = self._held
        if not isinstance(row, DumpRecord):
            return 0
        more = self._held_bytes - len(self._held_lines[0])
        if row.payload is not None:
            return row.value_size - len(row.payload) - more
        return 0 if row.key is None else row.key_size - len(row.key) - more

    def _is_open(self) -> bool:
        return self._missing_bytes() > 0

    def _is_complete(self) -> bool:
        """Return whether the held record's text is as long as its size says, to the byte."""
        row = self._held
        sizes = isinstance(row, DumpRecord) and (row.key is None or len(row.key) == row.key_size)
        return sizes and self._missing_bytes() == 0

    def _release(self, row: DumpBatch | DumpRecord) -> DumpRow:
        self._held = None
        lines = self._held_lines
        if len(lines) == 1:
            return row
        whole = self._read(b"\n".join(lines), row.line)
        assert whole is not None, "more free text does not change the pairs before it"
        if fits_sizes(whole):
            return whole
        for text in (b"".join(lines), b" ".join(lines)):
            wrapped = self._read(text, row.line)
            if wrapped is not None and fits_sizes(wrapped):
                return wrapped
        # what a decoder printed has no size: rows that were wrapped say how
        width = self._width
        if width is None or any(len(line) > width for line in lines[1:]):
            return whole
        blanks = [width - length for length in (self._first_piece, *map(len, lines[1:-1]))]
        if all(0 <= count <= 1 for count in blanks):
            text = b"".join([line + b" " * count for line, count in zip(lines, blanks, strict=False)]) + lines[-1]
        else:
            text = b" ".join(lines)
        return self._read(text, row.line) or whole

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
