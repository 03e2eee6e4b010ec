"""A scan in numbers: one summary a partition and a segment, and the totals."""

from collections.abc import Iterable, Sequence

from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.model.finding import Finding, Severity
from kaudit.model.result import PartitionSummary, SegmentSummary, Summary
from kaudit.source.layout import PartitionDirectory, Unreadable


def partition_summary(part: PartitionAudit, log_start_offset: int | None) -> PartitionSummary:
    """Summarise one partition; `log_start_offset` is the user's, None if not given."""
    directory, counts = part.directory, part.counts
    start = directory.log_start_offset
    if log_start_offset is not None:
        start = log_start_offset
    elif directory.segments and directory.whole_directory:
        start = max(start or 0, directory.segments[0].base_offset)
    return PartitionSummary(
        topic=directory.topic,
        partition=directory.partition,
        replica=directory.replica,
        log_start_offset=start,
        log_end_offset=part.log_end_offset,
        last_stable_offset=part.last_stable_offset,
        compacted=part.compacted,
        segments=len(directory.segments),
        bytes=directory.bytes,
        batches=counts.batches,
        records=counts.records,
        producers=part.producers,
        runs=part.runs,
    )


def segment_rows(directory: PartitionDirectory, unreadable: Sequence[Unreadable]) -> Iterable[SegmentSummary]:
    """Yield a row for each segment of a partition replica."""
    failed = {entry.path: entry.reason for entry in unreadable}
    for segment in directory.segments:
        status = "unreadable" if segment.path in failed else "read" if segment.size else "empty"
        yield SegmentSummary(
            topic=directory.topic,
            partition=directory.partition,
            replica=directory.replica,
            segment=segment.name,
            path=segment.path,
            base_offset=segment.base_offset,
            bytes=segment.size,
            modified=segment.modified_ms,
            status=status,
            reason=failed.get(segment.path),
        )


def total(partitions: Sequence[PartitionSummary], findings: Sequence[Finding]) -> Summary:
    """Add up all partitions, and count the findings by severity."""
    counted = ("segments", "bytes", "batches", "records", "producers", "runs")
    return Summary(
        partitions=len(partitions),
        **{name: sum(getattr(entry, name) for entry in partitions) for name in counted},
        findings={
            severity.value: sum(found.severity is severity for found in findings)
            for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE)
        },
    )
