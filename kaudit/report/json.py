"""`--output-format json`: one document (report/schemas/json.schema.json), an item of its lists at a time.

As objects a hundred thousand findings take gigabytes.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from kaudit.model.producer_listing import ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.json_documents import (
    diff_document,
    found,
    pretty_pieces,
    producers_document,
    scan_document,
    timeline_document,
)
from kaudit.report.render_options import RenderOptions


def render_scan(result: ScanResult, options: RenderOptions) -> Iterator[str]:
    """Yield the kaudit.scan/1 document."""
    yield from pretty_pieces(scan_document(replace(result, findings=()), options), found(result))


def render_timeline(result: TimelineResult, options: RenderOptions) -> Iterator[str]:
    """Yield the kaudit.timeline/1 document."""
    bare = replace(result, scan=replace(result.scan, findings=()), timelines=())
    timelines = (timeline.to_dict() for timeline in result.timelines)
    yield from pretty_pieces(timeline_document(bare, options), {**found(result.scan), "timelines": timelines})


def render_producers(result: ProducersResult, options: RenderOptions) -> Iterator[str]:
    """Yield the kaudit.producers/1 document."""
    bare = replace(result, scan=replace(result.scan, findings=()))
    producers = (producer.to_dict() for producer in result.producers)
    yield from pretty_pieces(producers_document(bare, options), {**found(result.scan), "producers": producers})


def render_diff(result: DiffResult, options: RenderOptions) -> Iterator[str]:
    """Yield the kaudit.diff/1 document."""
    bare = replace(result, scan=replace(result.scan, findings=()))
    yield from pretty_pieces(diff_document(bare, options), found(result.scan))
