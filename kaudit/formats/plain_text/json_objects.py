"""JSON printed over several lines: each object that holds a line of a text becomes one line, in the place of its first one.

Printers put the brace that ends an object under the beginning of the line that opens it, so whole lines are enough to find objects.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

_OPENING: Final = re.compile(
    rb'([ \t]*)(?:\}?[ \t]*,[ \t]*|(?:"[^"\\]{1,100}"[ \t]*:[ \t]*)?\[[ \t]*)?\{[ \t]*'
).fullmatch
"""A line that opens an object of its own or in an array, alone, after the array's bracket, or after the object before it."""
_UNFINISHED: Final = (b",", b"{", b"[", b":")
_OPENED: Final = (b"", b"{", b"[")
_CLOSING: Final = (b"", b"}", b"]")
_MAX_OBJECT_BYTES: Final = 1 << 20


def object_indent(lines: Sequence[bytes], is_wanted: Callable[[bytes], bool]) -> bytes | None:
    """Return what stands before the objects that are wanted as one line each, None if there are none over several lines.

    `is_wanted` says whether an object, as one line, is. Those that lie in others count before these.
    """
    indents = sorted({found[1] for line in lines if (found := _OPENING(line)) is not None}, key=len, reverse=True)
    wanted = {indent: sum(map(is_wanted, _objects(lines, indent))) for indent in indents}
    best = max(wanted, key=lambda indent: wanted[indent], default=None)
    return best if best is not None and wanted[best] else None


def _objects(lines: Sequence[bytes], indent: bytes) -> list[bytes]:
    return [line for line in joined_objects(lines, indent) if line.startswith(b"{") and line.endswith(b"}")]


def joined_objects(lines: Sequence[bytes], indent: bytes) -> list[bytes]:
    """Return as many lines, in which each object that begins at `indent` is one, and empty ones follow in place of the others."""
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


def end_of_objects(text: bytes, indent: bytes) -> int:
    """Return where the last object of whole lines ends; 0 if none does, or if what follows is too long to be held."""
    at = text.rfind(b"\n" + indent + b"}")
    end = text.find(b"\n", at + 1) + 1 if at >= 0 else 0
    if at >= 0 and _OPENING(text[at + 1 : end].rstrip(b"\r\n")):
        end = at + 1  # the next object begins in the line that ends this one
    return end if len(text) - end <= _MAX_OBJECT_BYTES else 0
