"""`--output-format junit`: a suite per topic; in it a case per partition and check with findings, and one per healthy partition.

A case fails when its findings make the exit code 1; other findings go into its output.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from kaudit.checks.registry import CHECKS
from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped
from kaudit.model.result import NotAudited, ScanResult
from kaudit.report.console import Console, visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.finding_block import finding_lines
from kaudit.report.text.formatting import omitted_text, plural

FINDINGS_PER_CASE = 100
_COUNTS = {"failures": "failure", "errors": "error"}
"""Counts that Jenkins' schema allows on the outermost element; a suite also counts skipped cases."""
HEALTHY_CASES = 1000
EVIDENCE_CASES = 1000
_Place = tuple[str, int, str]
_NO_PARTITION: _Place = ("", -1, "")


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return the JUnit XML."""
    by_place = {place: list(found) for place, found in groupby(result.findings, _place)}
    read = [(part.topic, part.partition, part.replica) for part in result.partitions]
    healthy = [place for place in read if place not in by_place]
    several = len({place[:2] for place in read}) < len(read)
    root = ET.Element("testsuites", name="kaudit")
    for topic, places in groupby(sorted({*by_place, *healthy[:HEALTHY_CASES]}), itemgetter(0)):
        suite = ET.SubElement(root, "testsuite", name=visible(topic) or "log directory")
        for place in places:
            _partition(suite, _name(place, with_replica=several), by_place.get(place, []), options)
    if len(healthy) > HEALTHY_CASES:
        number = len(healthy) - HEALTHY_CASES
        rest = ET.SubElement(root, "testsuite", name="more partitions")
        ET.SubElement(rest, "testcase", classname="kaudit", name=f"{plural(number, 'more partition')} without findings")
    _evidence(root, result, options)
    _count(root)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _place(finding: Finding) -> _Place:
    if finding.topic is None or finding.partition is None:
        return _NO_PARTITION
    return finding.topic, finding.partition, finding.replica or ""


def _name(place: _Place, *, with_replica: bool) -> str:
    if place == _NO_PARTITION:
        return "log directory"
    topic, partition, replica = place
    return visible(f"{topic}-{partition}" + (f" on {replica}" if with_replica and replica else ""))


def _partition(suite: ET.Element, name: str, findings: Sequence[Finding], options: RenderOptions) -> None:
    """Add a case for each check that found something in a partition, else one that passes."""
    if not findings:
        ET.SubElement(suite, "testcase", classname=f"kaudit.{name}", name="no findings")
    by_code = grouped((finding.code, finding) for finding in findings)
    for code in sorted(by_code):
        case = ET.SubElement(suite, "testcase", classname=f"kaudit.{name}", name=f"{code} {by_code[code][0].name}")
        _outcome(case, by_code[code], options)


def _outcome(case: ET.Element, findings: Sequence[Finding], options: RenderOptions) -> None:
    failing = [finding for finding in findings if options.fails(finding)]
    others = [finding for finding in findings if not options.fails(finding)]
    if failing:
        message = visible(failing[0].message) + (f" (and {len(failing) - 1} more)" if len(failing) > 1 else "")
        failure = ET.SubElement(case, "failure", type=failing[0].severity.value, message=message)
        failure.text = _body(failing)
    if others:
        ET.SubElement(case, "system-out").text = _body(others)


def _body(findings: Sequence[Finding]) -> str:
    lines: list[str] = []
    for finding in findings[:FINDINGS_PER_CASE]:
        lines += ["", *finding_lines(finding, Console(), many_inputs=True)]
        status = finding.status.value + (f": {visible(finding.suppression)}" if finding.suppression else "")
        lines.append(f"  fingerprint {finding.fingerprint}, {status}")
    rest = omitted_text(len(findings) - FINDINGS_PER_CASE) if len(findings) > FINDINGS_PER_CASE else ""
    return "\n".join([*lines, "", *filter(None, [rest])])


def _evidence(root: ET.Element, result: ScanResult, options: RenderOptions) -> None:
    """Add the suite about the audit itself: there is always at least this one case."""
    suite = ET.SubElement(root, "testsuite", name="evidence")
    whole = ET.SubElement(suite, "testcase", classname="kaudit.evidence", name="the audit is complete")
    if result.incomplete:
        message = "the audit is incomplete: the absence of findings proves nothing"
        ET.SubElement(whole, "error", type="incomplete", message=message)
    if result.summary.omitted:
        ET.SubElement(whole, "system-out").text = omitted_text(result.summary.omitted)
    if options.codes is not None and (left_out := [code for code in CHECKS if code not in options.codes]):
        case = ET.SubElement(
            suite, "testcase", classname="kaudit.evidence", name=plural(len(left_out), "check") + " not selected"
        )
        ET.SubElement(case, "skipped", message=", ".join(left_out))
    _not_audited(suite, sorted(result.not_audited, key=lambda item: not item.unreadable))


def _not_audited(suite: ET.Element, items: Sequence[NotAudited]) -> None:
    for item in items[:EVIDENCE_CASES]:
        case = ET.SubElement(suite, "testcase", classname="kaudit.evidence", name=visible(item.path))
        if item.unreadable:
            ET.SubElement(case, "error", type="unreadable", message=visible(item.reason))
        else:
            ET.SubElement(case, "skipped", message=visible(item.reason))
    if len(items) > EVIDENCE_CASES:
        number = len(items) - EVIDENCE_CASES
        name = f"{plural(number, 'more path')} not checked"
        case = ET.SubElement(suite, "testcase", classname="kaudit.evidence", name=name)
        ET.SubElement(case, "skipped", message="json lists all")


def _count(root: ET.Element) -> None:
    """Write the totals JUnit readers show without counting."""
    suites = root.findall("testsuite")
    for suite in suites:
        _set_counts(suite, [suite], {**_COUNTS, "skipped": "skipped"})
    _set_counts(root, suites, _COUNTS)


def _set_counts(element: ET.Element, suites: Iterable[ET.Element], counts: Mapping[str, str]) -> None:
    cases = [case for suite in suites for case in suite.findall("testcase")]
    element.set("tests", str(len(cases)))
    for plural_name, child in counts.items():
        element.set(plural_name, str(sum(case.find(child) is not None for case in cases)))
