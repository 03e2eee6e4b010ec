"""What logs of brokers say that replicas cut off, held against the partitions' own logs, and records dated ahead."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaudit.deferred import Deferred
from kaudit.model.audit_clock import AuditClock
from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped
from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.record_loss import (
    CutRecords,
    FreshRecordsDeleted,
    FutureRecords,
    KeylessRecordsRemoved,
    LeaderHistory,
    ReportedChange,
)
from kaudit.model.remote_segments import FailingCopies
from kaudit.model.replicas import Relation, ReplicaEvidence
from kaudit.model.result import NotAudited
from kaudit.model.severity import Severity
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.group_logs import GroupLog
from kaudit.scanning.options import ScanOptions
from kaudit.source.file_kinds import HIGH_WATERMARK_CHECKPOINT
from kaudit.source.layout import PartitionDirectory

if TYPE_CHECKING:
    from kaudit.audits.log_events import deleted_segments
    from kaudit.audits.replicas import cut_records, future_records, partition_leaders
    from kaudit.audits.tiered import failing_copies
else:
    deleted_segments = Deferred("kaudit.audits.log_events.deleted_segments")
    cut_records = Deferred("kaudit.audits.replicas.cut_records")
    future_records = Deferred("kaudit.audits.replicas.future_records")
    partition_leaders = Deferred("kaudit.audits.replicas.partition_leaders")
    failing_copies = Deferred("kaudit.audits.tiered.failing_copies")

_Histories = Mapping[tuple[str, int], LeaderHistory]


def what_was_cut_off(
    replicas: Sequence[PartitionAudit],
    compared: ReplicaEvidence | None,
    histories: _Histories,
    leaders: Mapping[int, int],
    open_source: OpenSource,
) -> list[list[CutRecords | ReportedChange]]:
    """Return for each replica of one topic partition what its checks report: the copy of the newest leader reports what is lost.

    `compared`: the comparison of the replicas, which says whose that is; None where there is one. `leaders`: as `leaders_if_needed` returns.
    """
    nothing: list[list[CutRecords | ReportedChange]] = [[] for _ in replicas]
    directory = replicas[0].directory
    history = histories.get((directory.topic, directory.partition))
    if history is None:
        return nothing
    newest = max(range(len(replicas)), key=lambda number: _reach(replicas[number]))
    epochs: Sequence[EpochEntry] | None = None
    if compared is not None and compared.comparison.reference is not None:
        names = [part.directory.replica for part in replicas]
        newest = names.index(compared.comparison.reference)
        epochs = compared.comparison.leader_epochs[names[newest]]
    log = _known(replicas[newest], epochs, leaders)
    try:
        cuts = cut_records.cut_records(history, log, open_source)
    except OSError:
        return nothing  # reported when the segment was read for the audit
    reported = [
        ReportedChange(cut.leader_epoch, range(cut.first_offset, cut.end_offset or cut.first_offset + 1))
        for cut in cuts
    ]
    reported += map(ReportedChange, cut_records.changes_without_loss(history))
    if cut_records.has_one_replica(history):
        changes = {change.leader_epoch for part in replicas for change in part.leader_changes}
        reported += map(ReportedChange, sorted(changes))
    return [[*reported, *(cuts if number == newest else ())] for number in range(len(replicas))]


def leaders_if_needed(
    replicas: Sequence[PartitionAudit],
    compared: ReplicaEvidence | None,
    histories: _Histories,
    metadata: Sequence[PartitionDirectory],
    open_source: OpenSource,
) -> Mapping[int, int]:
    """Return who led under which leader epoch by `metadata`, replicas of __cluster_metadata, where the partition's copies or lines show a loss."""
    directory = replicas[0].directory
    history = histories.get((directory.topic, directory.partition))
    is_cut = history is not None and bool(history.cuts)
    if not is_cut and (compared is None or compared.comparison.relation is not Relation.DIVERGED):
        return {}
    return who_led(directory, histories, metadata, open_source)


def who_led(
    directory: PartitionDirectory,
    histories: _Histories,
    metadata: Sequence[PartitionDirectory],
    open_source: OpenSource,
) -> Mapping[int, int]:
    """Return the id of the broker that led a partition under each leader epoch, by lines of brokers and by `metadata`; of no one known, nothing."""
    history = histories.get((directory.topic, directory.partition))
    named = {} if history is None else {own.leader_epoch: own.broker.removeprefix("broker ") for own in history.leaders}
    recorded = partition_leaders.leaders_by_epoch(metadata, directory.topic_id, directory.partition, open_source)
    elected = {} if history is None else history.elected
    return {**elected, **{epoch: int(broker) for epoch, broker in named.items() if broker.isdecimal()}, **recorded}


def by_lines_alone(
    options: ScanOptions,
    parts: Sequence[PartitionAudit],
    histories: _Histories,
    latest_ms: int,
    open_source: OpenSource,
) -> Iterator[CutRecords | FreshRecordsDeleted | KeylessRecordsRemoved]:
    """Yield what was cut off in partitions whose logs are not among the inputs, and what retention and the log cleaner deleted in any."""
    read = {(part.directory.topic, part.directory.partition) for part in parts}
    for key, history in sorted(histories.items()):
        if not options.asks_for(*key):
            continue
        if key not in read:
            yield from cut_records.cut_records(history, None, open_source)
        yield from deleted_segments.fresh_records_deleted(history, latest_ms)
        yield from deleted_segments.keyless_records_removed(history)


def copies_that_fail(options: ScanOptions, histories: _Histories, logs: Iterable[GroupLog]) -> Iterator[FailingCopies]:
    """Yield the partitions that are not copied to remote storage any more by lines, and of which no record in `logs` says otherwise."""
    remote = [log for own in logs for log in own.remote]
    for key, history in sorted(histories.items()):
        if history.until and options.asks_for(*key):
            yield from failing_copies.failing_copies(history, remote)


def as_notes(findings: Iterable[Finding], left_out: Collection[tuple[str, int]]) -> Iterator[Finding]:
    """Yield findings by lines alone, those about partitions `left_out` as notes.

    Brokers have such a partition, and its directory was not given: whether records that its log lost were sent again is in there.
    """
    for finding in findings:
        yield replace(finding, severity=Severity.NOTE) if finding.partition_key in left_out else finding


def not_given(findings: Iterable[Finding], left_out: Collection[tuple[str, int]]) -> Iterator[NotAudited]:
    """Yield the partitions `left_out` that findings by lines alone are about."""
    codes = grouped((each.partition_key, each.code) for each in findings if each.partition_key in left_out)
    for (topic, partition), own in codes.items():
        yield NotAudited(
            f"{topic}-{partition}",
            f"its broker has it ({HIGH_WATERMARK_CHECKPOINT}), and its directory is not among the inputs: what logs say of it is a note "
            f"({', '.join(dict.fromkeys(own))})",
        )


def dated_ahead(part: PartitionAudit, clock: AuditClock, open_source: OpenSource) -> list[FutureRecords]:
    """Return the records whose timestamps lie beyond all times that anything shows; none where time retention does not delete."""
    directory = part.directory
    if not part.counts.dated_ahead or part.compacted or directory.topic.startswith("__") or directory.is_fetched:
        return []
    clock_ms = clock.now_ms if clock.source.is_proof else -1
    try:
        found = future_records.future_records(directory, clock_ms, open_source)
    except OSError:
        return []  # reported when the segment was read for the audit
    return [] if found is None else [found]


def _reach(part: PartitionAudit) -> tuple[int, int]:
    epochs = part.leader_epochs["leader_epoch"]
    return (int(epochs[-1]) if len(epochs) else -1), part.log_end_offset or 0


def _known(
    part: PartitionAudit, epochs: Sequence[EpochEntry] | None, leaders: Mapping[int, int]
) -> "cut_records.KnownLog | None":
    """Return the log of a partition, whose leader epochs are `epochs` where checkpoints were read too; None of one whose end, or whose leader epochs, are not certain."""
    end = part.log_end_offset
    if end is None and not part.directory.bytes and part.directory.segments:
        end = part.directory.start_offset
    if end is None or part.regressions or part.unreadable:
        return None
    return cut_records.KnownLog(
        directory=part.directory,
        log_start=part.directory.start_offset,
        log_end=end,
        starts=[(int(step["base_offset"]), int(step["leader_epoch"])) for step in part.leader_epochs]
        if epochs is None
        else [(entry.start_offset, entry.epoch) for entry in epochs],
        others_batches=part.counts.without_producer,
        bumps={change.leader_epoch: len(change.bumps) for change in part.leader_changes},
        leaders=leaders,
    )
