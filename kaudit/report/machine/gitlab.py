"""`--output-format gitlab`: GitLab's code quality report, one JSON array."""

import hashlib
import json
from collections.abc import Iterable

from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped
from kaudit.model.result import NotAudited, ScanResult
from kaudit.model.severity import Severity, Status
from kaudit.report.console import visible
from kaudit.report.json_documents import no_commands
from kaudit.report.machine.locations import location_text, shown_path
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.formatting import omitted_text, plural
from kaudit.results.costs import with_impact
from kaudit.results.selection import most_severe

ISSUES_SHOWN = 10_000
_UNREAD_SHOWN = 100
_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.NOTE: "info"}
_Issue = dict[str, object]


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return the array. Findings in a baseline are left out: GitLab has no way to mark them."""
    new = [finding for finding in result.findings if finding.status is Status.NEW]
    listed = most_severe(new, ISSUES_SHOWN)
    issues = _without_doubles(listed, options.repository)
    left_out = result.summary.omitted + len(new) - len(listed)
    if left_out:
        issues.append(_about_the_audit("kaudit-limit", _first_input(result), omitted_text(left_out), "info"))
    issues += _unread(result)
    return no_commands(json.dumps(issues, sort_keys=True, indent=2)) + "\n"


def _without_doubles(findings: Iterable[Finding], repository: str | None) -> list[_Issue]:
    """Return one issue per fingerprint, which GitLab wants unique: replicas of a partition share their findings."""
    groups = grouped((finding.fingerprint, finding) for finding in findings)
    return [_issue(group, repository) for group in groups.values()]


def _issue(group: list[Finding], repository: str | None) -> _Issue:
    first = group[0]
    place = location_text(first)
    text = f"{first.code} {first.name}: {first.message}" + (f" ({place})" if place else "")
    if len(group) > 1:
        text += f", also in {plural(len(group) - 1, 'other replica')}"
    text = with_impact(text, first.impact)
    path = shown_path(first, repository) or "-"
    return _issue_at(path, first.code, text, first.fingerprint, _SEVERITIES[first.severity])


def _unread(result: ScanResult) -> list[_Issue]:
    unread = [item for item in result.not_audited if item.unreadable]
    if result.incomplete and not unread:
        unread = list(result.not_audited)
    issues = [_incomplete(item) for item in unread[:_UNREAD_SHOWN]]
    if len(unread) > _UNREAD_SHOWN:
        text = f"{plural(len(unread) - _UNREAD_SHOWN, 'more path')} could not be audited"
        issues.append(_about_the_audit("kaudit-incomplete", _first_input(result), text, "major"))
    return issues


def _incomplete(item: NotAudited) -> _Issue:
    return _about_the_audit("kaudit-incomplete", item.path, f"the audit is incomplete: {item.reason}", "major")


def _about_the_audit(name: str, path: str, text: str, severity: str) -> _Issue:
    fingerprint = hashlib.sha256(f"{name}|{path}|{text}".encode(errors="surrogateescape")).hexdigest()[:16]
    return _issue_at(path, name, text, fingerprint, severity)


def _issue_at(path: str, name: str, text: str, fingerprint: str, severity: str) -> _Issue:
    return {
        "check_name": name,
        "description": visible(text),
        "fingerprint": fingerprint,
        "severity": severity,
        # A log has no lines, but GitLab shows no issue without one.
        "location": {"path": visible(path), "lines": {"begin": 1}},
    }


def _first_input(result: ScanResult) -> str:
    return result.inputs[0] if result.inputs else "-"
