"""From what was read of every partition to findings: the part of a scan that needs to see all of them."""

from collections.abc import Iterable, Sequence

from kaudit.analysis.coordinator.decision_history import DecisionHistory
from kaudit.analysis.coordinator.transaction_state_reader import TRANSACTION_STATE, CoordinatorReader
from kaudit.analysis.producer_ids.allocation_audit import AllocationAudit
from kaudit.analysis.producer_ids.block_book import BlockBook
from kaudit.analysis.producer_ids.partition_producer_ids import PartitionProducerIds
from kaudit.analysis.repeats.non_idempotent_repeats import settle_repeats
from kaudit.analysis.repeats.sessions import compare_sessions
from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.analysis.scan.feature_levels import METADATA_VERSION, TRANSACTION_VERSION, feature_levels
from kaudit.analysis.scan.options import ScanOptions, UsageError
from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.analysis.scan.segment_summaries import segment_rows
from kaudit.analysis.sequences.expired_producers import evicted_producers
from kaudit.analysis.sequences.step_patterns import step_mismatches
from kaudit.analysis.sidefiles.checkpoint_audit import CheckpointAudit
from kaudit.analysis.sidefiles.side_file_reader import SideFileReader
from kaudit.analysis.sidefiles.snapshot_states import Suspects
from kaudit.analysis.transactions.marker_outcomes import compare_outcomes
from kaudit.broker.releases.profile import UnknownVersionError, VersionRange, profile_for
from kaudit.broker.releases.version_evidence import VersionEvidence, infer_range
from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.checks.notes import fold_notes
from kaudit.checks.registry import run_checks
from kaudit.checks.repeats import report_repeats, report_resent
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.coverage_gap import CoverageGap
from kaudit.model.damage import DamageKind
from kaudit.model.finding import Finding, Severity
from kaudit.model.forgotten_producers import EvictedProducer
from kaudit.model.producer_snapshot import SnapshotComparison
from kaudit.model.result import BrokerVersions, NotAudited, PartitionSummary, ScanResult, Summary
from kaudit.source.layout import INTERNAL_TOPICS, Layout, PartitionDirectory, Unreadable

AUTO = "auto"


class Audit:
    """Collects partitions and turns them into one result."""

    def __init__(self, options: ScanOptions, layout: Layout, open_source: OpenSource, book: BlockBook) -> None:
        self.options = options
        self.layout = layout
        self.open_source = open_source
        self.book = book
        self.partitions: list[PartitionAudit] = []
        self.checkpoints = CheckpointAudit(SideFileReader(open_source))

    def add(self, partition: PartitionAudit) -> None:
        """Add a partition that was read, and look at its rows in its log directory's checkpoints."""
        if partition.log is not None:
            partition.side_facts = [*partition.side_facts, *self.checkpoints.compare(partition.log)]
            partition.log = None
        partition.repeats = settle_repeats(partition.repeats, partition.directory, self.open_source)
        partition.resent = compare_sessions(partition.sessions, partition.directory, self.open_source)
        partition.sessions = ()
        self.partitions.append(partition)

    def result(self) -> ScanResult:
        """Judge everything that was read."""
        reader = CoordinatorReader(self.open_source)
        coordinator = self._coordinator(reader)
        versions, told = self._versions(reader)
        now = self.now()
        contexts = [self._context(partition, versions, coordinator, now) for partition in self.partitions]
        allocation = AllocationAudit(self.book, self.open_source)
        inhabitants = [_inhabitants(partition) for partition in self.partitions]
        findings: list[Finding] = []
        outcomes = self._transaction_evidence(reader.history)
        for partition, context, own, ended in zip(self.partitions, contexts, inhabitants, outcomes, strict=True):
            flood, shared = allocation.partition_findings(own, context)
            findings += self._partition_findings(partition, context, flood, [*ended, *shared])
        findings += allocation.cluster_findings(inhabitants, contexts.__getitem__)
        outside = Context(versions=versions, coordinator=coordinator, now_ms=now)
        findings += run_checks(outside, Evidence(self.layout.leftover_files, self.checkpoints.unparsable))
        findings = sorted((found for found in findings if self._wanted(found)), key=Finding.sort_key)
        unreadable = [
            *self.layout.unreadable,
            *(entry for partition in self.partitions for entry in partition.unreadable),
            *(entry for partition in self.partitions for entry in partition.side_files_unread),
            *self.checkpoints.files.unreadable,
        ]
        return ScanResult(
            inputs=tuple(self.options.paths),
            broker_version=told,
            partitions=[self._summary(partition) for partition in self.partitions],
            findings=findings,
            not_audited=[
                *self._not_audited(unreadable, coordinator, reader),
                *self.book.notes,
                *allocation.unlisted,
            ],
            summary=self._total(findings),
            incomplete=bool(unreadable) or any(note.unreadable for note in self.book.notes),
            segments=[
                row for partition in self.partitions for row in segment_rows(partition.directory, partition.unreadable)
            ],
        )

    def _transaction_evidence(self, history: DecisionHistory) -> list[list[object]]:
        """Return, for each partition, what contradicts the coordinator's decisions, and what its own log contradicts."""
        found: list[list[object]] = [
            [transition for directory, transition in history.transitions if directory == part.directory]
            for part in self.partitions
        ]
        with_markers = [
            (own, part.markers) for own, part in zip(found, self.partitions, strict=True) if part.markers is not None
        ]
        mismatched = compare_outcomes([markers for _, markers in with_markers], history.decisions)
        for (own, _), markers in zip(with_markers, mismatched, strict=True):
            own.extend(markers)
        return found

    @staticmethod
    def _context(partition: PartitionAudit, versions: VersionRange, coordinator: CoordinatorView, now: int) -> Context:
        directory = partition.directory
        return Context(
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
            texts=sorted({segment.path for segment in directory.segments if segment.text is not None}),
        )

    def _partition_findings(
        self, partition: PartitionAudit, context: Context, allocation: Sequence[Finding], found: Sequence[object]
    ) -> list[Finding]:
        directory = partition.directory
        holes = partition.compacted or bool(partition.missing or partition.damages)
        # what damage did to the log it also did to this comparison: one damage, one finding
        suspects = () if partition.damages else partition.suspects
        snapshots = self._compared(directory, context, suspects, holes=holes)
        evicted = self._evicted(directory, context.versions)
        evidence = Evidence(
            found,
            partition.unreadable,
            partition.observations,
            step_mismatches(partition.observations),
            partition.missing,
            partition.damages,
            partition.regressions,
            directory.leftover_files,
            partition.malformed,
            partition.side_facts,
            snapshots,
            partition.opened,
            partition.idle,
            evicted,
            [] if partition.empty_marker is None else [partition.empty_marker],
        )
        return fold_notes(
            [
                *report_repeats(context, partition.repeats),
                *report_resent(context, partition.resent),
                *allocation,
                *run_checks(context, evidence),
            ]
        )

    def _compared(
        self, directory: PartitionDirectory, context: Context, suspects: Sequence[Suspects], *, holes: bool
    ) -> list[SnapshotComparison]:
        if not suspects:
            return []
        # imported here: the brokers' rules come with it, and few logs have a snapshot to doubt
        from kaudit.analysis.sidefiles.snapshot_check import compare_snapshots  # noqa: PLC0415

        return compare_snapshots(directory, suspects, self.open_source, context.versions, holes=holes)

    def _evicted(self, directory: PartitionDirectory, versions: VersionRange) -> list[EvictedProducer]:
        """Look for producers that were forgotten, where every version in question forgets them."""
        if not versions.all(lambda profile: profile.forgets_on_log_start_advance):
            return []
        try:
            return evicted_producers(directory, self.open_source)
        except OSError:
            return []  # reading the segment for the audit has told of it

    def _coordinator(self, reader: CoordinatorReader) -> CoordinatorView:
        directories = [entry for entry in self.layout.everything if entry.topic == TRANSACTION_STATE]
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
        features = feature_levels(self.layout.everything, self.open_source)
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
                metadata_version=features.get(METADATA_VERSION, 0),
                transaction_version=features.get(TRANSACTION_VERSION, 0),
            )
        )
        return found, BrokerVersions(AUTO, None, str(found.at_least), str(found.at_most), because)

    def now(self) -> int:
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
            "the log start offset is not known: no checkpoint beside the partition (pass --log-start-offset)",
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
        for kind in CoverageGap:
            told += _aspect((part for part in parts if kind in part.coverage_gaps), kind.value)
        told += [entry for part in parts for entry in _left_out(part)]
        if not coordinator.present:
            told += _aspect(
                (part for part in parts if part.opened),
                "open transactions could not be held against their coordinator: no __transaction_state among the inputs",
            )
        told += [NotAudited(TRANSACTION_STATE, text) for text in reader.unreadable]
        for part in parts:
            more = part.unlisted + part.dropped_observations
            if more:
                told.append(NotAudited(_name(part), f"{more} more anomalies are counted here, not listed"))
        return told


def latest_modification(layout: Layout) -> int:
    """Newest modification time of any segment, ms since the epoch; 0 without one."""
    return max((segment.modified_ms for part in layout.partitions for segment in part.segments), default=0)


def _inhabitants(part: PartitionAudit) -> PartitionProducerIds:
    return PartitionProducerIds(part.directory, part.producer_ids, part.producers, part.observations, part.counts)


def _left_out(part: PartitionAudit) -> list[NotAudited]:
    """What a text in place of the segments leaves out."""
    found = [placed for placed in part.damages if placed.damage.kind is DamageKind.LEFT_OUT]
    if not found:
        return []
    first = found[0]
    more = f", and {len(found) - 1} more such places" if len(found) > 1 else ""
    segment = part.directory.segments[first.segment].name
    return [NotAudited(_name(part), f"{segment}: {first.damage.detail}: what lies there is not audited{more}")]


def _aspect(parts: Iterable[PartitionAudit], reason: str) -> list[NotAudited]:
    names = [_name(part) for part in parts]
    if not names:
        return []
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return [NotAudited(names[0] + more, reason)]


def _name(part: PartitionAudit) -> str:
    return f"{part.directory.topic}-{part.directory.partition}"
