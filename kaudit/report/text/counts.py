"""Findings counted: by check, and by topic and check, with what they cost."""

from collections.abc import Callable, Iterable, Sequence

from kaudit.model.finding import Finding
from kaudit.model.total_impact import total_impact
from kaudit.report.console import Console, Style, visible
from kaudit.report.text.formatting import SEVERITY_STYLE, plural
from kaudit.report.text.impact import impact_text

_ROWS = 20
_GAP = "  "
_COST = "cost"
_NARROW = 24
"""Columns a cost needs beside its row to be wrapped there."""


def check_counts(findings: Iterable[Finding], console: Console) -> list[str]:
    """Return a line for each check: how many findings, and what they cost together; the most frequent first."""
    groups = _grouped(findings, lambda finding: (finding.code, finding.name))
    rows = [(f"{len(found):,}", *place, _cost(found)) for place, found in groups]
    worst = [max(finding.severity for finding in found) for _, found in groups]
    lines = []
    for severity, (count, code, name, cost) in zip(worst, rows, strict=True):
        lead = _GAP.join([count.rjust(_width(rows, 0)), code, name.ljust(_width(rows, 2)), ""])
        first, *more = _row(lead, cost, console)
        lines += [first.replace(code, console.paint(code, SEVERITY_STYLE[severity]), 1), *more]
    return lines


def topic_counts(findings: Iterable[Finding], console: Console) -> list[str]:
    """Return a table of topics and checks, in order of their findings; at most as many rows as fit a screen."""
    groups = _grouped(findings, lambda finding: (visible(finding.topic or "-"), f"{finding.code} {finding.name}"))
    rows = [(*place, f"{len(found):,}", _cost(found)) for place, found in groups[:_ROWS]]
    headings = ("topic", "check", "findings", _COST)
    topic, check, number, _ = (max(len(heading), _width(rows, at)) for at, heading in enumerate(headings))
    lines = []
    for name, what, count, cost in (headings, *rows):
        lead = _GAP.join([name.ljust(topic), what.ljust(check), count.rjust(number), ""])
        lines += _row(lead, cost, console)
    lines[0] = console.paint(lines[0], Style.FAINT)
    if len(groups) > len(rows):
        lines.append(f"{plural(len(groups) - len(rows), 'more row')} (json lists all findings)")
    return lines


def _row(lead: str, cost: str, console: Console) -> list[str]:
    """Return a row with its cost beside it, or below where there is too little room."""
    if console.fits(len(lead) + min(len(cost), _NARROW)):
        return [line.rstrip() for line in console.wrap(cost, lead=lead)]
    return [lead.rstrip(), *(console.wrap(cost, lead="    ") if cost != _COST else ())]


def _grouped(
    findings: Iterable[Finding], key: Callable[[Finding], tuple[str, str]]
) -> list[tuple[tuple[str, str], list[Finding]]]:
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(key(finding), []).append(finding)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))


def _width(rows: Sequence[Sequence[str]], column: int) -> int:
    return max((len(row[column]) for row in rows), default=0)


def _cost(findings: Sequence[Finding]) -> str:
    return impact_text(total_impact(findings))
