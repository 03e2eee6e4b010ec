"""A scan in numbers: one summary a partition and a segment, and the totals."""

from collections.abc import Iterable, Sequence

from kaudit.broker.releases.profile import Profile
from kaudit.model.digests import ALGORITHM, Digests
from kaudit.model.finding import Finding, Severity
from kaudit.model.result import PartitionSummary, SegmentSummary, Summary, UnlistedFindings
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.open_at_end import last_stable_offset, remembered
from kaudit.source.layout import PartitionDirectory, Unreadable


def partition_summary(part: PartitionAudit, newest: Profile, *, log_start_offset: int | None) -> PartitionSummary:
    """Summarise one partition; `log_start_offset` is the user's, None if not given.

    `newest`: the rules of the newest release that the brokers may have.
    """
    directory, counts = part.directory, part.counts
    start = directory.log_start_offset
    if log_start_offset is not None:
        start = log_start_offset
    elif directory.segments and directory.whole_directory:
        gone = {entry.path for entry in part.removed}
        left = [segment.base_offset for segment in directory.segments if segment.path not in gone]
        start = max([directory.start_offset, *left[:1]])
    return PartitionSummary(
        topic=directory.topic,
        partition=directory.partition,
        replica=directory.replica,
        log_start_offset=start,
        log_end_offset=part.log_end_offset,
        last_stable_offset=last_stable_offset(remembered(part.opened, newest), part.log_end_offset),
        compacted=part.compacted,
        segments=0 if directory.is_fetched else len(directory.segments),
        bytes=counts.bytes if directory.is_fetched else directory.bytes,
        batches=counts.batches,
        records=counts.records,
        producers=part.producers,
        runs=part.runs,
    )


def segment_rows(directory: PartitionDirectory, unread: Sequence[Unreadable]) -> Iterable[SegmentSummary]:
    """Yield a row for each segment of a partition replica; `unread` were not read to their end."""
    if directory.is_fetched:
        return
    failed = {entry.path: entry for entry in unread}
    for segment in directory.segments:
        entry = failed.get(segment.path)
        status = "read" if segment.size else "empty"
        if entry is not None:
            status = "vanished" if entry.vanished else "unreadable"
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
            reason=None if entry is None else entry.reason,
        )


def digests_of(parts: Iterable[PartitionAudit]) -> Digests:
    """Return the digests of the audited batches, for partitions that have one."""
    return Digests(ALGORITHM, [part.digest for part in parts if part.digest is not None])


def total(
    partitions: Sequence[PartitionSummary], findings: Sequence[Finding], unlisted: Sequence[UnlistedFindings] = ()
) -> Summary:
    """Add up all partitions, and count the findings by severity, `unlisted` ones too."""
    counted = ("segments", "bytes", "batches", "records", "producers", "runs")
    return Summary(
        partitions=len(partitions),
        **{name: sum(getattr(entry, name) for entry in partitions) for name in counted},
        findings={
            severity.value: sum(found.severity is severity for found in findings)
            + sum(more.count for more in unlisted if more.severity is severity)
            for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE)
        },
        omitted=sum(more.count for more in unlisted),
    )
