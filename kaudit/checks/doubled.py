"""Leaves out what lines of logs alone say where a finding from the bytes says it already."""

from collections.abc import Iterator, Sequence

from kaudit.checks.registry import CHECKS
from kaudit.model.finding import Finding, Severity
from kaudit.model.logged_incidents import LoggedIncident


def without_doubled(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings without those of lines of logs alone that another finding, at least as severe, has as evidence."""
    lines: dict[tuple[object, ...], Severity] = {}
    for finding in findings:
        if not _of_lines(finding) and finding.evidence.log_events:
            for about in _lines_of(finding):
                lines[about] = max(lines.get(about, finding.severity), finding.severity)
    return [
        finding
        for finding in findings
        if not _of_lines(finding)
        or not any(lines[about] >= finding.severity for about in _lines_of(finding) if about in lines)
    ]


def _of_lines(finding: Finding) -> bool:
    return finding.code in CHECKS and CHECKS[finding.code].needs == (LoggedIncident,)


def _lines_of(finding: Finding) -> Iterator[tuple[object, ...]]:
    """Yield the lines that a finding shows, and its producer in its partition."""
    for event in finding.evidence.log_events:
        yield event.path, event.line
    if finding.producer_id is not None and finding.topic is not None:
        yield finding.topic, finding.partition, finding.producer_id
