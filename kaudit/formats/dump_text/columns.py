"""Many batch lines of one shape at once: the text's digits become int64 columns without a Python object per line.

Lines are of one shape if nothing but digits and minus signs differs, so booleans, codec and kind of timestamp are the
same in a whole block, and the position of each number in its line is known from the first.
"""

from collections.abc import Iterator
from itertools import groupby, repeat
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.formats.dump_text.layout import INTEGER, OPTIONAL, Layout, learn
from kaudit.formats.dump_text.partial_rows import is_whole
from kaudit.formats.dump_text.rows import DumpBatch

_DIGITS_AND_SIGNS: Final = b"0123456789-"
_ZERO, _MINUS, _NEWLINE = ord("0"), ord("-"), ord("\n")
_BATCH_START: Final = b"baseOffset: "
# Below this many lines the setup of numpy costs more than reading them one by one.
_MIN_LINES: Final = 24
# Numbers are read in words of eight bytes that end with them: the first must not reach before the text.
_PADDING: Final = bytes(24)
# Eighteen nines fit an int64; longer numbers are left to the reader that checks each.
_MAX_DIGITS: Final = 18

Bytes = NDArray[np.uint8]
Int64Column = NDArray[np.int64]


class DumpBatchColumns(Struct, frozen=True, eq=False):
    """`count` batch lines in order, with nothing but records between them: the fields of DumpBatch as columns.

    `lines` are their numbers in the text.

    A field is in `columns` (int64, one value a line) or in `constants` (the value of all lines: booleans, codec, kind of
    timestamp, and None for what the text does not print); `fields` names those the text prints.
    """

    lines: range | Int64Column
    count: int
    columns: dict[str, Int64Column]
    constants: dict[str, Any]
    fields: frozenset[str]

    def place(self, index: int) -> tuple[int | None, int | None, int | None, int | None]:
        """Return a line's base offset, last offset, position and size."""
        base, last, position, size = (
            self.constants.get(name) if (column := self.columns.get(name)) is None else int(column[index])
            for name in ("base_offset", "last_offset", "position", "size")
        )
        return base, last, position, size

    def is_gapless(self) -> bool:
        """Return whether each batch begins at the byte where the one before it ends, and the offsets ascend."""
        position, size, last = (self.columns.get(name) for name in ("position", "size", "last_offset"))
        if position is None or size is None or last is None:
            return False
        return bool((position[1:] == position[:-1] + size[:-1]).all() and (last[1:] > last[:-1]).all())

    def rows(self) -> Iterator[DumpBatch]:
        """Yield the lines as rows, in order."""
        values: list[Any] = [self.lines if isinstance(self.lines, range) else self.lines.tolist()]
        for field in DumpBatch._fields[1:-1]:
            column = self.columns.get(field)
            values.append(repeat(self.constants[field]) if column is None else column.tolist())
        return map(DumpBatch._make, zip(*values, repeat(self.fields), strict=False))


def shapes(text: bytes) -> Iterator[tuple[int, int, int, bool]]:
    """Cut whole lines into runs of one shape: (start, end, lines, whether it is worth parse_block), bytes of `text`.

    `text` must be empty or end with a line feed; `end` includes the run's last one.
    """
    skeletons = text.translate(None, _DIGITS_AND_SIGNS).split(b"\n")
    skeletons.pop()
    runs = [(skeleton, len(list(run))) for skeleton, run in groupby(skeletons)]
    # Where one shape fills the whole text, as in a shallow dump, its lines need not be found.
    line_ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE) + 1 if len(runs) > 1 else None
    line = start = 0
    for skeleton, count in runs:
        line += count
        end = len(text) if line_ends is None else int(line_ends[line - 1])
        yield start, end, count, count >= _MIN_LINES and skeleton.startswith(_BATCH_START)
        start = end


def parse_block(text: bytes, lines: range | Int64Column) -> DumpBatchColumns | None:
    """Read a run of lines of one shape, each ended by a line feed; None if it has to be read line by line.

    `lines` are their numbers, at least one.
    """
    count = len(lines)
    first = text[: text.index(b"\n")]
    layout = learn(first)
    if layout is None or layout.row_type is not DumpBatch:
        return None
    row = layout.read(first, int(lines[0]))
    if row is None or not is_whole(row):
        return None
    data = np.frombuffer(_PADDING + text, np.uint8)
    bounds = _numbers(data, count)
    if bounds is None:
        return None
    starts, ends = bounds
    signs = data[starts - 1] == _MINUS
    before, after = data[starts - 1 - signs], data[ends]
    # The same text around every number, and no sign elsewhere: then the n-th number of a line is the same field's.
    if (
        (before != before[0]).any()
        or (after != after[0]).any()
        or np.count_nonzero(data == _MINUS) != np.count_nonzero(signs)
        or int((ends - starts).max()) > _MAX_DIGITS
    ):
        return None
    columns = _columns(data, starts, ends, signs, _fields_by_number(layout, first, starts[0] - len(_PADDING)))
    if columns is None:
        return None
    varying = {"line", "fields", *columns}
    constants = {name: value for name, value in row._asdict().items() if name not in varying}
    return DumpBatchColumns(lines, count, columns, constants, layout.fields)


def _fields_by_number(layout: Layout, line: bytes, starts: NDArray[np.intp]) -> list[str | None]:
    """Field of each number of the first line; None for digits inside a word, which must not differ between lines."""
    found = layout.pattern.fullmatch(line)
    assert found is not None, "the layout was learned from this line"
    spans = {}
    for group, (field, value) in enumerate(layout.known, start=1):
        if value in (INTEGER, OPTIONAL) or field == "crc":
            start = found.start(group)
            spans[start + line.startswith(b"-", start) if start >= 0 else start] = field
    return [spans.get(start) for start in starts.tolist()]


def _columns(
    data: Bytes, starts: NDArray[np.intp], ends: NDArray[np.intp], signs: NDArray[np.bool_], fields: list[str | None]
) -> dict[str, Int64Column] | None:
    widths = ends - starts
    values = _eight_digits(data, ends, widths).T
    columns: dict[str, Int64Column] = {}
    for number, field in enumerate(fields):
        value, width = values[number], widths[:, number]
        for group in range(1, -(-int(width.max()) // 8)):
            higher = _eight_digits(data, ends[:, number] - 8 * group, np.clip(width - 8 * group, 0, None))
            value = value + higher * 10 ** (8 * group)
        if field == "crc" and signs[:, number].any():
            return None  # the tool prints it unsigned
        if field is not None:
            columns.setdefault(field, np.where(signs[:, number], -value, value))  # the first of two equal names counts
        elif (value != value[0]).any() or (width != width[0]).any() or signs[:, number].any():
            return None  # LZ4 is not LZ04
    return columns


def _eight_digits(data: Bytes, ends: NDArray[np.intp], widths: NDArray[np.intp]) -> Int64Column:
    """Value of the last min(width, 8) digits before each of `ends`, all eight at once inside one 64-bit word.

    `data` must have eight bytes before the first end. Neighbouring digits are joined to pairs, fours and eights by one
    multiplication each; the most significant digit is the lowest byte, so bytes before the number are masked as zeros.
    """
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))[ends - 8]
    absent = (8 * (8 - np.minimum(widths, 8))).astype(np.uint64)
    # Shifting a 64-bit word by 64 is undefined: a number without digits in this group is masked in two steps.
    half = absent >> np.uint64(1)
    words = (words & np.uint64(0x0F0F0F0F0F0F0F0F)) >> half >> (absent - half) << half << (absent - half)
    words = (words * np.uint64(10) + (words >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    words = (words * np.uint64(100) + (words >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    words = (words * np.uint64(10000) + (words >> np.uint64(32))) & np.uint64(0x00000000FFFFFFFF)
    return words.astype(np.int64)


def _numbers(data: NDArray[np.uint8], lines: int) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Return where the numbers of a text start and end, shape (lines, numbers a line); None if lines have not equally many."""
    is_digit = (data - _ZERO) < 10
    changes = np.flatnonzero(is_digit[1:] != is_digit[:-1]) + 1
    numbers, left = divmod(len(changes), 2 * lines)
    if left or is_digit[0] or not numbers:
        return None
    return changes[0::2].reshape(lines, numbers), changes[1::2].reshape(lines, numbers)
