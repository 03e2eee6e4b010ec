"""What fits where a reader sets limits: the gravest first, and always how many more there are."""

from collections.abc import Sequence

from kaudit.model.finding import Finding, Status
from kaudit.report.formatting import plural


def most_severe(findings: Sequence[Finding], limit: int) -> list[Finding]:
    """Return at most `limit` findings, new and grave ones before others, in their old order."""
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
