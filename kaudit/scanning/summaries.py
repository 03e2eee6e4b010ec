"""Parts of a scan's result: summaries of partitions and segments, totals, and commands that show more."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kaudit.audits.replicas.broker_copies import BrokerCopies
from kaudit.audits.replicas.copy_identities import of_one_log
from kaudit.broker.releases.profile import Profile
from kaudit.checks.command_line import quote
from kaudit.model.coverage import Coverage
from kaudit.model.digests import ALGORITHM, Digests
from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped
from kaudit.model.result import PartitionSummary, SegmentSummary, Suggestion, Summary, UnlistedFindings
from kaudit.model.severity import Severity
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.open_at_end import last_stable_offset, remembered
from kaudit.scanning.options import ScanOptions
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


def coverage_of(parts: Iterable[PartitionAudit], *, log_start_given: bool) -> list[Coverage]:
    """Return the account of each partition's offsets; `log_start_given`: the user passed --log-start-offset."""
    accounts = [part.coverage for part in parts if part.coverage is not None]
    return [replace(each, log_start_source="--log-start-offset") for each in accounts] if log_start_given else accounts


def total(
    partitions: Sequence[PartitionSummary], findings: Sequence[Finding], unlisted: Sequence[UnlistedFindings] = ()
) -> Summary:
    """Add up all partitions, and count the findings by severity, `unlisted` ones too."""
    counted = ("segments", "bytes", "batches", "records", "runs")
    producers: dict[tuple[str, int], int] = {}
    for entry in partitions:
        key = (entry.topic, entry.partition)
        producers[key] = max(producers.get(key, 0), entry.producers)
    severities = Counter(finding.severity for finding in findings)
    for more in unlisted:
        severities[more.severity] += more.count
    return Summary(
        partitions=len(partitions),
        producers=sum(producers.values()),
        **{name: sum(getattr(entry, name) for entry in partitions) for name in counted},
        findings={
            severity.value: severities[severity] for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE)
        },
        omitted=sum(more.count for more in unlisted),
    )


def suggestions(
    options: ScanOptions,
    directories: Sequence[PartitionDirectory],
    copies: Sequence[BrokerCopies],
) -> Iterator[Suggestion]:
    """Suggest the command that shows the copies of partitions side by side, cluster by cluster."""
    for whole in _by_cluster(entry for entry in directories if entry.whole_directory and entry.segments):
        log_dirs = {entry.log_dir for entry in whole}
        own = [entry for entry in copies if log_dirs.issuperset(entry.log_dirs)]
        yield from _suggestion(options, whole, own)


def _by_cluster(directories: Iterable[PartitionDirectory]) -> list[list[PartitionDirectory]]:
    """Return the directories of each cluster, in the order given; all of them together unless several clusters are known."""
    found = grouped((entry.identity.cluster_id if entry.identity else None, entry) for entry in directories)
    if len(found.keys() - {None}) > 1:
        return list(found.values())
    return [[entry for entries in found.values() for entry in entries]]


def _suggestion(
    options: ScanOptions,
    whole: Sequence[PartitionDirectory],
    copies: Sequence[BrokerCopies],
) -> Iterator[Suggestion]:
    copies_of: defaultdict[tuple[str, int], list[PartitionDirectory]] = defaultdict(list)
    for entry in whole:
        copies_of[entry.topic, entry.partition].append(entry)
    logs = [log for same in copies_of.values() for log in of_one_log(same) if len(log) > 1]
    paths_of = {entry.directory for log in logs for entry in log}
    several = [entry for entry in whole if entry.directory in paths_of]
    if not several:
        return
    partitions = len({(entry.topic, entry.partition) for entry in several})
    what = f"{max(map(len, logs))} replicas of {partitions:,} partition{'' if partitions == 1 else 's'} were given"
    if copies:
        counted = [f"{len(entry.log_dirs)} of broker {entry.identity.broker_id}" for entry in copies]
        what = f"the inputs are copies made at different times: {', '.join(counted)}"
    # partition directories were given, or log directories
    given = {entry.directory for entry in several} <= set(options.paths)
    paths = dict.fromkeys(entry.directory if given else entry.log_dir for entry in several)
    chosen = [f"--topic {quote(topic)}" for topic in options.topics]
    chosen += [f"--partition {partition}" for partition in options.partitions]
    yield Suggestion(
        f"{what}; kaudit diff shows them side by side",
        " ".join(["kaudit diff", *chosen, *map(quote, paths)]),
    )
