"""`--output-format jsonl`: one finding (or timeline) a line, the summary last."""

from collections.abc import Iterator

from kaudit.model.producer_listing import ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.json_documents import diff_document, header, line, producers_document
from kaudit.report.render_options import RenderOptions


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return one line per finding and the summary."""
    findings = [line({"type": "finding", **finding.to_dict()}) for finding in result.findings]
    return "".join([*findings, line({"type": "summary", **header(result, "kaudit.scan/1", options)})])


def render_timeline(result: TimelineResult, options: RenderOptions) -> str:
    """Return one line per timeline, one per finding, and the summary."""
    timelines = [line({"type": "timeline", **timeline.to_dict()}) for timeline in result.timelines]
    findings = [line({"type": "finding", **finding.to_dict()}) for finding in result.scan.findings]
    summary = line({"type": "summary", **header(result.scan, "kaudit.timeline/1", options)})
    return "".join([*timelines, *findings, summary])


def render_producers(result: ProducersResult, options: RenderOptions) -> Iterator[str]:
    """Yield one line per producer id, one per finding, and the summary with the blocks."""
    for producer in result.producers:
        yield line({"type": "producer", **producer.to_dict()})
    for finding in result.scan.findings:
        yield line({"type": "finding", **finding.to_dict()})
    summary = producers_document(result, options)
    del summary["producers"], summary["findings"]
    yield line({"type": "summary", **summary})


def render_diff(result: DiffResult, options: RenderOptions) -> str:
    """Return one line per partition, one per finding, and the summary with the replicas."""
    partitions = [line({"type": "partition", **partition.to_dict()}) for partition in result.partitions]
    findings = [line({"type": "finding", **finding.to_dict()}) for finding in result.scan.findings]
    summary = diff_document(result, options)
    del summary["partitions"], summary["findings"]
    return "".join([*partitions, *findings, line({"type": "summary", **summary})])
