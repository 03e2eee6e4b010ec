"""What stands before each line of a text: quotes of mail, numbers, names of containers, times of collectors, indents.

It is learned from the lines whose beginning is known: what they have before that, with the same signs at the same places.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

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
