"""Checks and known bugs for people and programs: `kaudit explain`, `kaudit checks` and `kaudit bugs`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kaudit.bugs import bug as bugs
from kaudit.bugs.bug import Bug
from kaudit.checks import check as checks
from kaudit.checks.check import Check
from kaudit.model.json_record import json_value
from kaudit.report.console import Console, Style
from kaudit.report.json_documents import pretty
from kaudit.report.text.formatting import SEVERITY_STYLE

_READABLE = 100
"""Most columns of a page, in a pipe too: wider prose is hard to read."""
_INDENT = "  "
_BULLET = re.compile(r"(?P<sign>[-*]|\d+\.) (?P<text>.*)")


def check_page(check: Check, console: Console) -> str:
    """Return one check's page for a terminal."""
    documentation = check.documentation()
    return _page(
        f"{check.code} {check.name}",
        (f"{severity_text(check)} (since {check.since})", SEVERITY_STYLE[check.severity]),
        [(heading, documentation[heading]) for heading in checks.HEADINGS],
        console,
    )


def bug_page(bug: Bug, console: Console) -> str:
    """Return one bug's page for a terminal."""
    documentation = bug.documentation()
    parts = [(heading, documentation[heading]) for heading in bugs.HEADINGS]
    return _page(f"{bug.id} {bug.title}", (versions_text(bug), None), parts, console)


def _page(title: str, subtitle: tuple[str, Style | None], parts: Iterable[tuple[str, str]], console: Console) -> str:
    """Return a page: a title, a line below it in its style, and the text of each part under its heading."""
    console = replace(console, width=min(console.width or _READABLE, _READABLE))
    text, style = subtitle
    below = console.wrap(text)
    lines = [console.paint(title, Style.STRONG), *(console.paint(line, style) if style else line for line in below)]
    for heading, body in parts:
        lines += ["", console.paint(heading, Style.STRONG), *markdown_lines(body, console)]
    return "".join(f"{line}\n" for line in lines)


def check_document(check: Check) -> str:
    """Return one check's page as JSON."""
    return pretty({"schema": "kaudit.check/1", **_check(check), "documentation": dict(check.documentation())})


def bug_document(bug: Bug) -> str:
    """Return one bug's page as JSON."""
    return pretty({"schema": "kaudit.bug/1", **_bug(bug), "documentation": dict(bug.documentation())})


def check_list(listed: Iterable[Check], console: Console) -> str:
    """Return checks, one a line, by family."""
    lines: list[str] = []
    listed = list(listed)
    width = max(len(check.name) for check in listed)
    for check in listed:
        severity = check.severity.value
        rows = console.wrap(check.summary, lead=f"{check.code}  {check.name:<{width}}  {severity:<7}  ")
        rows[0] = rows[0].replace(f"  {severity}", f"  {console.paint(severity, SEVERITY_STYLE[check.severity])}", 1)
        lines += rows
    more = "kaudit explain CODE describes a check: what it means, its harmless causes and what to do."
    lines += ["", *console.wrap(more)]
    return "".join(f"{line}\n" for line in lines)


def bug_list(listed: Sequence[Bug], console: Console) -> str:
    """Return bugs, one a line: ticket, affected versions, title."""
    lines: list[str] = []
    width = max((len(bug.id) for bug in listed), default=0)
    for bug in listed:
        lines += console.wrap(f"{bug.title} ({versions_text(bug)})", lead=f"{bug.id:<{width}}  ")
    lines += ["", *console.wrap("kaudit explain TICKET describes a bug: how to recognise it and what to do.")]
    return "".join(f"{line}\n" for line in lines)


def check_list_document(listed: Iterable[Check]) -> str:
    """Return checks as JSON."""
    return pretty({"schema": "kaudit.checks/1", "checks": list(map(_check, listed))})


def bug_list_document(listed: Iterable[Bug]) -> str:
    """Return bugs as JSON."""
    return pretty({"schema": "kaudit.bugs/1", "bugs": list(map(_bug, listed))})


def severity_text(check: Check) -> str:
    """Return `error; warning in the last segment`."""
    return check.severity.value + (f"; {check.severity_note}" if check.severity_note else "")


def versions_text(bug: Bug) -> str:
    """Return `broker 0.11.0.0 to 3.5.2; fixed in 3.6.0 by KIP-890`."""
    return f"{bug.affected_text}; {f'fixed in {bug.fixed_text}' if bug.fixed_in else 'no fix known'}"


def _check(check: Check) -> Mapping[str, object]:
    names = ("code", "name", "severity", "severity_note", "summary", "since")
    return {name: json_value(getattr(check, name)) for name in names}


def _bug(bug: Bug) -> Mapping[str, object]:
    return {
        "id": bug.id,
        "title": bug.title,
        "summary": bug.summary,
        "program": bug.program.value,
        "affected": [{"first": versions.first, "last": versions.last} for versions in bug.affected],
        "fixed_in": list(bug.fixed_in),
        "fix": bug.fix or None,
        "confidence": bug.confidence.value,
        "codes": sorted(bug.codes),
        "traits": [{"text": trait.text, "optional": trait.optional} for trait in bug.traits],
        "sources": list(bug.sources),
    }


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
        # Backticks would be noise: a terminal shows everything in one typeface.
        yield from console.wrap(" ".join(paragraph).replace("`", ""), lead=lead)
    paragraph.clear()
