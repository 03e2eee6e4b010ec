"""Lines of a log that are not as the program wrote them: wrapped or cut by a terminal, or several joined to one by a collector."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from kaudit.formats.application_log.layouts import Lines

_MIN_WIDTH: Final = 40
_MIN_LINES: Final = 3
_ELLIPSES: Final = (b"...", "\N{HORIZONTAL ELLIPSIS}".encode())
_MIN_PIECES: Final = 2
_MIN_LENGTH: Final = 4
_MAX_WIDTH: Final = 400
_MAX_JOINED: Final = 1 << 14
"""Bytes up to which the pieces of a line are joined: what matters of an entry stands at its beginning."""
_FRAME: Final = re.compile(rb"\s+(?:at |\.\.\. \d)").match
_JOINTS: Final = re.compile(
    rb"(?:\\r)?\\n|#015?#?012|#012"
    rb"|[ \t]+(?=(?:[a-z][\w$]{0,60}\.){2,20}[A-Z][\w$]{0,100}(?:Exception|Error)\b(?::|[ \t]|$))"
    rb"|[ \t]+(?=at [\w.$/<>@]{3,300}\([\w .:-]{1,200}\))|[ \t]+(?=(?:Caused by|Suppressed): )"
)
"""Where collectors put the lines of an entry together: with a blank, or with the line end in another form."""


def width_of(lines: Sequence[bytes]) -> int | None:
    """Return the width that a terminal cut or wrapped lines at, in bytes; None if no width is that of several and of none more."""
    lengths = Counter(map(len, lines))
    longest = max(lengths, default=0)
    return longest if longest >= _MIN_WIDTH and lengths[longest] >= _MIN_LINES else None


def is_cut(line: bytes, width: int) -> bool:
    """Return whether a line ends at the width where others were cut, and not as lines end that are whole."""
    return len(line) == width and (line[-1:] not in b").]}:;\"'>" or line.endswith(_ELLIPSES))


def wrapped_width(lines: Lines, unknown: Collection[int], lengths: Sequence[int]) -> int | None:
    """Return the width at which a terminal or a mail program wrapped the lines, None if they do not look wrapped.

    They do if nearly all of the lines in no layout, `unknown` by index, come where the line before had no room for more. `lengths`
    are those of the lines when they were wrapped, with or without what a collector put before them.
    """
    longest = max(lengths, default=0)
    if not lines.heads or len(unknown) < _MIN_PIECES or not _MIN_WIDTH <= longest <= _MAX_WIDTH:
        return None
    pieces = [index for index in unknown if index]
    joined = sum(_glue(lengths[index - 1], lines.texts[index], longest, b"") is not None for index in pieces)
    return longest if joined >= _MIN_PIECES and joined * 5 >= len(pieces) * 4 else None


def rejoined(lines: Lines, unknown: Collection[int], lengths: Sequence[int], width: int) -> Lines:
    """Return the lines with each that is a piece of the one before it joined to that; `unknown` and `lengths` as `wrapped_width`.

    A line goes on in the next one if it is as wide as the terminal, or if the next one's first word had no room in it.
    """
    found = Lines([], [], [], {})
    begun = set(lines.heads)
    heads = set(lines.heads).difference(unknown)
    before = [lengths[index - 1] for index in unknown if index]
    # mail programs break at blanks, and take these away
    at_blanks = sum(length <= width - 2 for length in before) > before.count(width)
    full = b" " if at_blanks else b""
    last_length = 0
    for index, text in enumerate(lines.texts):
        is_piece = index in unknown or (text[:1] == b" " and text[1:2] not in (b" ", b"") and not _FRAME(text))
        if is_piece and index not in heads and found.texts and len(found.texts[-1]) < _MAX_JOINED:
            glue = _glue(last_length, text, width, full)
            if glue is not None:
                found.texts[-1] += glue + text
                last_length = lengths[index]
                continue
        found.add(text, lines.numbers[index], starts=index in heads or index in begun, time=lines.times.get(index))
        last_length = lengths[index]
    return found


def _glue(length: int, text: bytes, width: int, full: bytes) -> bytes | None:
    """Return what was between a line of some length and its next piece; `full` after one as wide as the terminal."""
    if length == width:
        return full
    word = len(text.lstrip(b" ").split(b" ", 1)[0])
    return b" " if _MIN_LENGTH <= length < width and length + 1 + word > width else None


def is_joined(line: bytes) -> bool:
    """Return whether a collector may have joined lines to this one: most lines hold nothing that could begin another."""
    return b"Exception" in line or b"\\n" in line or b"#012" in line


def separated(lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines of an entry as the program wrote them, where a collector joined them."""
    return [piece for line in lines for piece in _JOINTS.split(line.replace(b"\\t", b"\t").replace(b"#011", b"\t"))]
