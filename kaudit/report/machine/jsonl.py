"""`--output-format jsonl`: one finding (or timeline) a line, the summary last."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kaudit.model.finding import Finding
from kaudit.model.json_record import JsonRecord
from kaudit.model.producer_listing import Producer, ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.json_documents import diff_document, header, line, omitted_timelines, producers_document, with_scan
from kaudit.report.machine.history_json import LINES, timelines_json
from kaudit.report.render_options import RenderOptions
from kaudit.results.selection import first_of_checks

_ONE_BY_ONE = ("findings", "incidents")
"""What a document lists and a stream of findings does not repeat."""


def render_scan(result: ScanResult, options: RenderOptions) -> Iterator[str]:
    """Yield one line per finding and the summary."""
    listed = first_of_checks(result, options.findings_of_check)
    yield from _lines("finding", listed.findings)
    yield _summary(header(listed, "kaudit.scan/1", options))


def render_timeline(result: TimelineResult, options: RenderOptions) -> Iterator[str]:
    """Yield one line per timeline, one per finding, and the summary."""
    listed = first_of_checks(result.scan, options.findings_of_check)
    yield from (timelines_json(each, LINES) for each in result.histories)
    yield from _lines("finding", listed.findings)
    yield _summary(header(listed, "kaudit.timeline/1", options) | omitted_timelines(result))


def render_producers(result: ProducersResult, options: RenderOptions) -> Iterator[str]:
    """Yield one line per producer id, one per finding, and the summary with the blocks."""
    listed = first_of_checks(result.scan, options.findings_of_check)
    yield from _lines("producer", result.producers)
    yield from _lines("finding", listed.findings)
    bare = with_scan(result, replace(listed, findings=()))
    yield _summary(producers_document(bare, options), without=("producers", *_ONE_BY_ONE))


def render_diff(result: DiffResult, options: RenderOptions) -> Iterator[str]:
    """Yield one line per partition, one per finding, and the summary with the replicas."""
    listed = first_of_checks(result.scan, options.findings_of_check)
    yield from _lines("partition", result.partitions)
    yield from _lines("finding", listed.findings)
    bare = replace(result, scan=replace(listed, findings=()))
    yield _summary(diff_document(bare, options), without=("partitions", *_ONE_BY_ONE))


def _lines(kind: str, items: Iterable[JsonRecord | Finding | Producer]) -> Iterator[str]:
    return (line({"type": kind, **item.to_dict()}) for item in items)


def _summary(document: Mapping[str, object], without: Sequence[str] = ()) -> str:
    return line({"type": "summary", **{name: value for name, value in document.items() if name not in without}})


def stream_findings(findings: Iterable[Finding], options: RenderOptions) -> str:  # noqa: ARG001 - machines get all
    """Return the lines of findings that a watch reports."""
    return "".join(_lines("finding", findings))


def watch_summary(result: ScanResult, reported: Mapping[str, int], waiting: int, options: RenderOptions) -> str:
    """Return the last line of a watch: the partitions as they are in the end, and the numbers of findings reported and waiting."""
    document = header(result, "kaudit.watch/1", options)
    return _summary({**document, "reported": dict(reported), "waiting": waiting})
