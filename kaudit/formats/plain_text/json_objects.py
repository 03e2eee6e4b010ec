"""JSON objects that take several rows of a text: printed over several lines, or one line that a terminal or a mail program wrapped.

Each object that holds a line of a text becomes one line, in the place of its first row. Printers put the brace that ends an object
under the beginning of the line that opens it; a wrapped object ends with the row that makes it complete.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

_OPENING: Final = re.compile(
    rb'([ \t]*)(?:\}?[ \t]*,[ \t]*|(?:"[^"\\]{1,100}"[ \t]*:[ \t]*)?\[[ \t]*)?\{[ \t]*'
).fullmatch
"""A line that opens an object of its own or in an array, alone, after the array's bracket, or after the object before it."""
_UNFINISHED: Final = (b",", b"{", b"[", b":")
_OPENED: Final = (b"", b"{", b"[")
_CLOSING: Final = (b"", b"}", b"]")
_MAX_OBJECT_BYTES: Final = 1 << 20
_BEGINS: Final = re.compile(rb'\[?\{"').match
_NEXT: Final = re.compile(rb'\n(?=\[?\{")').finditer
_INSIDE: Final = re.compile(rb"(?:[:\[{]|[^}],) *$").search
"""The end of a row after which a brace opens an object inside of another one."""
_MAX_LOST_BLANKS: Final = 3
_MAX_WRAPPED_BYTES: Final = 1 << 15
_MAX_TRIES: Final = 8
"""Rows of one wrapped object that end with a brace, and so may be its last."""


class ObjectRows(Struct, frozen=True):
    """How objects take several rows: printed with `indent` before their first one, or wrapped at `width` columns, 0 for at blanks."""

    indent: bytes = b""
    width: int | None = None

    def joined(self, lines: Sequence[bytes]) -> list[bytes]:
        """Return as many lines, in which each object is one, and empty ones follow in place of its other rows."""
        if self.width is None:
            return _joined(lines, self.indent)
        found: list[bytes] = []
        for rows, is_whole in _wrapped(lines):
            found += [_unwrapped(rows, self.width), *[b""] * (len(rows) - 1)] if is_whole else rows
        return found

    def end_of(self, text: bytes) -> int:
        """Return where the last object of whole lines ends; 0 if none does, or if what follows is too long to be held."""
        if self.width is not None:
            ends = (at.start() + 1 for at in _NEXT(text, max(0, len(text) - _MAX_WRAPPED_BYTES)))
            return max((end for end in ends if not _INSIDE(text[max(0, end - 9) : end - 1])), default=0)
        at = text.rfind(b"\n" + self.indent + b"}")
        end = text.find(b"\n", at + 1) + 1 if at >= 0 else 0
        if at >= 0 and _OPENING(text[at + 1 : end].rstrip(b"\r\n")):
            end = at + 1  # the next object begins in the line that ends this one
        return end if len(text) - end <= _MAX_OBJECT_BYTES else 0


def object_rows(lines: Sequence[bytes], worth: Callable[[bytes], int]) -> ObjectRows | None:
    """Return how the objects that are wanted take several rows, None if there are no such objects.

    `worth` says of an object, as one line, how much of it is understood: 0 if it is not wanted. Those that lie in others count before
    these. Whether a blank was lost where an object was wrapped is not known: it is what makes most of all of them understood.
    """
    indents = sorted({found[1] for line in lines if (found := _OPENING(line)) is not None}, key=len, reverse=True)
    wanted = {indent: sum(map(worth, _objects(lines, indent))) for indent in indents}
    best = max(wanted, key=lambda indent: wanted[indent], default=None)
    if best is not None and wanted[best]:
        return ObjectRows(best)
    wrapped = [rows for rows, is_whole in _wrapped(lines) if is_whole and len(rows) > 1]
    lengths = [columns(row) for rows in wrapped for row in rows[:-1]] or [0]
    # where both ways are worth the same: rows of a terminal are as wide as it but for blanks at their end
    ways = (max(lengths), 0) if max(lengths) - min(lengths) <= _MAX_LOST_BLANKS else (0, max(lengths))
    worths = {way: sum(worth(_unwrapped(rows, way)) for rows in wrapped) for way in ways}
    return ObjectRows(width=max(worths, key=lambda way: worths[way])) if any(worths.values()) else None


def columns(row: bytes) -> int:
    """Return how many signs a row has."""
    return len(row) if row.isascii() else len(row.decode("utf-8", "replace"))


def _wrapped(lines: Sequence[bytes]) -> Iterator[tuple[list[bytes], bool]]:
    """Yield the lines, those together that are one object as JSON is written for programs, and whether they are."""
    rows: list[bytes] = []
    before = b""
    size = tries = 0
    for row in lines:
        if _BEGINS(row) and not (rows and _INSIDE(before)):
            if rows:
                yield rows, False
            rows, size, tries = [row], len(row), 0
        elif rows:
            rows.append(row)
            size += len(row)
        else:
            yield [row], False
            continue
        before = row
        may_end = row.rstrip(b", ]").endswith(b"}")
        tries += may_end
        is_whole = may_end and _is_object(b"".join(rows))
        if is_whole or size > _MAX_WRAPPED_BYTES or tries == _MAX_TRIES:
            yield rows, is_whole
            rows = []
    if rows:
        yield rows, False


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(text.removeprefix(b"[").rstrip(b", ]")), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _unwrapped(rows: Sequence[bytes], width: int) -> bytes:
    """Return an object as one line: what copies a text leaves no blanks at the end of a row."""
    return b"".join(
        row + b" " * (max(width - columns(row), 0) if width else 1) if number < len(rows) else row
        for number, row in enumerate(rows, 1)
    )


def _objects(lines: Sequence[bytes], indent: bytes) -> list[bytes]:
    return [line for line in _joined(lines, indent) if line.startswith(b"{") and line.endswith(b"}")]


def _joined(lines: Sequence[bytes], indent: bytes) -> list[bytes]:
    """Return the lines with each object that begins at `indent` as one of them, and empty ones in place of the others."""
    found: list[bytes] = []
    parts: list[bytes] = []
    for line in lines:
        if not parts:
            opened = _OPENING(line)
            if opened is None or opened[1] != indent:
                found.append(line)
            else:
                parts.append(b"{")
        elif line.startswith(indent + b"}"):
            found += _one_line(parts)
            # the next object of an array may begin in the same line
            parts = [b"{"] if _OPENING(line) else []
            found += [] if parts else [b""]
        else:
            parts.append(line.strip())
    if parts and not parts[-1].endswith(_UNFINISHED):
        return found + _one_line(parts)  # its brace begins what was not given
    return found + parts


def _one_line(parts: Sequence[bytes]) -> list[bytes]:
    """Return an object without its last brace as one line and empty ones, as JSON is written that was never meant for people."""
    pieces: list[bytes] = []
    for part in [*parts, b"}"]:
        if pieces and part[:1] not in _CLOSING and pieces[-1][-1:] not in _OPENED:
            pieces.append(b" ")
        pieces.append(part)
    return [b"".join(pieces), *[b""] * (len(parts) - 1)]
