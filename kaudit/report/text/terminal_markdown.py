"""The Markdown of the checks' pages on a terminal: paragraphs, lists, code, comments. No more is used there."""

import re
from collections.abc import Iterator

from kaudit.report.console import Console, Style

_INDENT = "  "
_BULLET = re.compile(r"(?P<sign>[-*]|\d+\.) (?P<text>.*)")


def markdown_lines(text: str, console: Console) -> Iterator[str]:
    """Yield the lines of `text` for the terminal; code keeps its lines, prose is wrapped."""
    paragraph: list[str] = []
    lead = _INDENT
    in_code = False
    for line in text.splitlines():
        bullet = _BULLET.match(line)
        if line.startswith("```"):
            yield from _flush(paragraph, lead, console)
            lead, in_code = _INDENT, not in_code
        elif in_code:
            yield console.paint(f"{_INDENT}{_INDENT}{line}".rstrip(), Style.STRONG)
        elif not line.strip():
            yield from _flush(paragraph, lead, console)
            lead = _INDENT
            yield ""
        elif bullet is not None:
            yield from _flush(paragraph, lead, console)
            lead = f"{_INDENT}{bullet['sign']} "
            paragraph.append(bullet["text"])
        elif not line.startswith("<!--"):
            paragraph.append(line.strip())
    yield from _flush(paragraph, lead, console)


def _flush(paragraph: list[str], lead: str, console: Console) -> Iterator[str]:
    if paragraph:
        # Backticks would be noise: on a terminal everything is in one typeface anyway.
        yield from console.wrap(" ".join(paragraph).replace("`", ""), lead=lead)
    paragraph.clear()
