"""All partitions of all replicas: which replica has which partition, their comparison, and its findings."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.replicas.broker_copies import broker_copies, of_brokers
from kaudit.audits.replicas.comparison import compare_copies
from kaudit.audits.replicas.copy_identities import contradictions, log_copy, of_one_log
from kaudit.audits.replicas.replica_reader import ReplicaReader
from kaudit.audits.sidefiles.log_facts import SideFileReader
from kaudit.broker.releases.version_evidence import VersionEvidence, infer_range
from kaudit.bugs.matching import with_known_bugs
from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.checks.incident_groups import with_incidents
from kaudit.checks.registry import run_checks
from kaudit.checks.texts import first_of
from kaudit.model.audit_clock import given_clock
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.copy_identities import LogCopy
from kaudit.model.finding import Finding
from kaudit.model.replicas import BrokerReplicas, DiffResult, PartitionComparison, Relation, Replica, ReplicaLag
from kaudit.model.result import BrokerVersions, NotAudited, PartitionSummary, ScanResult, SegmentSummary
from kaudit.partition.continuity import Continuity
from kaudit.reading.chunk_plan import OpenSource, whole_segments
from kaudit.reading.chunk_reader import read_serially
from kaudit.reading.failed_reads import FailedReads
from kaudit.scanning.cut_off import who_led
from kaudit.scanning.findings import partition_context
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.summaries import segment_rows, total
from kaudit.source.layout import CLUSTER_METADATA, Layout, PartitionDirectory, Unreadable


class Task(Struct, frozen=True):
    """One partition: the directory of each replica that has it, by the replica's name, and the replicas that lack it."""

    holders: Mapping[str, PartitionDirectory]
    missing_on: Sequence[str]
    separate: bool = False
    """Other replicas have copies of another log under the partition's name."""
    copies: Sequence[BrokerReplicas] = ()
    """The holders that are copies of one broker."""
    metadata: Sequence[PartitionDirectory] = ()
    """The replicas of __cluster_metadata."""

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return sum(directory.bytes for directory in self.holders.values())

    @property
    def directories(self) -> Sequence[PartitionDirectory]:
        """The partition's directory on each replica."""
        return list(self.holders.values())


class ComparedPartition(Struct, frozen=True):
    """One partition compared: the result, its findings and what was read; no `comparison` where a log was not read whole."""

    comparison: PartitionComparison | None
    findings: Sequence[Finding]
    partitions: Sequence[PartitionSummary]
    unreadable: Sequence[Unreadable]
    removed: Sequence[Unreadable]
    segments: Sequence[SegmentSummary]


def replicas_of_brokers(layouts: Mapping[str, Layout], open_source: OpenSource) -> list[BrokerReplicas]:
    """Return which of the replicas (by name) are copies of one broker's log directory at different times."""
    names = {entry.log_dir: name for name, layout in layouts.items() for entry in layout.partitions}
    directories = [entry for layout in layouts.values() for entry in layout.partitions]
    found = [of_brokers(entry, names) for entry in broker_copies(directories, open_source)]
    return [entry for entry in found if len(entry.replicas) > 1]


def tasks(layouts: Mapping[str, Layout], copies: Sequence[BrokerReplicas] = ()) -> list[Task]:
    """Return a task for each log of a partition that a replica (by name) has, in (topic, partition) order."""
    found: dict[tuple[str, int], dict[str, PartitionDirectory]] = {}
    for name, layout in layouts.items():
        for entry in layout.partitions:
            found.setdefault((entry.topic, entry.partition), {})[name] = replace(entry, replica=name)
    metadata = [entry for layout in layouts.values() for entry in layout.everything if entry.topic == CLUSTER_METADATA]
    work: list[Task] = []
    for _, holders in sorted(found.items()):
        lacking = [name for name in layouts if name not in holders]
        logs = of_one_log(holders.values())
        for log in logs:
            own = {entry.replica: entry for entry in log}
            work.append(Task(own, lacking, len(logs) > 1, _held_by(own, copies), metadata))
    return work


def _held_by(holders: Collection[str], copies: Sequence[BrokerReplicas]) -> list[BrokerReplicas]:
    return [replace(entry, replicas=tuple(name for name in entry.replicas if name in holders)) for entry in copies]


def compare_task(task: Task, options: ScanOptions, open_source: OpenSource) -> ComparedPartition:
    """Compare one partition's replicas; the function every engine schedules."""
    verify, reads = options.verifies, FailedReads(open_source)
    # offsets below a replica's log start are deleted there: nothing is left to compare
    readers = {
        name: ReplicaReader(
            directory,
            open_source,
            verify=verify,
            log_start_offset=directory.log_start_offset,
        )
        for name, directory in task.holders.items()
    }
    files = SideFileReader(reads)
    directory = next(iter(task.holders.values()))
    evidence = compare_copies(
        readers,
        task.copies,
        task.missing_on,
        files,
        says_compacted=options.says_compacted(directory.topic),
        who_led=lambda: who_led(directory, {}, task.metadata, reads),
    )
    contexts = {name: _context(directory, readers[name]) for name, directory in task.holders.items()}
    findings = [
        finding
        for name, reader in readers.items()
        if reader.damaged
        for finding in _damage(contexts[name], reader.directory, reads, verify=verify)
    ]
    if evidence is not None and task.separate and len(task.holders) == 1:
        evidence = replace(evidence, comparison=replace(evidence.comparison, relation=Relation.SEPARATE))
    if evidence is not None:
        lag = [ReplicaLag(evidence)]
        findings += run_checks(replace(next(iter(contexts.values())), replicas=contexts), Evidence([evidence], lag))
    unreadable = _each_path(files.unreadable, *(reader.unreadable for reader in readers.values()), reads.unreadable)
    removed = [entry for reader in readers.values() for entry in reader.removed]
    return ComparedPartition(
        None if evidence is None else evidence.comparison,
        findings,
        [_summary(name, reader) for name, reader in readers.items()],
        tuple(unreadable),
        removed,
        [row for directory in task.holders.values() for row in segment_rows(directory, [*unreadable, *removed])],
    )


def _each_path(*found: Sequence[Unreadable]) -> list[Unreadable]:
    """Return what could not be read, each path once, with the first reason."""
    first: dict[str, Unreadable] = {}
    for entry in chain.from_iterable(found):
        first.setdefault(entry.path, entry)
    return [*first.values()]


_NOT_COMPARED = {
    Relation.MISSING: "on one of the replicas only: nothing to compare it with",
    Relation.SEPARATE: "copies of different logs: not compared with one another; 'kaudit diff --by records' compares the records of a "
    "topic with those of its copy in another cluster",
}


def diff_result(
    replicas: Sequence[Replica],
    layouts: Mapping[str, Layout],
    compared: Sequence[ComparedPartition],
    copies: Sequence[BrokerReplicas] = (),
    unlisted: Sequence[Unreadable] = (),
) -> DiffResult:
    """Return the result of all partitions, sorted as documented; `unlisted`: what could not be read before they were compared."""
    found = [finding for entry in compared for finding in entry.findings]
    found += run_checks(_everything(), Evidence(contradictions(_log_copies(layouts, compared))))
    partitions = [entry for one in compared for entry in one.partitions]
    any_version, _ = infer_range(VersionEvidence())
    compacted = {(entry.topic, entry.partition) for entry in partitions if entry.compacted}
    findings = with_known_bugs(with_incidents(sorted(found, key=Finding.sort_key)), any_version, compacted)
    unreadable = [*unlisted]
    unreadable += [entry for one in compared for entry in one.unreadable if entry not in unreadable]
    skipped = [entry for layout in layouts.values() for entry in layout.skipped]
    skipped += [entry for one in compared for entry in one.removed]
    not_audited = [NotAudited(entry.path, entry.reason, unreadable=True) for entry in unreadable]
    not_audited += [NotAudited(entry.path, entry.reason) for entry in skipped]
    comparisons = [one.comparison for one in compared if one.comparison is not None]
    for relation, reason in _NOT_COMPARED.items():
        names = list(
            dict.fromkeys(f"{each.topic}-{each.partition}" for each in comparisons if each.relation is relation)
        )
        if names:
            not_audited.append(NotAudited(first_of(names), reason))
    scan = ScanResult(
        inputs=[replica.path for replica in replicas],
        broker_version=BrokerVersions("auto", None, None, None, ("replicas are alike under every version",)),
        partitions=partitions,
        findings=findings,
        not_audited=not_audited,
        summary=total(partitions, findings),
        incomplete=bool(unreadable),
        segments=[row for one in compared for row in one.segments],
    )
    return DiffResult(scan, replicas, comparisons, copies)


def _damage(context: Context, directory: PartitionDirectory, open_source: OpenSource, *, verify: bool) -> list[Finding]:
    """Read a damaged replica again as a scan does, so that its damage is reported in the same findings."""
    plan = whole_segments(
        directory, log_start_offset=directory.log_start_offset, verify=verify, latest_timestamp=2**63 - 1
    )
    continuity = Continuity(directory.segments, directory.log_start_offset)
    try:
        for rows in read_serially(plan, open_source):
            continuity.feed(rows)
    except OSError:
        return []  # removed since the first reading, which reported the damage
    continuity.finish()
    return run_checks(context, Evidence(continuity.damages))


def _log_copies(layouts: Mapping[str, Layout], compared: Sequence[ComparedPartition]) -> Iterator[LogCopy]:
    comparisons = [entry.comparison for entry in compared if entry.comparison is not None]
    found = {(each.topic, each.partition, name): each for each in comparisons for name in each.end_offsets}
    for name, layout in layouts.items():
        for directory in layout.partitions:
            own = found.get((directory.topic, directory.partition, name))
            epochs = () if own is None else own.leader_epochs[name]
            end = None if own is None else own.end_offsets[name]
            yield log_copy(replace(directory, replica=name), end, epochs[-1].epoch if epochs else -1)


def _everything() -> Context:
    versions, _ = infer_range(VersionEvidence())
    return Context(versions=versions, coordinator=CoordinatorView(), clock=given_clock(0))


def _context(directory: PartitionDirectory, reader: ReplicaReader) -> Context:
    return partition_context(_everything(), directory, log_end_offset=reader.end_offset)


def _summary(name: str, reader: ReplicaReader) -> PartitionSummary:
    directory = reader.directory
    start = directory.log_start_offset
    if directory.segments and directory.whole_directory:
        start = max(start or 0, directory.segments[0].base_offset)
    return reader.summary(name, start, reader.records)
