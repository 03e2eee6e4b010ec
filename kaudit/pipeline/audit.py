"""From what was read of every partition to findings: the part of a scan that needs to see all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kaudit.checks.context import Context
from kaudit.checks.coordinator import CoordinatorView
from kaudit.checks.damage import report_damage
from kaudit.checks.epoch import report_epochs
from kaudit.checks.notes import fold_notes
from kaudit.checks.offsets import report_leader_epochs, report_missing
from kaudit.checks.sequence import report_sequences
from kaudit.checks.strays import report_strays
from kaudit.checks.transaction import OpenTransaction, report_transactions
from kaudit.model.batch import NO_OFFSET
from kaudit.model.continuity import EpochRegression, Missing, PlacedDamage
from kaudit.model.finding import Finding, Severity
from kaudit.model.result import BrokerVersions, NotAudited, PartitionSummary, ScanResult, SegmentSummary, Summary
from kaudit.pipeline.coordinator import TRANSACTION_STATE, CoordinatorReader
from kaudit.pipeline.options import ScanOptions, UsageError
from kaudit.pipeline.partition import PartitionReplay
from kaudit.pipeline.read import OpenSource
from kaudit.pipeline.rows import Counts
from kaudit.replay.evidence import VersionEvidence, infer_range
from kaudit.replay.judge import AFTER_MARKER, EXPLAINED, TV2, Fact
from kaudit.replay.profile import UnknownVersionError, VersionRange, profile_for
from kaudit.source.layout import INTERNAL_TOPICS, Layout, PartitionDirectory, Unreadable

AUTO = "auto"
DAY_MS = 86_400_000


@dataclass(slots=True)
class PartitionAudit:
    """What is kept of a partition once it has been read: no rows, only what may be reported."""

    directory: PartitionDirectory
    counts: Counts
    facts: Sequence[Fact]
    dropped_facts: int
    missing: Sequence[Missing]
    damages: Sequence[PlacedDamage]
    unlisted: int
    regressions: Sequence[EpochRegression]
    opened: Sequence[OpenTransaction]
    compacted: bool
    log_end_offset: int | None
    last_stable_offset: int | None
    producers: int
    runs: int
    has_tv2: bool
    still_growing: bool
    unreadable: Sequence[Unreadable] = ()


def close_partition(
    replay: PartitionReplay, *, compacted: bool, unreadable: Sequence[Unreadable] = ()
) -> PartitionAudit:
    """Take from a finished replay what the findings need. `compacted`: the user says so."""
    rows = replay.joints.table.rows
    return PartitionAudit(
        directory=replay.directory,
        counts=replay.counts,
        facts=replay.joints.facts,
        dropped_facts=replay.joints.dropped_facts,
        missing=replay.continuity.missing,
        damages=replay.continuity.damages,
        unlisted=replay.continuity.unlisted,
        regressions=replay.continuity.epoch_regressions(),
        opened=_open_transactions(replay),
        compacted=compacted or replay.compacted,
        log_end_offset=replay.log_end_offset,
        last_stable_offset=replay.last_stable_offset,
        producers=len(rows),
        runs=replay.joints.runs,
        has_tv2=bool((rows["flags"] & TV2 != 0).any()),
        still_growing=replay.still_growing,
        unreadable=unreadable,
    )


def _open_transactions(replay: PartitionReplay) -> list[OpenTransaction]:
    rows = replay.joints.table.rows
    opened = rows[np.flatnonzero(rows["txn_first_offset"] != NO_OFFSET)]
    return [
        OpenTransaction(
            producer_id=int(row["producer_id"]),
            producer_epoch=int(row["epoch"]),
            first_offset=int(row["txn_first_offset"]),
            first_timestamp=int(row["txn_first_timestamp"]),
            last_timestamp=int(row["last_timestamp"]),
            records=int(row["txn_records"]),
            position=int(row["txn_position"]),
            segment=int(row["txn_segment"]),
            coordinator_epoch=int(row["coordinator_epoch"]),
            began_after_marker=bool(row["flags"] & AFTER_MARKER),
            marker_offset=int(row["marker_offset"]),
            marker_timestamp=int(row["marker_timestamp"]),
        )
        for row in opened
    ]


@dataclass(slots=True)
class Audit:
    """Collects partitions and turns them into one result."""

    options: ScanOptions
    layout: Layout
    open_source: OpenSource
    partitions: list[PartitionAudit] = field(default_factory=list)

    def add(self, partition: PartitionAudit) -> None:
        """Add a partition that was read."""
        self.partitions.append(partition)

    def result(self) -> ScanResult:
        """Judge everything that was read."""
        reader = CoordinatorReader(self.open_source)
        coordinator = self._coordinator(reader)
        versions, told = self._versions(reader)
        now = self._now()
        findings: list[Finding] = []
        for partition in self.partitions:
            findings += self._partition_findings(partition, versions, coordinator, now)
        findings += report_strays(self.layout.strays)
        findings = sorted((found for found in findings if self._wanted(found)), key=Finding.sort_key)
        unreadable = [
            *self.layout.unreadable,
            *(entry for partition in self.partitions for entry in partition.unreadable),
        ]
        return ScanResult(
            inputs=tuple(self.options.paths),
            broker_version=told,
            partitions=[self._summary(partition) for partition in self.partitions],
            findings=findings,
            not_audited=self._not_audited(unreadable, coordinator, reader),
            summary=self._total(findings),
            incomplete=bool(unreadable),
            segments=[row for partition in self.partitions for row in _segments(partition)],
        )

    def _partition_findings(
        self, partition: PartitionAudit, versions: VersionRange, coordinator: CoordinatorView, now: int
    ) -> list[Finding]:
        directory = partition.directory
        context = Context(
            topic=directory.topic,
            partition=directory.partition,
            replica=directory.replica,
            log_dir=directory.log_dir,
            directory=directory.directory,
            relative=directory.relative,
            segments=[segment.name for segment in directory.segments],
            compacted=partition.compacted,
            versions=versions,
            coordinator=coordinator,
            now_ms=now,
            log_end_offset=partition.log_end_offset,
        )
        explained = [fact for fact in partition.facts if fact.code == EXPLAINED]
        leftovers = [stray.relative.rsplit("/", 1)[-1] for stray in directory.strays]
        return fold_notes(
            [
                *report_damage(context, partition.damages, explained),
                *report_missing(context, partition.missing, leftovers, explained),
                *report_leader_epochs(context, partition.regressions),
                *report_strays(directory.strays, directory.replica),
                *report_sequences(context, partition.facts, partition.missing),
                *report_epochs(context, partition.facts),
                *report_transactions(context, partition.opened, partition.facts),
            ]
        )

    def _coordinator(self, reader: CoordinatorReader) -> CoordinatorView:
        directories = [entry for entry in self.layout.partitions if entry.topic == TRANSACTION_STATE]
        wanted = {transaction.producer_id for partition in self.partitions for transaction in partition.opened}
        return reader.view(directories, wanted) if directories else CoordinatorView()

    def _versions(self, reader: CoordinatorReader) -> tuple[VersionRange, BrokerVersions]:
        requested = self.options.broker_version
        if requested != AUTO:
            try:
                version = profile_for(requested).version
            except UnknownVersionError as error:
                raise UsageError(str(error)) from error
            told = BrokerVersions(requested, str(version), str(version), str(version), ("given with --broker-version",))
            return VersionRange(version, version), told
        meta = self.layout.evidence.meta_properties
        parts = self.partitions
        found, because = infer_range(
            VersionEvidence(
                has_delete_horizon=any(part.counts.delete_horizons for part in parts),
                has_tv2_commit=any(part.has_tv2 for part in parts),
                has_flexible_transaction_value=reader.has_flexible_value,
                has_magic_2=any(part.counts.batches > part.counts.legacy_batches for part in parts),
                meta_properties_versions=tuple(entry["version"] for entry in meta),
                has_directory_id=any("directory.id" in entry for entry in meta),
                has_bootstrap_checkpoint=self.layout.evidence.has_bootstrap_checkpoint,
                has_topic_id=any(part.directory.topic_id for part in parts),
            )
        )
        return found, BrokerVersions(AUTO, None, str(found.at_least), str(found.at_most), because)

    def _now(self) -> int:
        """The directory's own clock: never the wall clock, so that recorded logs give the same answer for ever."""
        if self.options.now_ms is not None:
            return self.options.now_ms
        newest = max((partition.counts.max_timestamp for partition in self.partitions), default=-1)
        return newest if newest >= 0 else latest_modification(self.layout)

    def _wanted(self, finding: Finding) -> bool:
        chosen = self.options.producer_ids
        if chosen and finding.producer_id is not None and finding.producer_id not in chosen:
            return False
        offending = finding.evidence.get("offending")
        at = offending.get("timestamp") if isinstance(offending, dict) else finding.evidence.get("last_timestamp")
        if not isinstance(at, int):
            return True
        since, until = self.options.since_ms, self.options.until_ms
        return (since is None or at >= since) and (until is None or at <= until)

    def _summary(self, partition: PartitionAudit) -> PartitionSummary:
        directory, counts = partition.directory, partition.counts
        start = directory.log_start_offset
        if self.options.log_start_offset is not None:
            start = self.options.log_start_offset
        elif directory.segments and directory.whole_directory:
            start = max(start or 0, directory.segments[0].base_offset)
        return PartitionSummary(
            topic=directory.topic,
            partition=directory.partition,
            replica=directory.replica,
            log_start_offset=start,
            log_end_offset=partition.log_end_offset,
            last_stable_offset=partition.last_stable_offset,
            compacted=partition.compacted,
            segments=len(directory.segments),
            bytes=sum(segment.size for segment in directory.segments),
            batches=counts.batches,
            records=counts.records,
            producers=partition.producers,
            runs=partition.runs,
        )

    def _total(self, findings: Sequence[Finding]) -> Summary:
        parts = self.partitions
        return Summary(
            partitions=len(parts),
            segments=sum(len(part.directory.segments) for part in parts),
            bytes=sum(segment.size for part in parts for segment in part.directory.segments),
            batches=sum(part.counts.batches for part in parts),
            records=sum(part.counts.records for part in parts),
            producers=sum(part.producers for part in parts),
            runs=sum(part.runs for part in parts),
            findings={
                severity.value: sum(found.severity is severity for found in findings)
                for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE)
            },
        )

    def _not_audited(
        self, unreadable: Sequence[Unreadable], coordinator: CoordinatorView, reader: CoordinatorReader
    ) -> list[NotAudited]:
        told = [NotAudited(entry.path, entry.reason, unreadable=True) for entry in unreadable]
        told += [NotAudited(entry.path, entry.reason) for entry in self.layout.skipped]
        parts = self.partitions
        users = [part for part in parts if part.directory.topic not in INTERNAL_TOPICS]
        told += _aspect(
            (part for part in users if not part.directory.has_checkpoints and self.options.log_start_offset is None),
            "the log start offset is not known: no checkpoint beside the partition (say --log-start-offset)",
        )
        told += _aspect(
            (part for part in parts if part.counts.legacy_batches),
            "magic 0 and 1: no producer ids, sequences are not checkable",
        )
        told += _aspect(
            (part for part in parts if part.compacted and part.directory.topic not in INTERNAL_TOPICS),
            "compacted: missing offsets and the sequences they held are not reported",
        )
        told += _aspect((part for part in parts if part.still_growing), "the last batch was still being written")
        if not coordinator.present:
            told += _aspect(
                (part for part in parts if part.opened),
                "open transactions could not be held against their coordinator: no __transaction_state among the inputs",
            )
        told += [NotAudited(TRANSACTION_STATE, text) for text in reader.unreadable]
        for part in parts:
            more = part.unlisted + part.dropped_facts
            if more:
                told.append(NotAudited(_name(part), f"{more} more anomalies are counted here, not listed"))
        return told


def _segments(partition: PartitionAudit) -> Iterable[SegmentSummary]:
    failed = {entry.path: entry.reason for entry in partition.unreadable}
    directory = partition.directory
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


def latest_modification(layout: Layout) -> int:
    """Newest modification time of any segment, ms since the epoch; 0 without one."""
    return max((segment.modified_ms for part in layout.partitions for segment in part.segments), default=0)


def _aspect(parts: Iterable[PartitionAudit], reason: str) -> list[NotAudited]:
    names = [_name(part) for part in parts]
    if not names:
        return []
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return [NotAudited(names[0] + more, reason)]


def _name(part: PartitionAudit) -> str:
    return f"{part.directory.topic}-{part.directory.partition}"
