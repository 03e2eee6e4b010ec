"""Java's property files (java.util.Properties), as Kafka's own tools take them with --command-config."""

import re
from collections.abc import Iterator

_KEY = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Return the properties of a text; the last of several values of a key counts, as in Java."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        if match is not None:
            found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines that hold properties; a line that ends in an odd number of backslashes goes on in the next."""
    held = ""
    for line in text.splitlines():
        stripped = line.lstrip(" \t\f")
        if not held and (not stripped or stripped[0] in "#!"):
            continue
        whole = held + stripped
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            held = whole[:-1]
            continue
        held = ""
        yield whole
    if held:
        yield held


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(
        lambda match: chr(int(match[1][1:], 16)) if len(match[1]) > 1 else _NAMED.get(match[1], match[1]), text
    )
