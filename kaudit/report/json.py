"""`--output-format json`: one document (CONTRACT.md section 2)."""

from collections.abc import Iterator

from kaudit.model.producer_listing import ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.document import (
    diff_document,
    pretty,
    pretty_pieces,
    producers_document,
    scan_document,
    timeline_document,
)
from kaudit.report.view import View


def render_scan(result: ScanResult, view: View) -> str:
    """Return the kaudit.scan/1 document."""
    return pretty(scan_document(result, view))


def render_timeline(result: TimelineResult, view: View) -> str:
    """Return the kaudit.timeline/1 document."""
    return pretty(timeline_document(result, view))


def render_producers(result: ProducersResult, view: View) -> Iterator[str]:
    """Yield the kaudit.producers/1 document, a producer at a time."""
    yield from pretty_pieces(
        producers_document(result, view), "producers", (producer.to_dict() for producer in result.producers)
    )


def render_diff(result: DiffResult, view: View) -> str:
    """Return the kaudit.diff/1 document."""
    return pretty(diff_document(result, view))
