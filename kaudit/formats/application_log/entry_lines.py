"""Lines of a log that are not as the program wrote them: wrapped or cut by a terminal, or several joined to one by a collector."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from kaudit.formats.application_log.layouts import Lines, looks_like_continuation
from kaudit.formats.application_log.timestamps import LogTime
from kaudit.formats.plain_text.json_objects import columns

_MIN_WIDTH: Final = 40
_MIN_LINES: Final = 3
_ELLIPSES: Final = (b"...", "\N{HORIZONTAL ELLIPSIS}".encode())
_MIN_PIECES: Final = 2
_MIN_LENGTH: Final = 4
_MAX_WIDTH: Final = 400
_MAX_JOINED: Final = 1 << 14
"""Bytes up to which the pieces of a line are joined: what matters of an entry stands at its beginning."""
_CLOSING: Final = (b")", b"]", b"}")
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


def _wrapped(lines: Lines, unknown: Collection[int], rows: Sequence[bytes]) -> tuple[int, int, int] | None:
    """Return how a terminal or a mail program wrapped the lines, None if they do not look wrapped.

    That is how many pieces of lines follow a line without room for them, how many of those follow one as wide as any, and that width.

    They do if nearly all of the lines in no layout, `unknown` by index, come where the line before had no room for more. `rows`
    are the lines when they were wrapped, with or without what a collector put before them.
    """
    # a word that was too long for the width stands in a line of its own
    longest = max((columns(row) for row in rows if b" " in row.strip()), default=0)
    if not lines.heads or not _MIN_WIDTH <= longest <= _MAX_WIDTH:
        return None
    others = set(range(1, len(rows))).difference(unknown, lines.heads)
    pieces = [index for index in unknown if index]
    pieces += [at for at in others if lines.texts[at][:1] in _CLOSING or _begins_with_blank(lines.texts[at])]
    if len(pieces) < _MIN_PIECES:
        return None
    way = _Way(longest, b"", True)
    glues = [_glue(columns(rows[index - 1]), rows[index], way) for index in pieces]
    joined = len(pieces) - glues.count(None)
    return (joined, glues.count(b""), longest) if joined >= _MIN_PIECES and joined * 5 >= len(pieces) * 4 else None


class _Row(NamedTuple):
    text: bytes
    number: int
    starts: bool
    time: bytes | LogTime | None


_Entry = list[_Row]
"""The rows from one that begins an entry by itself up to the next such row."""


def rejoined(
    lines: Lines, unknown: Collection[int], rows: Sequence[Sequence[bytes]], understood: Callable[[bytes], int]
) -> Lines:
    """Return the lines as they were before they were wrapped, themselves if they were not; `unknown` are those in no layout.

    Each of `rows` are the lines as they may have been when they were wrapped. A line goes on in the next one if it is as wide as the
    terminal, or if the next one's first word had no room in it. Whether a blank was lost where it was as wide, and whether a row
    like one of a stack trace begins a line, is not known: of each entry it is what makes most of it `understood`.
    """
    wrapped = [(how, own) for own in rows if (how := _wrapped(lines, unknown, own)) is not None]
    ways = [
        list(_entries(lines, unknown, own, _Way(width, full, traces)))
        for (_, _, width), own in sorted(wrapped, key=lambda pair: pair[0][:2], reverse=True)
        for full in (b"", b" ")
        for traces in (True, False)
    ]
    understood = cache(understood)  # most ways have the same rows
    found = Lines([], [], [], {})
    for entry in zip(*ways, strict=True):
        best = max(entry, key=lambda one: (sum(understood(row.text) for row in one), -len(one)))
        for row in best:
            found.add(row.text, row.number, starts=row.starts, time=row.time)
    return found if ways else lines


class _Way(NamedTuple):
    """How lines may have been wrapped: `full` was lost after one as wide as the terminal, `traces` says that rows of traces begin lines."""

    width: int
    full: bytes
    traces: bool


def _entries(lines: Lines, unknown: Collection[int], rows: Sequence[bytes], way: _Way) -> Iterator[_Entry]:
    begun = set(lines.heads)
    heads = begun.difference(unknown)
    entry: _Entry = []
    last_length = 0
    for index, (text, row) in enumerate(zip(lines.texts, rows, strict=True)):
        if index in heads and entry:
            yield entry
            entry = []
        is_piece = index in unknown or _begins_with_blank(text)
        is_piece |= text[:1] in _CLOSING if way.traces else not text[:1].isspace()
        glue = _glue(last_length, row, way) if is_piece and index not in heads else None
        if glue is not None and entry and len(entry[-1].text) < _MAX_JOINED:
            # of a collector's own there may be no more in the row before: what it put before an empty rest
            joined = entry[-1].text + glue + row if entry[-1].text else row
            entry[-1] = entry[-1]._replace(text=joined, starts=entry[-1].starts and not looks_like_continuation(joined))
        else:
            entry.append(_Row(text, lines.numbers[index], index in heads or index in begun, lines.times.get(index)))
        last_length = columns(row)
    if entry:
        yield entry


def _begins_with_blank(text: bytes) -> bool:
    """Return whether a line begins with one blank and is no frame of a stack trace: a terminal went on in the middle of a text."""
    return text[:1] == b" " and text[1:2] not in (b" ", b"") and not _FRAME(text)


def _glue(length: int, text: bytes, way: _Way) -> bytes | None:
    """Return what was between a line of some length and its next piece."""
    if length >= way.width:
        return way.full
    word = columns(text.lstrip(b" ").split(b" ", 1)[0])
    return b" " if length >= _MIN_LENGTH and length + 1 + word > way.width else None


def is_joined(line: bytes) -> bool:
    """Return whether a collector may have joined lines to this one: most lines hold nothing that could begin another."""
    return b"Exception" in line or b"\\n" in line or b"#012" in line


def separated(lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines of an entry as the program wrote them, where a collector joined them."""
    return [piece for line in lines for piece in _JOINTS.split(line.replace(b"\\t", b"\t").replace(b"#011", b"\t"))]
