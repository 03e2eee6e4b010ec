"""Colour, width and escaping of text that people read.

Written by hand rather than with rich: rich costs a tenth of a second at start-up, takes square brackets for markup,
and cuts ids and paths short when there is no terminal.
"""

import enum
import os
import re
import textwrap
from collections.abc import Mapping
from typing import IO, TextIO

from msgspec import Struct

_NARROWEST = 40
COMMAND_START = "##["


class Style(enum.Enum):
    """What a piece of text means; the values are codes of the terminal's own sixteen colours."""

    ERROR = "1;31"
    WARNING = "1;33"
    NOTE = "1;36"
    GOOD = "32"
    COMMAND = "36"
    STRONG = "1"
    FAINT = "2"


class ColorChoice(enum.Enum):
    """The values of --color."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


_COMMAND = re.compile(r"(?<!\S)::|(?<=#)#(?=\[)")
"""What makes a line a command of GitHub or Azure: `::` at its start, to which wrapping brings any word, and `##[` anywhere."""


def visible(text: str) -> str:
    """Return `text` with every character spelled out that a terminal would obey or hide, or that begins a command of a CI system.

    These are controls, escapes and bidi marks, `::` where a line may begin, and `##[` anywhere.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _spelled(char) for char in text)
    if "::" in text or COMMAND_START in text:
        text = _COMMAND.sub(lambda found: f"\\u{ord(found[0][0]):04x}{found[0][1:]}", text)
    return text


def _spelled(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def wants_color(choice: ColorChoice, stream: IO[str], environ: Mapping[str, str]) -> bool:
    """Decide on colour: the option, then NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM=dumb, CLICOLOR, then the stream."""
    if choice is not ColorChoice.AUTO:
        return choice is ColorChoice.ALWAYS
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if environ.get("TERM") == "dumb" or environ.get("CLICOLOR") == "0":
        return False
    return stream.isatty()


def wanted_width(stream: IO[str], environ: Mapping[str, str]) -> int | None:
    """Columns to wrap at: COLUMNS, else the terminal's; None for a pipe or a file, where lines stay whole."""
    columns = environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return max(int(columns), _NARROWEST)
    if not stream.isatty():
        return None
    try:
        return max(os.get_terminal_size(stream.fileno()).columns, _NARROWEST)
    except OSError:
        return 80


def draws_lines(stream: TextIO) -> bool:
    """Return whether the stream's encoding has the characters that lines and bars are drawn with."""
    try:
        "│─━┣┅░►✗█▏".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class Console(Struct, frozen=True):
    """What an output can show: colour, `width` in columns (None: never wrap), and characters beyond ASCII (`draws`)."""

    color: bool = False
    width: int | None = None
    draws: bool = True

    def paint(self, text: str, style: Style) -> str:
        """Colour `text` where colour is wanted."""
        return f"\x1b[{style.value}m{text}\x1b[0m" if self.color and text else text

    def fits(self, columns: int) -> bool:
        """Return whether a line of that many columns needs no wrapping."""
        return self.width is None or columns <= self.width

    def wrap(self, text: str, lead: str = "", indent: str | None = None, style: Style | None = None) -> list[str]:
        """Wrap `text` after `lead`, which is painted with `style`; words longer than a line stay whole."""
        rest = " " * len(lead) if indent is None else indent
        if self.width is None:
            lines = [lead + text]
        else:
            lines = textwrap.wrap(
                text,
                self.width,
                initial_indent=lead,
                subsequent_indent=rest,
                break_long_words=False,
                break_on_hyphens=False,
            ) or [lead]
        if style is not None:
            lines[0] = self.paint(lead, style) + lines[0][len(lead) :]
        return lines
