"""Java's property files, as java.util.Properties.load reads them: comments, continued lines, escapes."""

import re
from typing import Final

from kaudit.formats.errors import Reason, WireError

_LINE_END: Final = re.compile(r"\r\n?|\n")
_PROPERTY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    r"""Return the properties of a text; the last of several values of a key counts. Raises WireError for a malformed \uXXXX."""
    properties: dict[str, str] = {}
    held = ""
    for line in (*_LINE_END.split(text), ""):
        stripped = line.lstrip(" \t\f")
        if not held and (not stripped or stripped[0] in "#!"):
            continue
        held += stripped
        if (len(held) - len(held.rstrip("\\"))) % 2:  # it goes on in the next line
            held = held[:-1]
            continue
        found = _PROPERTY.fullmatch(held)
        assert found is not None, "each backslash is followed by something"
        properties[_unescaped(found[1])] = _unescaped(found[2])
        held = ""
    return properties


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    # escapes are UTF-16 units: a pair of surrogates is one character, half a pair is none
    try:
        return _ESCAPE.sub(_character, text).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise WireError(0, Reason.TEXT, f"{text[:40]!r} holds half a surrogate pair") from None


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if code == "u":
        digits = escape.string[escape.end() : escape.end() + 4]
        raise WireError(0, Reason.TEXT, f"malformed escape \\u{digits}")
    return chr(int(code[1:], 16)) if len(code) > 1 else _NAMED.get(code, code)
