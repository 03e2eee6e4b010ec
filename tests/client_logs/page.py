"""Writes which messages are recognised: python -m tests.client_logs.page docs/log-messages.md."""

import sys
from collections.abc import Iterator
from pathlib import Path

from kaudit.broker.releases.version import Version
from kaudit.formats.application_log.patterns import PROGRAMS, Pattern, read_patterns
from tests.client_logs.layouts import LAYOUTS, other_events
from tests.client_logs.recorded_messages import recorded_releases

_BEGIN = "<!-- messages: written by python -m tests.client_logs.page docs/log-messages.md -->\n"
_END = "<!-- end of messages -->"


def patterns() -> Iterator[Pattern]:
    """Yield the patterns of all programs."""
    for programs in PROGRAMS.values():
        for program in programs:
            yield from read_patterns(program)


def tables() -> str:
    """Return a table for each program."""
    return "\n".join(_table(program) for programs in PROGRAMS.values() for program in programs)


def _table(program: str) -> str:
    layouts = LAYOUTS[program]
    rows = "\n".join(_row(pattern) for pattern in sorted(read_patterns(program), key=lambda pattern: pattern.event))
    return (
        f"### {program}\nLayouts: {', '.join(layouts)}.\n\n"
        f"| event | message | since | until | recorded from | layouts | source |\n|---|---|---|---|---|---|---|\n{rows}\n"
    )


def _row(pattern: Pattern) -> str:
    message = pattern.text.strip().replace("|", "\\|")
    releases = sorted(recorded_releases().get((pattern.program, pattern.id), ()), key=Version.parse)
    recorded = ", ".join((releases[0], releases[-1])[: len(releases)]) if releases else "not recorded"
    others = other_events(pattern.program).get(pattern.id, ())
    fit = [layout for layout in LAYOUTS[pattern.program] if layout not in others]
    known = "all" if len(fit) == len(LAYOUTS[pattern.program]) else ", ".join(fit)
    return f"| {pattern.event} | `{message}` | {pattern.since or ''} | {pattern.until or ''} | {recorded} | {known} | {pattern.source} |"


def with_tables(page: str) -> str:
    """Return the page with the tables as they are now."""
    before, mark, rest = page.partition(_BEGIN)
    if not mark:
        raise ValueError("not the page of these tables: docs/log-messages.md is")
    return before + _BEGIN + tables() + _END + rest.partition(_END)[2]


if __name__ == "__main__":
    PATH = Path(sys.argv[1])
    PATH.write_text(with_tables(PATH.read_text(encoding="utf-8")), encoding="utf-8")
