"""`--output-format json`: one document."""

from collections.abc import Iterator

from kaudit.model.producer_listing import ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.json_documents import (
    diff_document,
    pretty,
    pretty_pieces,
    producers_document,
    scan_document,
    timeline_document,
)
from kaudit.report.render_options import RenderOptions


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return the kaudit.scan/1 document."""
    return pretty(scan_document(result, options))


def render_timeline(result: TimelineResult, options: RenderOptions) -> str:
    """Return the kaudit.timeline/1 document."""
    return pretty(timeline_document(result, options))


def render_producers(result: ProducersResult, options: RenderOptions) -> Iterator[str]:
    """Yield the kaudit.producers/1 document, a producer at a time."""
    yield from pretty_pieces(
        producers_document(result, options), "producers", (producer.to_dict() for producer in result.producers)
    )


def render_diff(result: DiffResult, options: RenderOptions) -> str:
    """Return the kaudit.diff/1 document."""
    return pretty(diff_document(result, options))
