"""Findings within a reader's limits: the most severe are kept, and the number of the others is reported."""

from collections.abc import Sequence

from kaudit.model.finding import Finding, Status
from kaudit.report.formatting import plural


def most_severe(findings: Sequence[Finding], limit: int) -> list[Finding]:
    """Return at most `limit` findings, new and severe ones before others, in their original order."""
    if len(findings) <= limit:
        return list(findings)

    def weight(index: int) -> tuple[bool, int, int]:
        finding = findings[index]
        return finding.status is not Status.NEW, -finding.severity.rank, index

    kept = sorted(sorted(range(len(findings)), key=weight)[:limit])
    return [findings[index] for index in kept]


def omitted_text(number: int) -> str:
    """Return `3 more findings, not listed here`, or nothing where nothing is left out."""
    return f"{plural(number, 'more finding', 'more findings')}, not listed here" if number else ""
