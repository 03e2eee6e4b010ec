"""The form that a text has: its encoding, its line ends, and what stands around its lines; and the plain text without all that.

What stands before each line of a text: quotes of mail, numbers, names of containers, times of collectors, indents.

It is learned from the lines whose beginning is known: what they have before that, with the same signs at the same places.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from kaudit.formats.plain_text.json_objects import ObjectRows, object_rows

_TOKEN: Final = re.compile(rb"[ \t]*\w+|[ \t]+|[\x80-\xff]+|[^\w \t\x80-\xff]")
_WORD: Final = re.compile(rb"([ \t]*)(\w+)").fullmatch
_MAX_LENGTH: Final = 300
_MAX_LEARNED: Final = 256


def learn_prefix(lines: Iterable[bytes], start: re.Pattern[bytes]) -> bytes | None:
    """Return an expression of what stands before the lines in which `start` is found; None if it is mostly nothing.

    Lines begin with the first `start` in them. Numbers, and words that differ, may be any.
    """
    found: list[bytes] = []
    for line in lines:
        begun = start.search(line, 0, _MAX_LENGTH + _MAX_LENGTH)
        if begun is not None and begun.start() <= _MAX_LENGTH:
            found.append(line[: begun.start()])
        if len(found) == _MAX_LEARNED:
            break
    prefixes = [_TOKEN.findall(prefix) for prefix in found if prefix]
    if 2 * len(prefixes) <= len(found) or not prefixes:
        return None
    shapes = Counter(_shape(tokens) for tokens in prefixes)
    shape = shapes.most_common(1)[0][0]
    return _expression([tokens for tokens in prefixes if _shape(tokens) == shape])


def _shape(tokens: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the signs of a prefix, with the same for each word and for blanks."""
    return tuple(b"w" if _WORD(token) else b" " if token.isspace() else token for token in tokens)


def _expression(prefixes: Sequence[Sequence[bytes]]) -> bytes:
    parts: list[bytes] = []
    for place in zip(*prefixes, strict=True):
        kinds = set(place)
        words = [word for token in place if (word := _WORD(token)) is not None]
        if words:
            same = {word[2] for word in words}
            numbers = all(word.isdigit() for word in same)
            text = rb"\d+" if numbers else re.escape(words[0][2]) if len(same) == 1 else rb"\w+"
            blanks = {word[1] for word in words}
            # numbers are padded with blanks
            before = re.escape(words[0][1]) if len(blanks) == 1 and not words[0][2].isdigit() else rb"[ \t]*"
            parts.append(before + text)
        else:
            parts.append(re.escape(place[0]) if len(kinds) == 1 else rb"[ \t]+")
    if prefixes[0][-1].isspace():
        # what copies a text leaves no blanks at the end of a line that has nothing else
        parts[-1] = rb"(?:" + parts[-1] + rb"|[ \t]*$)"
    return b"".join(parts)


_BYTE_ORDER_MARKS: Final[Mapping[bytes, str]] = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_ANSI: Final = re.compile(rb"\x1b(?:\[[0-9;:?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\))")
_FIXED_BLANK: Final = "\N{NO-BREAK SPACE}".encode()
_PROBE_BYTES: Final = 1 << 16
_MAX_BEFORE_JSON: Final = 400


class TextForm(Struct, frozen=True):
    """What a text is besides its lines. `encoding` is utf-8, utf-16-le or utf-16-be, `mark` the bytes of its byte order mark.

    `line_end` are the bytes at the end of each line. `prefix` is an expression of what stands before each; `member` the keys
    to it where each line is a JSON object, "" where a string holds JSON in turn; `objects` is how those objects take several
    rows, where they do; `fixed_blanks` says whether blanks are such that
    do not break, `colours` whether it has codes of a terminal.
    """

    encoding: str = "utf-8"
    mark: int = 0
    line_end: str = "\n"
    prefix: bytes = b""
    member: tuple[str | int, ...] = ()
    objects: ObjectRows | None = None
    fixed_blanks: bool = False
    colours: bool = False

    @property
    def encoded_line_end(self) -> bytes:
        """Return the last sign of a line end in the text's own bytes."""
        return self.line_end[-1].encode(self.encoding)

    @property
    def unit(self) -> int:
        """Return how many bytes a sign has at least, and where signs begin: at its multiples."""
        return 1 if self.encoding == "utf-8" else 2


PLAIN: Final = TextForm()


def form_of(head: bytes, start: re.Pattern[bytes]) -> TextForm:
    """Return the form of a text by its first bytes. `start` finds what lines of its kind begin with, wherever it stands."""
    head = head[:_PROBE_BYTES]
    encoding, mark = encoding_of(head)
    text = head[mark:]
    if encoding != "utf-8":
        text = text[: len(text) // 2 * 2].decode(encoding, "replace").encode("utf-8", "replace")
    feeds, returns = text.count(b"\n"), text.count(b"\r")
    line_end = "\r" if returns and not feeds else "\r\n" if feeds and text.count(b"\r\n") == feeds else "\n"
    lines = text.replace(b"\r\n", b"\n").split(line_end.encode() if line_end == "\r" else b"\n")
    colours = any(line.startswith(b"\x1b[") for line in lines)
    if colours:
        lines = [_ANSI.sub(b"", line) for line in lines]
    fixed_blanks = _FIXED_BLANK in text and not any(map(start.search, lines))
    if fixed_blanks:
        lines = [line.replace(_FIXED_BLANK, b" ") for line in lines]
    objects = object_rows(lines, lambda line: _named(line) if start.search(line) and _member_with(line, start) else 0)
    if objects is not None:
        lines = objects.joined(lines)
    members = Counter(_member_with(line, start) for line in lines if start.search(line))
    member = members.most_common(1)[0][0] if members else ()
    if member:
        lines = [_ANSI.sub(b"", _member(line, member)) for line in lines]
        colours = colours or b"\\u001b" in text
    prefix = learn_prefix(lines, start) or b""
    return TextForm(encoding, mark, line_end, prefix, member, objects, fixed_blanks, colours)


def encoding_of(head: bytes) -> tuple[str, int]:
    """Return the encoding and how long the byte order mark is; without one, letters of ASCII show UTF-16 by their zeros."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding, len(mark)
    most = len(head) // 2 * 3 // 4
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > most > even * 4:
        return "utf-16-le", 0
    if even > most > odd * 4:
        return "utf-16-be", 0
    return "utf-8", 0


def plain_block(block: bytes, form: TextForm, *, begins_line: bool = True) -> bytes:
    """Return whole lines in a form as plain lines: UTF-8, ended by line feeds, without anything before them.

    `begins_line` is false for a part of a line that is too long to be held.
    """
    text = block
    if form.encoding != "utf-8":
        text = text.decode(form.encoding, "replace").encode("utf-8", "replace")
    if form.line_end != "\n":
        text = text.replace(form.line_end.encode(), b"\n")
    first = b""
    if not begins_line:
        first, feed, text = text.partition(b"\n")
        first += feed
    if form.objects is not None:
        text = b"\n".join(form.objects.joined(text.split(b"\n")))
    if form.member:
        text = b"\n".join(_member(line, form.member) for line in text.split(b"\n"))
    text = text.replace(codecs.BOM_UTF8, b"")
    if form.colours:
        text = _ANSI.sub(b"", text)
    if form.fixed_blanks:
        text = text.replace(_FIXED_BLANK, b" ")
    if form.prefix:
        text = re.sub(b"^(?:" + form.prefix + b")", b"", text, flags=re.MULTILINE)
    return first + text


_MAX_DEPTH: Final = 8
_NAME: Final = re.compile(rb"[ \"][A-Za-z]+: ").findall


def _named(line: bytes) -> int:
    """Return how many values have their name before them, and at least 1: a blank that a wrap took joins two."""
    return 1 + len(_NAME(line))


def _member_with(line: bytes, start: re.Pattern[bytes]) -> tuple[str | int, ...]:
    """Return where in the JSON of a line the line of text is, by keys; nothing if it is in none. "" is JSON in a string."""
    held = _json_of(line)
    return () if held is None else _find(held, start, 0) or ()


def _json_of(line: bytes) -> object:
    at = line.find(b"{", 0, _MAX_BEFORE_JSON)
    if at < 0:
        return None
    try:
        return msgspec.json.decode(line[at:].rstrip(b", \r]"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _find(value: object, start: re.Pattern[bytes], depth: int) -> tuple[str | int, ...] | None:
    """Return the keys to the first string with the beginning of a line, None if there is none."""
    if isinstance(value, str):
        text = value.encode("utf-8", "replace")
        if start.search(text) is None:
            return None
        inner = _json_of(text) if text.lstrip().startswith(b"{") else None
        path = None if inner is None else _find(inner, start, depth + 1)
        return () if path is None else ("", *path)
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members if depth < _MAX_DEPTH else ():
        path = _find(member, start, depth + 1)
        if path is not None:
            return (key, *path)
    return None


def _member(line: bytes, path: Sequence[str | int]) -> bytes:
    """Return the string at a place in the JSON of a line; the line itself if it has none there."""
    value = _json_of(line)
    for key in path:
        if key == "":
            value = _json_of(value.encode("utf-8", "replace")) if isinstance(value, str) else None
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            value = value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None
    return value.encode("utf-8", "replace").rstrip(b"\r\n") if isinstance(value, str) else line
