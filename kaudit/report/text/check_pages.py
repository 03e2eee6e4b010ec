"""The checks themselves as reports: `kaudit explain` and `kaudit checks`."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kaudit.checks.check import HEADINGS, Check
from kaudit.model.json_record import json_value
from kaudit.report.console import Console, Style
from kaudit.report.json_documents import pretty
from kaudit.report.text.formatting import SEVERITY_STYLE
from kaudit.report.text.terminal_markdown import markdown_lines

_READABLE = 100


def page_text(check: Check, console: Console) -> str:
    """Return one check's page for a terminal."""
    # Prose wider than this is hard to read; a pipe gets the same, there is nothing to cut short here.
    console = replace(console, width=min(console.width or _READABLE, _READABLE))
    title = console.paint(f"{check.code} {check.name}", Style.STRONG)
    severity = f"{severity_text(check)} (since {check.since})"
    lines = [title, *(console.paint(line, SEVERITY_STYLE[check.severity]) for line in console.wrap(severity))]
    documentation = check.documentation()
    for heading in HEADINGS:
        lines += ["", console.paint(heading, Style.STRONG), *markdown_lines(documentation[heading], console)]
    return "".join(f"{line}\n" for line in lines)


def page_document(check: Check) -> str:
    """Return one check's page as JSON."""
    documentation = dict(check.documentation())
    return pretty({"schema": "kaudit.check/1", **_facts(check), "documentation": documentation})


def list_text(checks: Iterable[Check], console: Console) -> str:
    """Return all checks, one a line, by family."""
    lines: list[str] = []
    checks = list(checks)
    width = max(len(check.name) for check in checks)
    for check in checks:
        severity = check.severity.value
        rows = console.wrap(check.summary, lead=f"{check.code}  {check.name:<{width}}  {severity:<7}  ")
        rows[0] = rows[0].replace(f"  {severity}", f"  {console.paint(severity, SEVERITY_STYLE[check.severity])}", 1)
        lines += rows
    more = "kaudit explain CODE describes a check: what it means, its harmless causes and what to do."
    lines += ["", *console.wrap(more)]
    return "".join(f"{line}\n" for line in lines)


def list_document(checks: Iterable[Check]) -> str:
    """Return all checks as JSON."""
    return pretty({"schema": "kaudit.checks/1", "checks": [_facts(check) for check in checks]})


def severity_text(check: Check) -> str:
    """Return `error; warning in the last segment`."""
    return check.severity.value + (f"; {check.severity_note}" if check.severity_note else "")


def _facts(check: Check) -> Mapping[str, object]:
    names = ("code", "name", "severity", "severity_note", "summary", "since")
    return {name: json_value(getattr(check, name)) for name in names}
