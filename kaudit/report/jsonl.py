"""`--output-format jsonl`: one finding (or timeline) a line, the summary last."""

from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.document import header, line
from kaudit.report.view import View


def render_scan(result: ScanResult, view: View) -> str:
    """Return one line per finding and the summary."""
    findings = [line({"type": "finding", **finding.to_dict()}) for finding in result.findings]
    return "".join([*findings, line({"type": "summary", **header(result, "kaudit.scan/1", view)})])


def render_timeline(result: TimelineResult, view: View) -> str:
    """Return one line per timeline, one per finding, and the summary."""
    timelines = [line({"type": "timeline", **timeline.to_dict()}) for timeline in result.timelines]
    findings = [line({"type": "finding", **finding.to_dict()}) for finding in result.scan.findings]
    summary = line({"type": "summary", **header(result.scan, "kaudit.timeline/1", view)})
    return "".join([*timelines, *findings, summary])
