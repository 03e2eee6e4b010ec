"""`--output-format sarif`: SARIF 2.1.0, one run. Logs are binary files: locations are bytes, partitions and producers."""

from collections.abc import Mapping
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from kaudit import __version__
from kaudit.checks.check import Check
from kaudit.checks.listed import HEADINGS
from kaudit.checks.registry import CHECKS
from kaudit.installation import information_uri
from kaudit.model.evidence_parts import BatchEvidence
from kaudit.model.finding import Finding
from kaudit.model.limits import SARIF_RESULTS
from kaudit.model.result import NotAudited, ScanResult
from kaudit.model.severity import Severity, Status
from kaudit.report.console import visible
from kaudit.report.json_documents import pretty_pieces
from kaudit.report.machine.locations import base_directory, in_repository, location_text, path_of, uri_of
from kaudit.report.render_options import Output, RenderOptions
from kaudit.report.text.finding_block import evidence_batches, with_known_bugs
from kaudit.report.text.formatting import omitted_text, plural, producer_of, span
from kaudit.results.costs import with_impact
from kaudit.results.selection import first_of_checks, most_severe
from kaudit.results.verdict import verdict_of
from kaudit.source.file_kinds import segment_base_offset

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT_KEY = "kauditFinding/v1"
"""A key of kaudit's own: GitHub recomputes the fingerprints it knows from lines of text, which a log does not have."""
RESULTS_SHOWN = SARIF_RESULTS
_NOTIFICATIONS_SHOWN = 1000
_DEPTH_OF_RESULTS = 3
"""The log, its runs, a run."""
_ROOT = "%SRCROOT%"
"""What SARIF's own examples and code hosts call the root of the repository."""
_Object = dict[str, object]


class _Frame(Struct, frozen=True):
    """What all locations of a run share. `bases` are names by directory, of directories outside the repository."""

    bases: Mapping[str, str]
    region: Mapping[str, object]
    repository: str | None


def render_scan(result: ScanResult, options: RenderOptions) -> Output:
    """Yield the SARIF log, one result at a time."""
    return _log(result, options, region={})


def render_scan_for_github(result: ScanResult, options: RenderOptions) -> Output:
    """Return the same with line 1 in every region: GitHub's code scanning wants lines, even of binary files."""
    return _log(result, options, region={"startLine": 1})


def _log(result: ScanResult, options: RenderOptions, region: Mapping[str, object]) -> Output:
    result = first_of_checks(result, options.findings_of_check)
    findings = most_severe(result.findings, RESULTS_SHOWN)
    left_out = result.summary.omitted + len(result.findings) - len(findings)
    outside = sorted({base for finding in findings if (base := _outside(finding, options.repository)) is not None})
    frame = _Frame({base: f"INPUT_{rank}" for rank, base in enumerate(outside, start=1)}, region, options.repository)
    rules = {code: rank for rank, code in enumerate(CHECKS)}
    run: _Object = {
        "tool": {
            "driver": {
                "name": "kaudit",
                "semanticVersion": __version__,
                "informationUri": information_uri(),
                "rules": [_rule(check, options) for check in CHECKS.values()],
            }
        },
        "invocations": [_invocation(result, options, left_out)],
        "results": [],
        "properties": {
            "incomplete": result.incomplete,
            "summary": result.summary.to_dict(),
            "verdict": verdict_of(result).to_dict(),
        },
    }
    bases: _Object = {_ROOT: {"description": {"text": "The root of the repository, else the working directory."}}}
    run["originalUriBaseIds"] = bases | {name: {"uri": _quoted_directory(base)} for base, name in frame.bases.items()}
    document = {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}
    results = (_result(finding, result, rules, frame) for finding in findings)
    return pretty_pieces(document, {"results": results}, depth=_DEPTH_OF_RESULTS)


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


def _result(finding: Finding, result: ScanResult, rules: Mapping[str, int], frame: _Frame) -> _Object:
    place = location_text(finding)
    where = f" ({place})" if place else ""
    text = with_known_bugs(with_impact(f"{finding.name}: {finding.message}{where}", finding.impact), finding.known_bugs)
    entry: _Object = {
        "ruleId": finding.code,
        "level": finding.severity.value,
        "kind": "fail",
        "message": {"text": _text(visible(text))},
        "locations": [_location(finding, finding.position, frame)],
        "partialFingerprints": {FINGERPRINT_KEY: finding.fingerprint},
        "properties": _properties(finding),
    }
    if finding.code in rules:
        entry["ruleIndex"] = rules[finding.code]
    steps = _steps(finding, frame)
    if steps:
        entry["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    related = [{"id": number, **place} for number, place in enumerate(_related(finding, frame), start=1)]
    if related:
        entry["relatedLocations"] = related
    if result.baseline is not None:
        entry["baselineState"] = "unchanged" if finding.status is Status.KNOWN else "new"
    if finding.status is not Status.NEW:
        reason = visible(finding.suppression or "in the baseline")
        entry["suppressions"] = [{"kind": "external", "status": "accepted", "justification": reason}]
    return entry


SARIF_OMITS: Mapping[str, str] = {
    "code": "ruleId",
    "name": "the message and the rule",
    "severity": "level",
    "message": "message",
    "log_dir": "locations",
    "file": "locations",
    "segment": "locations",
    "position": "locations",
    "anchor": "partialFingerprints",
    "evidence": "codeFlows and relatedLocations have its batches",
    "explanations": "too long for a code host: json has them",
    "absent": "what is null is left out",
    "suppression": "suppressions",
}
"""Fields of Finding that a result's properties do not have, and where SARIF has them instead or why it has not."""
PROPERTIES = tuple(name for name in Finding.__struct_fields__ if name not in SARIF_OMITS)


def _properties(finding: Finding) -> _Object:
    document = finding.to_dict()
    return {name: document[name] for name in PROPERTIES if document[name] not in (None, {})}


def _location(finding: Finding, position: object, frame: _Frame) -> _Object:
    location: _Object = {"logicalLocations": _logical(finding)}
    # GitHub refuses a whole upload for one result without a physical location.
    artifact = _artifact(finding, frame) if finding.file is not None or "startLine" in frame.region else None
    if artifact is not None:
        physical: _Object = {"artifactLocation": artifact}
        place = {**frame.region, **({"byteOffset": position} if isinstance(position, int) and position >= 0 else {})}
        if place:
            physical["region"] = place
        location["physicalLocation"] = physical
    return location


def _artifact(finding: Finding, frame: _Frame) -> _Object:
    """Return where the file is: in the repository if it lies there, else in an input."""
    path = path_of(finding)
    inside = None if path is None else in_repository(path, frame.repository)
    if inside is not None:
        return {"uri": _quoted(inside), "uriBaseId": _ROOT}
    if finding.file is None:
        return {"uri": uri_of(path) if path is not None else "log-directory"}
    base = frame.bases.get(base_directory(finding) or "")
    return {"uri": _quoted(finding.file), **({} if base is None else {"uriBaseId": base})}


def _outside(finding: Finding, repository: str | None) -> str | None:
    """Return the directory that a file outside the repository is relative to."""
    path = path_of(finding)
    return None if path is None or in_repository(path, repository) is not None else base_directory(finding)


def _quoted_directory(path: str) -> str:
    uri = uri_of(path)
    return uri if uri.endswith("/") else f"{uri}/"


def _quoted(path: str) -> str:
    return quote(path, errors="surrogateescape")


def _logical(finding: Finding) -> list[_Object]:
    if finding.place is None:
        return [{"name": "log directory", "fullyQualifiedName": visible(finding.log_dir or "-"), "kind": "directory"}]
    partition = visible(finding.place)
    places: list[_Object] = [{"name": partition, "fullyQualifiedName": partition, "kind": "partition"}]
    producer = producer_of(finding)
    if producer is not None:
        places.append({"name": producer, "fullyQualifiedName": f"{partition}/{producer}", "kind": "producer"})
    return places


def _steps(finding: Finding, frame: _Frame) -> list[_Object]:
    """Return the batches of the evidence in log order: those before, at, and after the finding."""
    steps: list[_Object] = []
    for name, batch in evidence_batches(finding.evidence):
        importance = "essential" if name == "offending" else "important"
        step: _Object = {"location": _batch_location(finding, name, batch, frame), "importance": importance}
        steps.append({**step, "executionOrder": len(steps) + 1})
    return steps


def _batch_location(finding: Finding, name: str, batch: BatchEvidence, frame: _Frame) -> _Object:
    words = [f"{name}: offset {span(batch.offset, batch.last_offset)}"]
    if batch.base_sequence not in (None, -1):
        words.append(f"sequence {span(batch.base_sequence, batch.last_sequence)}")
    if batch.producer_epoch is not None:
        words.append(f"epoch {batch.producer_epoch}")
    location = _location(finding, batch.position, frame)
    if not _in_file(finding, batch):
        location.pop("physicalLocation", None)
    return {**location, "message": {"text": _text(visible(", ".join(words)))}}


def _in_file(finding: Finding, batch: BatchEvidence) -> bool:
    """Whether a batch lies in the finding's own segment: evidence has positions, and offsets order segments."""
    offset, position = batch.offset, batch.position
    if offset is None or position is None or finding.offset is None or finding.position is None:
        return False
    first = segment_base_offset((finding.file or "").rpartition("/")[2])
    return (first is None or offset >= first) and (offset > finding.offset) is (position > finding.position)


def _related(finding: Finding, frame: _Frame) -> list[_Object]:
    """Return the other places a finding is about: the batch before, the segment of a side file, the copies on other replicas."""
    places: list[_Object] = []
    previous, copies = finding.evidence.previous, finding.evidence.copies
    if previous is not None:
        places.append(_batch_location(finding, "previous", previous, frame))
    if finding.file is not None and finding.segment is not None and not finding.file.endswith(finding.segment):
        beside = f"{finding.file.rpartition('/')[0]}/{finding.segment.rpartition('/')[2]}".lstrip("/")
        location = _location(replace(finding, file=beside), None, frame)
        places.append({**location, "message": {"text": "the segment the file belongs to"}})
    for name, batch in ({} if copies is None else copies).items():
        if name != finding.replica:
            text = f"the copy of {name}: offset {span(batch.offset, batch.last_offset)}"
            places.append({"logicalLocations": _logical(finding), "message": {"text": _text(visible(text))}})
    return places


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
    """Return the verdict, and a notice for each thing the results leave out: unread files, unchecked aspects, findings above the limit."""
    verdict = verdict_of(result)
    notices = [_notice(verdict.severity or Severity.NOTE, line) for line in verdict.lines]
    notices += [_notice(Severity.WARNING, omitted_text(left_out))] if left_out else []
    if result.incomplete:
        notices.append(_notice(Severity.ERROR, "The audit is incomplete: the absence of findings proves nothing."))
    listed = sorted(result.not_audited, key=lambda item: not item.unreadable)
    notices += [_not_audited(item) for item in listed[:_NOTIFICATIONS_SHOWN]]
    if len(listed) > _NOTIFICATIONS_SHOWN:
        number = len(listed) - _NOTIFICATIONS_SHOWN
        notices.append(_notice(Severity.WARNING, f"{plural(number, 'more path')} not checked; json lists all."))
    return notices


def _not_audited(item: NotAudited) -> _Object:
    return _notice(Severity.ERROR if item.unreadable else Severity.NOTE, f"{item.path}: {item.reason}")


def _notice(level: Severity, text: str) -> _Object:
    return {"level": level.value, "message": {"text": _text(visible(text))}}


def _text(text: str) -> str:
    """Escape text that SARIF would read as a link or as a placeholder."""
    return text.replace("](", "] (").replace("{", "{{").replace("}", "}}")
