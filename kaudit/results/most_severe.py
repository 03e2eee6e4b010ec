"""Findings within a reader's limits: the most severe are kept, and the number of the others is reported."""

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from kaudit.model.finding import Finding, Severity, Status
from kaudit.model.result import ScanResult


def most_severe(findings: Sequence[Finding], limit: int) -> list[Finding]:
    """Return at most `limit` findings, new and severe ones before others, in their original order."""

    def weight(index: int) -> tuple[bool, int, int]:
        finding = findings[index]
        return finding.status is not Status.NEW, -finding.severity.rank, index

    kept = sorted(sorted(range(len(findings)), key=weight)[:limit])
    return [findings[index] for index in kept]


def first_of_checks(result: ScanResult, limit: int | None) -> ScanResult:
    """Return the result with at most `limit` findings of each check, severity and status in a topic partition, the first.

    The summary counts all. None is no limit.
    """
    if limit is None:
        return result
    counts: Counter[tuple[str, Severity, Status, str | None, int | None]] = Counter()
    kept = []
    for finding in result.findings:
        key = finding.code, finding.severity, finding.status, finding.topic, finding.partition
        counts[key] += 1
        if counts[key] <= limit:
            kept.append(finding)
    omitted = result.summary.omitted + len(result.findings) - len(kept)
    return replace(result, findings=kept, summary=replace(result.summary, omitted=omitted))
