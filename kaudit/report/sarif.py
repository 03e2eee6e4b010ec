"""`--output-format sarif`: SARIF 2.1.0, one run. Logs are binary files: locations are bytes, partitions and producers."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

from kaudit import __version__
from kaudit.checks.check import HEADINGS, Check
from kaudit.checks.registry import CHECKS
from kaudit.model.finding import Finding, Severity, Status
from kaudit.model.result import NotAudited, ScanResult
from kaudit.report.console import visible
from kaudit.report.formatting import plural, producer_of, span
from kaudit.report.impact import with_impact
from kaudit.report.json_documents import pretty
from kaudit.report.known_bugs import with_known_bugs
from kaudit.report.locations import base_directory, location_text
from kaudit.report.most_severe import most_severe, omitted_text
from kaudit.report.render_options import RenderOptions

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT_KEY = "kauditFinding/v1"
"""Ours alone: GitHub recomputes the fingerprints it knows from lines of text, and a log has none."""
RESULTS_SHOWN = 25_000
"""GitHub refuses a run with more."""
_NOTIFICATIONS_SHOWN = 1000
_Object = dict[str, object]


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return the SARIF log."""
    return pretty(_log(result, options, region={}))


def render_scan_for_github(result: ScanResult, options: RenderOptions) -> str:
    """Return the same with line 1 in every region: GitHub's code scanning wants lines, even of binary files."""
    return pretty(_log(result, options, region={"startLine": 1}))


def _log(result: ScanResult, options: RenderOptions, region: Mapping[str, object]) -> _Object:
    findings = most_severe(result.findings, RESULTS_SHOWN)
    left_out = result.summary.omitted + len(result.findings) - len(findings)
    bases = {base: f"INPUT_{rank}" for rank, base in enumerate(_bases(findings), start=1)}
    rules = {code: rank for rank, code in enumerate(CHECKS)}
    run: _Object = {
        "tool": {
            "driver": {
                "name": "kaudit",
                "semanticVersion": __version__,
                "rules": [_rule(check, options) for check in CHECKS.values()],
            }
        },
        "invocations": [_invocation(result, options, left_out)],
        "results": [_result(finding, result, bases, rules, region) for finding in findings],
        "properties": {"incomplete": result.incomplete, "summary": result.summary.to_dict()},
    }
    if bases:
        run["originalUriBaseIds"] = {name: _base(base) for base, name in bases.items()}
    return {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}


def _rule(check: Check, options: RenderOptions) -> _Object:
    documentation = check.documentation()
    body = "\n\n".join(f"## {heading}\n{documentation[heading]}" for heading in HEADINGS)
    return {
        "id": check.code,
        "name": check.name,
        "shortDescription": {"text": f"{check.summary[0].upper()}{check.summary[1:]}."},
        "fullDescription": {"text": _text(" ".join(documentation[HEADINGS[0]].split()))},
        "help": {"text": _text(f"{documentation['What to do']}\n\nkaudit explain {check.code}"), "markdown": body},
        "defaultConfiguration": {"level": check.severity.value, "enabled": options.asked_for(check.code)},
        "properties": {"tags": ["kafka", check.family], "since": check.since},
    }


def _result(
    finding: Finding,
    result: ScanResult,
    bases: Mapping[str, str],
    rules: Mapping[str, int],
    region: Mapping[str, object],
) -> _Object:
    place = location_text(finding)
    where = f" ({place})" if place else ""
    text = with_known_bugs(with_impact(f"{finding.name}: {finding.message}{where}", finding.impact), finding.known_bugs)
    entry: _Object = {
        "ruleId": finding.code,
        "level": finding.severity.value,
        "kind": "fail",
        "message": {"text": _text(visible(text))},
        "locations": [_location(finding, finding.position, bases, region)],
        "partialFingerprints": {FINGERPRINT_KEY: finding.fingerprint},
        "properties": _properties(finding),
    }
    if finding.code in rules:
        entry["ruleIndex"] = rules[finding.code]
    steps = _steps(finding, bases, region)
    if steps:
        entry["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    if result.baseline is not None:
        entry["baselineState"] = "unchanged" if finding.status is Status.KNOWN else "new"
    if finding.status is not Status.NEW:
        reason = visible(finding.suppression or "in the baseline")
        entry["suppressions"] = [{"kind": "external", "status": "accepted", "justification": reason}]
    return entry


def _properties(finding: Finding) -> _Object:
    names = (
        "topic", "partition", "replica", "offset", "last_offset", "producer_id", "producer_epoch", "confidence", "status",
        "impact", "incident", "known_bugs", "next",
    )  # fmt: skip
    document = finding.to_dict()
    return {name: document[name] for name in names if document[name] not in (None, {})}


def _location(finding: Finding, position: object, bases: Mapping[str, str], region: Mapping[str, object]) -> _Object:
    location: _Object = {"logicalLocations": _logical(finding)}
    # GitHub refuses a whole upload for one result without a physical location.
    file = finding.file or (_directory(finding) if "startLine" in region else None)
    if file is not None:
        artifact: _Object = {"uri": quote(file, errors="surrogateescape")}
        base = base_directory(finding)
        if base is not None and base in bases:
            artifact["uriBaseId"] = bases[base]
        physical: _Object = {"artifactLocation": artifact}
        place = {**region, **({"byteOffset": position} if isinstance(position, int) and position >= 0 else {})}
        if place:
            physical["region"] = place
        location["physicalLocation"] = physical
    return location


def _directory(finding: Finding) -> str:
    """Return the partition's directory, for a finding about no single file."""
    return "log-directory" if finding.topic is None else f"{finding.topic}-{finding.partition}"


def _logical(finding: Finding) -> list[_Object]:
    if finding.topic is None:
        return [{"name": "log directory", "fullyQualifiedName": visible(finding.log_dir or "-"), "kind": "directory"}]
    partition = visible(f"{finding.topic}-{finding.partition}")
    places: list[_Object] = [{"name": partition, "fullyQualifiedName": partition, "kind": "partition"}]
    producer = producer_of(finding)
    if producer is not None:
        places.append({"name": producer, "fullyQualifiedName": f"{partition}/{producer}", "kind": "producer"})
    return places


def _steps(finding: Finding, bases: Mapping[str, str], region: Mapping[str, object]) -> list[_Object]:
    """Return the batches of the evidence in log order: what the producer did before, then, and after."""
    steps: list[_Object] = []
    for name in ("previous", "offending", "next"):
        batch = finding.evidence.get(name)
        if not isinstance(batch, Mapping):
            continue
        words = [f"{name}: offset {span(batch.get('offset'), batch.get('last_offset'))}"]
        if batch.get("base_sequence") not in (None, -1):
            words.append(f"sequence {span(batch.get('base_sequence'), batch.get('last_sequence'))}")
        if batch.get("producer_epoch") is not None:
            words.append(f"epoch {batch['producer_epoch']}")
        location = _location(finding, batch.get("position"), bases, region)
        location["message"] = {"text": _text(visible(", ".join(words)))}
        importance = "essential" if name == "offending" else "important"
        steps.append({"location": location, "importance": importance, "executionOrder": len(steps) + 1})
    return steps


def _invocation(result: ScanResult, options: RenderOptions, left_out: int) -> _Object:
    unreadable = any(item.unreadable for item in result.not_audited)
    invocation: _Object = {
        "executionSuccessful": not unreadable and not result.incomplete,
        "toolExecutionNotifications": _notifications(result, left_out),
    }
    if options.exit_code is not None:
        invocation["exitCode"] = options.exit_code
    if options.run is not None:
        invocation |= {"machine": str(options.run["host"]), "startTimeUtc": options.run["started_at"]}
    return invocation


def _notifications(result: ScanResult, left_out: int) -> list[_Object]:
    """Return what the results do not cover: unread files, unchecked aspects, findings beyond the limit."""
    notices = [_notice(Severity.WARNING, omitted_text(left_out))] if left_out else []
    if result.incomplete:
        notices.append(_notice(Severity.ERROR, "The audit is incomplete: the absence of findings proves nothing."))
    listed = sorted(result.not_audited, key=lambda item: not item.unreadable)
    notices += [_not_audited(item) for item in listed[:_NOTIFICATIONS_SHOWN]]
    if len(listed) > _NOTIFICATIONS_SHOWN:
        number = len(listed) - _NOTIFICATIONS_SHOWN
        notices.append(_notice(Severity.WARNING, f"{plural(number, 'more path')} not audited; json lists all."))
    return notices


def _not_audited(item: NotAudited) -> _Object:
    return _notice(Severity.ERROR if item.unreadable else Severity.NOTE, f"{item.path}: {item.reason}")


def _notice(level: Severity, text: str) -> _Object:
    return {"level": level.value, "message": {"text": _text(visible(text))}}


def _bases(findings: Sequence[Finding]) -> list[str]:
    return sorted({base for finding in findings if (base := base_directory(finding)) is not None})


def _base(directory: str) -> _Object:
    """Return the place a relative URI starts at; a relative directory says nothing on another host, so no URI."""
    described: _Object = {"description": {"text": _text(visible(directory))}}
    if "://" in directory:
        described["uri"] = directory.rstrip("/") + "/"
    elif PurePosixPath(directory).is_absolute():
        described["uri"] = f"file://{quote(directory.rstrip('/'), errors='surrogateescape')}/"
    return described


def _text(text: str) -> str:
    """Break what SARIF would take for a link in a message, and double what it would take for a placeholder."""
    return text.replace("](", "] (").replace("{", "{{").replace("}", "}}")
