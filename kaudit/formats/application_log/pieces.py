"""The bytes of a log file as whole lines, in bounded memory: decoded, and without control codes."""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct, field

from kaudit.formats.application_log.layouts import (
    ENTRY_START,
    LineReader,
    begins_with_date,
    structured_entry,
    time_before_entry,
)
from kaudit.formats.plain_text.forms import encoding_of, learn_prefix
from kaudit.formats.plain_text.json_objects import object_rows
from kaudit.model.limits import SERVER_LOG_LINE_BYTES

MAX_LINE_BYTES: Final = SERVER_LOG_LINE_BYTES
"""Bytes of one line that are kept; what follows up to its line feed is skipped."""
_PIECE_BYTES: Final = 1 << 20
_HEAD_BYTES: Final = 1 << 16
_HEAD_LINES: Final = 512
_FIXED_BLANK: Final = "\N{NO-BREAK SPACE}".encode()
_ANSI: Final = re.compile(rb"\x1b\[[0-9;:?]{0,32}[ -/]{0,4}[@-~]")


class LogCounts(Struct):
    """Counts of one or several log files; the reader adds to them while it reads.

    `entries` are the lines that begin an entry of a layout that is known. `unknown_lines` are neither such a beginning, nor a
    continuation (indented, or of a stack trace), nor a message that is known. `other_entries` are those entries in
    which no class or program of Kafka's is named: another program's, or all where the layout leaves loggers out;
    `other_lines` are their lines. `unknown_facts` are those unknown, or cut off, that hold a fact about producers, `examples` the
    first of them. `long_lines` were cut at MAX_LINE_BYTES. `first_ms` and `last_ms` are the least and the greatest time of the entries
    that were looked at (the first and the last of each MiB and all events), as LogEvent has them.
    """

    lines: int = 0
    entries: int = 0
    events: int = 0
    unknown_lines: int = 0
    other_entries: int = 0
    other_lines: int = 0
    unknown_facts: int = 0
    examples: list[str] = field(default_factory=list)
    long_lines: int = 0
    first_ms: int | None = None
    last_ms: int | None = None

    def saw(self, timestamp_ms: int | None) -> None:
        """Extend the time that the log covers."""
        if timestamp_ms is not None:
            self.first_ms = timestamp_ms if self.first_ms is None else min(self.first_ms, timestamp_ms)
            self.last_ms = timestamp_ms if self.last_ms is None else max(self.last_ms, timestamp_ms)


def line_blocks(
    pieces: Iterable[bytes], counts: LogCounts, understood: Callable[[bytes], int] = len
) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield the lines in blocks of about a MiB, without their line ends: without what stands before each, and with it.

    Where blocks end depends on the bytes alone, not on how they come in pieces. Colour codes and NULs are removed, UTF-16
    becomes UTF-8. Long lines are noted in `counts`. `understood` says how much of a message is.
    """
    rest = b""
    skipping = False
    plain: _Plain | None = None
    for text in _text(_regular(pieces)):
        data = text
        if skipping:
            end = data.find(b"\n")
            if end < 0:
                continue
            data, skipping = data[end:], False
        data = rest + data
        end = last = data.rfind(b"\n") + 1
        if end:
            plain = plain or _Plain(_cleaned(data[: end - 1]), understood)
            end = plain.end_of(data[:end])
        rest = data[end:]
        if len(data) - last > MAX_LINE_BYTES:
            rest, skipping = rest[: last - end + MAX_LINE_BYTES], True
            counts.long_lines += 1
        if plain is not None and end:
            yield plain.lines(_cleaned(data[: end - 1]))
    if rest:
        cleaned = _cleaned(rest.removesuffix(b"\n"))
        yield (plain or _Plain(cleaned, understood)).lines(cleaned)


class _Plain:
    """Takes away what stands before each line of a log, if its lines begin entries only without that; joins objects of several lines."""

    def __init__(self, first: bytes, understood: Callable[[bytes], int]) -> None:
        def worth(line: bytes) -> int:
            entry = structured_entry(line)
            return 0 if entry is None else 1 + sum(map(understood, entry.text.split(b"\n")))

        head = first[:_HEAD_BYTES].split(b"\n")[:_HEAD_LINES]
        self._fixed_blanks = first.count(_FIXED_BLANK) > first.count(b" ")
        if self._fixed_blanks:
            head = [line.replace(_FIXED_BLANK, b" ") for line in head]
        self._objects = object_rows(head, worth)
        if self._objects is not None:
            head = [line for line in self._objects.joined(head) if line]
        self._prefixes: list[re.Pattern[bytes]] = []
        prefix = learn_prefix(head, ENTRY_START)
        if prefix is not None:
            expression = re.compile(b"^(?:" + prefix + b")", re.MULTILINE)
            without = [expression.sub(b"", line) for line in head]
            more = len(LineReader().read(without).heads) - len(LineReader().read(head).heads)
            dated = sum(map(begins_with_date, without))
            if dated * 8 >= sum(map(bool, without)) and (more > 0 or _collected(without) is not None):
                self._prefixes.append(expression)
                head = without
        collected = _collected(head)
        if collected is not None:
            self._prefixes.append(collected)

    def end_of(self, text: bytes) -> int:
        """Return where the last lines of a text end that can be read without those after it."""
        return len(text) if self._objects is None else self._objects.end_of(text) or len(text)

    def lines(self, text: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return the lines of a text, without their prefixes and with them."""
        if self._fixed_blanks:
            text = text.replace(_FIXED_BLANK, b" ")
        if self._objects is not None:
            text = b"\n".join(self._objects.joined(text.split(b"\n")))
        raw = text.split(b"\n")
        for prefix in self._prefixes:
            text = prefix.sub(b"", text)
        return text.split(b"\n") if self._prefixes else raw, raw


def _collected(head: Sequence[bytes]) -> re.Pattern[bytes] | None:
    """Return an expression of the times that a collector of no known form put before nearly all lines."""
    times = [time for line in head if (time := time_before_entry(line)) is not None]
    if not times:
        return None
    prefix = learn_prefix([time + b"\0" for time in times], re.compile(b"\0"))
    expression = None if prefix is None else re.compile(b"^(?:" + prefix + b")", re.MULTILINE)
    lines = [line for line in head if ENTRY_START.match(line)]
    matched = 0 if expression is None else sum(expression.match(line) is not None for line in lines)
    return expression if matched * 10 >= len(lines) * 9 else None


def _regular(pieces: Iterable[bytes], length: int = _PIECE_BYTES) -> Iterator[bytes]:
    """Yield the same bytes, `length` at a time."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= length:
            data = b"".join(held)
            whole = size - size % length
            for start in range(0, whole, length):
                yield data[start : start + length]
            held, size = [data[whole:]], size - whole
    yield b"".join(held)


def _cleaned(data: bytes) -> bytes:
    if b"\x1b" in data:
        data = _ANSI.sub(b"", data)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
    return data.translate(None, b"\0") if b"\0" in data else data


def _text(pieces: Iterator[bytes]) -> Iterator[bytes]:
    first = next(pieces, b"")
    encoding, mark = encoding_of(first[:_HEAD_BYTES])
    decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding != "utf-8" else None
    old_line_ends: bool | None = None
    for piece in chain((first[mark:],), pieces):
        text = piece if decoder is None else decoder.decode(piece).encode("utf-8", "replace")
        if old_line_ends is None:
            old_line_ends = b"\r" in text and b"\n" not in text
        yield text.replace(b"\r", b"\n") if old_line_ends else text
