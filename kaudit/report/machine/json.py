"""`--output-format json`: one document (report/schemas/json.schema.json), an item of its lists at a time.

As objects a hundred thousand findings take gigabytes.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from kaudit.model.ledger import LedgerResult, TopicLedger, mapped_ranges
from kaudit.model.producer_listing import ProducersResult
from kaudit.model.replicas import DiffResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.json_documents import (
    Listed,
    diff_document,
    found,
    omitted_timelines,
    pretty_pieces,
    producers_document,
    scan_document,
    with_scan,
)
from kaudit.report.machine.history_json import PRETTY, timelines_json
from kaudit.report.render_options import RenderOptions
from kaudit.results.selection import first_of_checks


def render_scan(result: ScanResult, options: RenderOptions) -> Iterator[str]:
    """Yield the kaudit.scan/1 document."""
    bare, findings = _apart(result, options)
    yield from pretty_pieces(scan_document(bare, options), findings)


def render_timeline(result: TimelineResult, options: RenderOptions) -> Iterator[str]:
    """Yield the kaudit.timeline/1 document."""
    bare, findings = _apart(result.scan, options)
    timelines = (timelines_json(each, PRETTY) for each in result.histories)
    document = scan_document(bare, options, "kaudit.timeline/1", timelines=[], **omitted_timelines(result))
    yield from pretty_pieces(document, {**findings, "timelines": timelines})


def render_producers(result: ProducersResult, options: RenderOptions) -> Iterator[str]:
    """Yield the kaudit.producers/1 document."""
    bare, findings = _apart(result.scan, options)
    document = producers_document(with_scan(result, bare), options)
    producers = (producer.to_dict() for producer in result.producers)
    yield from pretty_pieces(document, {**findings, "producers": producers})


def render_diff(result: DiffResult, options: RenderOptions) -> Iterator[str]:
    """Yield the kaudit.diff/1 document."""
    bare, findings = _apart(result.scan, options)
    yield from pretty_pieces(diff_document(replace(result, scan=bare), options), findings)


def render_ledger(result: LedgerResult, options: RenderOptions) -> Iterator[str]:
    """Yield the kaudit.ledger/1 document."""
    bare, findings = _apart(result.scan, options)
    document = scan_document(
        bare, options, "kaudit.ledger/1", sides=[side.to_dict() for side in result.sides], ledgers=[]
    )
    yield from pretty_pieces(document, {**findings, "ledgers": map(_ledger, result.ledgers)})


def _ledger(ledger: TopicLedger) -> Listed:
    mapped = (row._asdict() for row in mapped_ranges(ledger.map_file))
    return Listed({**ledger.to_dict(), "offset_map": []}, {"offset_map": mapped})


def _apart(result: ScanResult, options: RenderOptions) -> tuple[ScanResult, dict[str, Iterator[dict[str, object]]]]:
    """Return the result without findings, and the lists of its document that come an item at a time."""
    listed = first_of_checks(result, options.findings_of_check)
    return replace(listed, findings=()), found(result, listed)
