"""The catalogue of known bugs as reports: `kaudit explain TICKET` and `kaudit bugs`."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from kaudit.bugs.bug import HEADINGS, Bug
from kaudit.report.console import Console, Style
from kaudit.report.json_documents import pretty
from kaudit.report.text.terminal_markdown import markdown_lines

_READABLE = 100


def page_text(bug: Bug, console: Console) -> str:
    """Return one bug's page for a terminal."""
    # as wide as a check's page: beyond that prose is hard to read
    console = replace(console, width=min(console.width or _READABLE, _READABLE))
    lines = [console.paint(f"{bug.id} {bug.title}", Style.STRONG), *console.wrap(versions_text(bug))]
    documentation = bug.documentation()
    for heading in HEADINGS:
        lines += ["", console.paint(heading, Style.STRONG), *markdown_lines(documentation[heading], console)]
    return "".join(f"{line}\n" for line in lines)


def page_document(bug: Bug) -> str:
    """Return one bug's page as JSON."""
    return pretty({"schema": "kaudit.bug/1", **_facts(bug), "documentation": dict(bug.documentation())})


def list_text(bugs: Sequence[Bug], console: Console) -> str:
    """Return all bugs, one a line: ticket, affected versions, title."""
    lines: list[str] = []
    width = max((len(bug.id) for bug in bugs), default=0)
    for bug in bugs:
        lines += console.wrap(f"{bug.title} ({versions_text(bug)})", lead=f"{bug.id:<{width}}  ")
    lines += ["", *console.wrap("kaudit explain TICKET describes a bug: how to recognise it and what to do.")]
    return "".join(f"{line}\n" for line in lines)


def list_document(bugs: Iterable[Bug]) -> str:
    """Return all bugs as JSON."""
    return pretty({"schema": "kaudit.bugs/1", "bugs": [_facts(bug) for bug in bugs]})


def versions_text(bug: Bug) -> str:
    """Return `broker 0.11.0.0 to 3.5.2; fixed in 3.6.0 by KIP-890`."""
    return f"{bug.affected_text}; {f'fixed in {bug.fixed_text}' if bug.fixed_in else 'no fix known'}"


def _facts(bug: Bug) -> Mapping[str, object]:
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
