"""`--output-format concise`: one line per finding, made for grep."""

from collections.abc import Iterable, Iterator

import numpy as np

from kaudit.model.finding import Finding
from kaudit.model.producer_listing import Producer, ProducersResult
from kaudit.model.replicas import DiffResult, Relation
from kaudit.model.result import NotAudited, ScanResult, TimelineResult
from kaudit.report.console import visible
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.formatting import (
    SEVERITY_STYLE,
    blocks_of,
    expired_text,
    headline,
    omitted_text,
    partition_of,
    plural,
    short_producer_of,
    span,
    timestamp_text,
)
from kaudit.report.text.history_cells import cells_of
from kaudit.report.text.text_rows import number, text_of_rows, texts, where, without


def render_scan(result: ScanResult, options: RenderOptions) -> str:
    """Return `file:byte: error[CODE] name: message [topic-partition@offset producer id/epoch fingerprint]` lines."""
    lines = [finding_line(finding, options) for finding in options.for_people(result.findings)]
    if result.summary.omitted:
        lines.append(f"-:-: more: {omitted_text(result.summary.omitted)}")
    lines += [_not_audited(item) for item in result.not_audited]
    return _text(lines)


def stream_findings(findings: Iterable[Finding], options: RenderOptions) -> str:
    """Return the lines of findings that a watch reports."""
    return _text(finding_line(finding, options) for finding in options.for_people(findings))


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def render_timeline(result: TimelineResult, options: RenderOptions) -> Iterator[str]:
    """Yield one line per entry of every timeline."""
    by_fingerprint = {finding.fingerprint: finding for finding in result.scan.findings}
    for histories in result.histories:
        owners = np.repeat(histories.producer_ids, np.diff(histories.starts))
        place = visible(f"{histories.topic}-{histories.partition}").encode()
        for cells in cells_of(histories):
            ids = number(owners[cells.first : cells.stop])
            entries = [place, b": producer ", *ids, b": ", *cells.descriptions(), b"\n"]
            found = [by_fingerprint.get(entry.fingerprint) for entry in cells.findings]
            lines = texts("" if finding is None else f"{finding_line(finding, options)}\n" for finding in found)
            yield text_of_rows(len(cells.rows), [*without(~cells.listed, entries), *where(~cells.listed, [lines])])
    yield _text([_not_audited(item) for item in result.scan.not_audited])


def render_producers(result: ProducersResult, options: RenderOptions) -> Iterator[str]:
    """Yield one line per producer id and expired transactional id, then the findings and what was not checked."""
    for producer in result.producers:
        yield _text([_producer(producer)])
    for entry in result.expired:
        yield _text([f"expired transactional id {expired_text(entry)}"])
    yield render_scan(result.scan, options)


def render_diff(result: DiffResult, options: RenderOptions) -> str:
    """Return one line per partition that is not identical everywhere, then the findings and what was not checked."""
    lines = []
    for entry in result.partitions:
        if entry.relation is not Relation.IDENTICAL:
            ends = ", ".join(f"{name} ends at {end}" for name, end in entry.end_offsets.items())
            agree = "" if entry.common_end_offset is None else f"identical up to {entry.common_end_offset}, "
            lines.append(visible(f"{entry.topic}-{entry.partition}: {entry.relation.value}: {agree}{ends}"))
    return _text(lines) + render_scan(result.scan, options)


def _producer(producer: Producer) -> str:
    parts = [plural(len(producer.partitions), "partition"), plural(producer.batches, "batch", "batches")]
    parts += [
        plural(producer.records, "record"),
        f"last {timestamp_text(producer.last_timestamp)}",
        blocks_of(producer),
    ]
    parts += [visible(producer.transactional_id or producer.pattern), *producer.findings]
    return f"producer {producer.producer_id}: {', '.join(parts)}"


def finding_line(finding: Finding, options: RenderOptions) -> str:
    """Return the line of one finding, without its end."""
    file = visible(finding.file or finding.log_dir or "-")
    label, rest = headline(finding)
    where = []
    partition = partition_of(finding)
    if partition is not None:
        where.append(partition + ("" if finding.offset is None else f"@{span(finding.offset, finding.last_offset)}"))
    where += [*short_producer_of(finding), finding.fingerprint]
    label = options.console.paint(label, SEVERITY_STYLE[finding.severity])
    byte = "-" if finding.position is None else finding.position
    return f"{file}:{byte}: {label}{rest} [{' '.join(where)}]"


def _not_audited(item: NotAudited) -> str:
    return f"{visible(item.path)}:-: {'unreadable' if item.unreadable else 'not checked'}: {visible(item.reason)}"
