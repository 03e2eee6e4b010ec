"""`--output-format json`: one document (CONTRACT.md section 2)."""

from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.document import pretty, scan_document, timeline_document
from kaudit.report.view import View


def render_scan(result: ScanResult, view: View) -> str:
    """Return the kaudit.scan/1 document."""
    return pretty(scan_document(result, view))


def render_timeline(result: TimelineResult, view: View) -> str:
    """Return the kaudit.timeline/1 document."""
    return pretty(timeline_document(result, view))
