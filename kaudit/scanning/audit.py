"""From what was read of every partition to findings: the part of a scan that needs to see all of them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.coordinator.transaction_state_reader import (
    TRANSACTION_STATE,
    CoordinatorReader,
    ExpiredIds,
    ReadCoordinator,
    ReadNames,
    coordinator_of,
    names_of,
)
from kaudit.audits.replicas.broker_copies import BrokerCopies, broker_copies, copied_together, of_one_run
from kaudit.audits.sequences.rescan import Rescan, rescan_here
from kaudit.audits.sidefiles.log_facts import SideFileReader
from kaudit.broker.releases.profile import VersionRange
from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.checks.incident_groups import with_incidents
from kaudit.checks.registry import run_checks
from kaudit.errors import UnreadableInputError
from kaudit.model.audit_clock import AuditClock, given_clock
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.finding import Finding
from kaudit.model.internal_topics import REMOTE_LOG
from kaudit.model.result import BrokerVersions, NotAudited, ScanResult, StateUse
from kaudit.model.side_files import CheckpointBeyondLogEnd
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.find_repeats import find_repeats
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.failed_reads import FailedReads
from kaudit.scanning.allocation_evidence import allocation_evidence
from kaudit.scanning.block_histories import BlockHistories
from kaudit.scanning.checkpoint_audit import CheckpointAudit
from kaudit.scanning.clock import audit_clock
from kaudit.scanning.consumed_offsets import evidence_of_groups, group_logs_of
from kaudit.scanning.cut_off import as_notes, by_lines_alone, copies_that_fail, not_given
from kaudit.scanning.findings import (
    CrossPartitionEvidence,
    ScanContext,
    asked_for,
    complete_findings,
    partition_findings,
    replicas_of,
    transaction_evidence,
)
from kaudit.scanning.group_logs import GroupLog, ReadGroupLogs, questions_of
from kaudit.scanning.not_covered import (
    anomalies_not_listed,
    missing_from_inputs,
    missing_producers,
    offsets_not_checked,
    partitions_not_audited,
    transactions_without_clock,
    without_digest,
)
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.other_copies import about_copies
from kaudit.scanning.result_parts import ResultWithoutFindings, ScanFindings
from kaudit.scanning.summaries import coverage_of, digests_of, partition_summary, segment_rows, total
from kaudit.scanning.versions import AUTO, ReadLevels, feature_levels, given_version, inferred_versions
from kaudit.source.file_kinds import HIGH_WATERMARK_CHECKPOINT
from kaudit.source.layout import CLUSTER_METADATA, Layout, PartitionDirectory, Unreadable

if TYPE_CHECKING:
    from kaudit.scanning.log_comparison import ComparedLogs


class _CopyGroup(Struct, frozen=True):
    """Partitions copied at the same time (their numbers in the scan), their coordinator's view of them, and their clock."""

    numbers: Sequence[int]
    reader: CoordinatorReader
    coordinator: CoordinatorView
    clock: AuditClock


def _newest(groups: Sequence[_CopyGroup]) -> AuditClock:
    return max((group.clock for group in groups), key=lambda clock: clock.latest_ms)


class CrossPartition(Struct, frozen=True):
    """Results that need all partitions: evidence about each one (`others`), findings about the whole scan, parts of the result."""

    context: ScanContext
    others: Sequence[CrossPartitionEvidence]
    findings: Sequence[Finding]
    outside: int
    """Findings about the whole scan that are left out because of the time asked for."""
    groups: Sequence[_CopyGroup]
    copies: Sequence[BrokerCopies]
    stated: BrokerVersions
    unlisted: Sequence[NotAudited]


class Audit:
    """Collects partitions and turns them into one result.

    An engine that makes findings in its tasks adds outlines only: it calls `cross_partition`, then `result_of` with its findings.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - independent inputs
        self,
        options: ScanOptions,
        layout: Layout,
        open_source: OpenSource,
        histories: BlockHistories,
        read_coordinator: ReadCoordinator | None = None,
        rescan: Rescan | None = None,
        read_names: ReadNames | None = None,
        read_levels: ReadLevels | None = None,
        read_group_logs: ReadGroupLogs | None = None,
    ) -> None:
        self.options = options
        self.reads = FailedReads(open_source)
        """Everything that is read here, after the partitions themselves: what fails is not audited."""
        self._read_coordinator = read_coordinator or coordinator_of(self.reads)
        self._rescan = rescan or rescan_here(self.reads)
        self._read_names = read_names or names_of(self.reads)
        self._read_levels = read_levels or partial(feature_levels, open_source=self.reads)
        self._read_group_logs = read_group_logs or group_logs_of(self.reads)
        self.group_logs: tuple[GroupLog, ...] = ()
        """What __consumer_offsets shows. Known from `cross_partition` on."""
        self._not_compared: tuple[NotAudited, ...] = ()
        self.layout = layout
        self.runs: Sequence[frozenset[str]] = ()
        """The log directories of each cluster. Known from `cross_partition` on."""
        self.histories = histories
        self.idle_ms = 0
        """For how long nothing has been appended, as far as the directory's own clock does not show it."""
        self.partitions: list[PartitionAudit] = []
        self._beyond: list[list[CheckpointBeyondLogEnd]] = []
        self.not_asked: list[NotAudited] = []
        """Why brokers could not be asked for the state of transactions."""
        self.failed: list[Unreadable] = []
        """Files that tasks elsewhere could not read."""
        self._noted: set[str] = set()
        self.expired = ExpiredIds()
        """The transactional ids that have expired, as `cross_partition` finds in __transaction_state."""
        self.state: StateUse | None = None
        """What was taken from a saved state, before that of the partitions is added."""
        self._logs: ComparedLogs | None = None
        self.checkpoints = CheckpointAudit(SideFileReader(open_source))

    def add(self, partition: PartitionAudit) -> None:
        """Add a partition that was read."""
        find_repeats(partition, self.reads)
        self.add_compared(partition)

    def add_compared(self, partition: PartitionAudit) -> None:
        """Add a partition whose repeats were looked for; compare it with its log directory's checkpoints."""
        if self.state is not None and partition.state is not None:
            self.state.add(partition.state)
        self._beyond.append(list(self.checkpoints.compare(partition)))
        self.partitions.append(partition)

    def result(self) -> ScanResult:
        """Run the checks over everything that was read."""
        cross = self.cross_partition()
        findings, outside = list(cross.findings), cross.outside
        for replicas in replicas_of([part.directory for part in self.partitions]):
            own = [self.partitions[number] for number in replicas]
            others = [cross.others[number] for number in replicas]
            found, left_out = partition_findings(own, others, cross.context, self.reads)
            findings += found
            outside += left_out
        return self.result_of(
            cross,
            ScanFindings(
                with_incidents(findings),
                {finding.producer_id for finding in findings if finding.producer_id is not None},
                outside=outside,
            ),
        )

    def cross_partition(self) -> CrossPartition:
        """Return what needs all partitions; their outlines are enough for that."""
        parts = self.partitions
        copies = broker_copies(self.layout.everything, self.reads)
        groups = self._copy_groups(copies)
        versions, stated = self._versions(groups)
        scan_wide = Context(
            versions=versions,
            coordinator=CoordinatorView(),
            clock=_newest(groups),
            asked=asked_for(self.options, self.layout),
        )
        allocation = allocation_evidence(parts, self.histories, self._rescan)
        groups_show = self._evidence_of_groups()
        others: list[CrossPartitionEvidence] = [CrossPartitionEvidence(0)] * len(parts)
        for index, group in enumerate(groups):
            transactions = transaction_evidence([parts[number] for number in group.numbers], group.reader.history)
            for number, ended in zip(group.numbers, transactions, strict=True):
                found = [*ended, *allocation.partitions[number], *self._beyond[number], *groups_show[number]]
                others[number] = CrossPartitionEvidence(index, found, allocation.grants[number])
        logs = self._compare_logs(groups)
        context = ScanContext(
            self.options,
            scan_wide,
            [replace(scan_wide, coordinator=group.coordinator, clock=group.clock) for group in groups],
            copies,
            None if logs is None else logs.events,
            [directory for directory in self.layout.everything if directory.topic == CLUSTER_METADATA],
        )
        evidence = Evidence(
            self.layout.leftover_files,
            self.checkpoints.unparsable,
            allocation.histories,
            about_copies(
                self.options,
                self.layout,
                self.partitions,
                {} if logs is None else logs.events.removed_topics,
                self.reads,
            ),
        )
        if logs is not None:
            evidence.add(logs.incidents)
            evidence.add(
                by_lines_alone(self.options, parts, logs.events.histories, self.layout.latest_modification, self.reads)
            )
            evidence.add(copies_that_fail(self.options, logs.events.histories, self.group_logs))
        findings = complete_findings(
            as_notes(run_checks(scan_wide, evidence), self.checkpoints.left_out(self.layout)), context, frozenset()
        )
        return CrossPartition(context, others, *findings, groups, copies, stated, allocation.unlisted)

    def result_of(self, cross: CrossPartition, found: ScanFindings) -> ScanResult:
        """Return the result with what was found, including the findings of `cross`."""
        return self.without_findings(cross).with_findings(found)

    def without_findings(self, cross: CrossPartition) -> "ResultWithoutFindings":
        """Return the result as far as findings do not change it."""
        parts, logs = self.partitions, self.compared_logs()
        newest, start = cross.context.scan_wide.versions.newest, self.options.log_start_offset
        partitions = [partition_summary(part, newest, log_start_offset=start) for part in parts]
        return ResultWithoutFindings(
            self.options,
            ScanResult(
                inputs=tuple(self.options.paths),
                broker_version=cross.stated,
                partitions=partitions,
                findings=(),
                not_audited=[
                    *self._not_audited(cross.groups),
                    *self.histories.notes,
                    *cross.unlisted,
                    *not_given(cross.findings, self.checkpoints.left_out(self.layout)),
                    *(without_digest(parts) if self.options.digests else ()),
                    *(() if logs is None else self._not_named(logs.not_audited)),
                ],
                summary=total(partitions, ()),
                segments=[
                    row for part in parts for row in segment_rows(part.directory, [*part.unreadable, *part.removed])
                ],
                clock=cross.context.scan_wide.clock,
                log_events=None if logs is None or not logs.summary.files else logs.summary,
                digests=digests_of(parts) if self.options.digests else None,
                state=self.state,
                coverage=coverage_of(parts, log_start_given=start is not None),
            ),
            missing_inputs=list(missing_from_inputs(self.options, self.layout)),
            missing_producers=list(missing_producers(self.options, [part.producer_ids for part in parts], ())),
            directories=self.layout.partitions,
            copies=cross.copies,
        )

    def _not_audited(self, groups: Sequence[_CopyGroup]) -> Iterator[NotAudited]:
        """Yield what was there and could not be checked."""
        for path, reason in self._unreadable(groups).items():
            yield NotAudited(path, reason, unreadable=True)
        yield from self.reads.removed
        yield from self._not_named(NotAudited(entry.path, entry.reason) for entry in self.layout.skipped)
        alone = [group for group in groups if group.numbers and not group.coordinator.present]
        yield from partitions_not_audited(
            self.partitions,
            log_start_given=self.options.log_start_offset is not None,
            without_coordinator=[[self.partitions[number] for number in group.numbers] for group in alone],
            other_coordinators=len(alone) < len(groups),
        )
        for group in groups:
            own = [self.partitions[number] for number in group.numbers]
            yield from transactions_without_clock(own, group.coordinator, group.clock)
        yield from self.not_asked
        for group in groups:
            for text in group.reader.unreadable:
                yield NotAudited(TRANSACTION_STATE, text)
        yield from chain.from_iterable(log.notes for log in self.group_logs)
        yield from self._not_compared
        yield from anomalies_not_listed(self.partitions)
        yield from offsets_not_checked(self.partitions, () if self.options.logs is None else self.options.logs.kept)

    def _not_named(self, notes: Iterable[NotAudited]) -> Iterator[NotAudited]:
        """Yield the notes that are about no input as it was given: those are missing inputs."""
        named = {entry.path for entry in self.layout.empty_inputs}
        return (note for note in notes if note.path not in named)

    def compared_logs(self) -> "ComparedLogs | None":
        """Return what the logs of brokers and clients say of the partitions, None without any. Known from `cross_partition` on."""
        return self._logs

    def _compare_logs(self, groups: Sequence[_CopyGroup]) -> "ComparedLogs | None":
        if self.options.logs is not None:
            from kaudit.scanning.log_comparison import compare_logs  # noqa: PLC0415 - few audits have logs

            entries = dict(chain.from_iterable(group.coordinator.entries.items() for group in groups))
            self._logs = compare_logs(self.options.logs, self.partitions, self.reads, entries)
        return self._logs

    def transactional_ids(
        self, wanted: Collection[int] | None, run: Collection[str] | None = None
    ) -> Mapping[int, str]:
        """Return the transactional id of each wanted producer id that the coordinator's logs name, those of `run` if given; of all if None.

        Raises:
            UnreadableInputError: a file of them could be read for the result, and cannot be read now.

        """
        logs = self.coordinator_logs if run is None else self.coordinator_logs_of(run)
        return self._read_names(logs, None if wanted is None else np.fromiter(wanted, dtype=np.int64))

    def of_run(self, run: Collection[str]) -> list[int]:
        """Return the numbers of the partitions that lie in these log directories."""
        return [number for number, part in enumerate(self.partitions) if part.directory.log_dir in run]

    def _evidence_of_groups(self) -> list[list[object]]:
        found: list[list[object]] = [[] for _ in self.partitions]
        for run in self.runs:
            numbers = self.of_run(run)
            for number, own in zip(numbers, self._evidence_of_run(run, numbers), strict=True):
                found[number] = own
        return found

    def _evidence_of_run(self, run: Collection[str], numbers: Sequence[int]) -> list[list[object]]:
        parts = [self.partitions[number] for number in numbers]
        directories = [entry for entry in self.layout.everything if entry.log_dir in run]
        questions = questions_of(directories, parts, self.checkpoints, self.options.listed_transactions)
        logs = self._read_group_logs(questions)
        self.group_logs += tuple(logs)
        evidence = [evidence_of_groups(parts, logs, self.checkpoints)]
        if any(log.remote for log in logs):
            compare = import_module("kaudit.scanning.tiered").evidence_of_remote_logs  # few inputs have remote segments
            evidence.append(compare(parts, logs, self.checkpoints.files))
        groups = [log for log in logs if log.directory.topic != REMOTE_LOG]
        if groups:
            match = import_module("kaudit.scanning.exactly_once").exactly_once  # few inputs have commits
            decided, not_compared = match(parts, groups, partial(self._known_names, run), self.reads)
            self._not_compared += tuple(not_compared)
            evidence.append(decided)
        return [list(chain.from_iterable(own)) for own in zip(*evidence, strict=True)]

    def _known_names(self, run: Collection[str], wanted: Collection[int]) -> Mapping[int, str]:
        """Return the transactional ids of producer ids for findings: none where they cannot be read, which the result says."""
        try:
            return self.transactional_ids(wanted, run)
        except UnreadableInputError:
            return {}

    @property
    def coordinator_logs(self) -> Sequence[PartitionDirectory]:
        """The partitions of __transaction_state, if all inputs are of one cluster: a producer id is another producer in each."""
        return self.coordinator_logs_of(self.runs[0]) if len(self.runs) == 1 else ()

    def coordinator_logs_of(self, run: Collection[str]) -> Sequence[PartitionDirectory]:
        """Return the partitions of __transaction_state in log directories, without the files that the result says cannot be read."""
        return [
            replace(entry, segments=tuple(file for file in entry.segments if file.path not in self._noted))
            for entry in self.layout.everything
            if entry.topic == TRANSACTION_STATE and entry.log_dir in run
        ]

    def high_watermarks(self) -> Mapping[tuple[str, int, str], int]:
        """Return what replication-offset-checkpoint says, by topic, partition and replica."""
        return self.checkpoints.offsets((part.directory for part in self.partitions), HIGH_WATERMARK_CHECKPOINT)

    def _clock(self, parts: Collection[PartitionAudit], coordinator_ms: int) -> AuditClock:
        """The partitions' own clock: never the wall clock, so that recorded logs give the same answer for ever."""
        if self.options.now_ms is not None:
            return given_clock(self.options.now_ms)
        modified = self.layout.latest_modification
        return audit_clock(parts, coordinator_ms=coordinator_ms, modified_ms=modified, quiet_ms=self.idle_ms)

    def _copy_groups(self, copies: Sequence[BrokerCopies]) -> list[_CopyGroup]:
        """Group the partitions by when they were copied: a coordinator's log of another time says nothing about them."""
        groups = copied_together(self.layout.everything, copies, self.reads)
        self.runs = of_one_run(self.layout.everything, groups)
        return [self._copy_group(log_dirs) for log_dirs in groups]

    def _copy_group(self, log_dirs: Collection[str]) -> _CopyGroup:
        numbers = [number for number, part in enumerate(self.partitions) if part.directory.log_dir in log_dirs]
        parts = [self.partitions[number] for number in numbers]
        directories = [
            entry for entry in self.layout.everything if entry.topic == TRANSACTION_STATE and entry.log_dir in log_dirs
        ]
        wanted = {transaction.producer_id for part in parts for transaction in part.opened}
        wanted.update(() if self.options.logs is None else self.options.logs.producer_ids)
        if directories:
            reader, coordinator = self._read_coordinator(directories, wanted)
            self.expired.add(reader.expired)
        else:
            reader, coordinator = CoordinatorReader(self.reads), self._live_view(parts)
        return _CopyGroup(numbers, reader, coordinator, self._clock(parts, coordinator.newest_ms))

    def _live_view(self, parts: Sequence[PartitionAudit]) -> CoordinatorView:
        """Return what live brokers say of the open transactions of partitions that they sent."""
        fetched = [part for part in parts if part.directory.is_fetched]
        if not any(part.opened for part in fetched):
            return CoordinatorView()
        from kaudit.scanning.live_coordinator import ask_coordinators  # noqa: PLC0415 - an extra

        return ask_coordinators(fetched, self.not_asked)

    def _versions(self, groups: Sequence[_CopyGroup]) -> tuple[VersionRange, BrokerVersions]:
        if self.options.broker_version != AUTO:
            return given_version(self.options.broker_version)
        return inferred_versions(
            self.layout,
            self.partitions,
            self._read_levels,
            flexible_transaction_value=any(group.reader.has_flexible_value for group in groups),
        )

    def _unreadable(self, groups: Sequence[_CopyGroup]) -> dict[str, str]:
        """Return the paths that could not be read, each with the first reason: several readers may have tried."""
        found = chain(
            self.layout.unreadable,
            *(partition.unreadable for partition in self.partitions),
            *(partition.failed_reads for partition in self.partitions),
            *(group.reader.failed for group in groups),
            *(log.failed for log in self.group_logs),
            self.checkpoints.files.unreadable,
            self.reads.unreadable,
            self.failed,
        )
        reasons: dict[str, str] = {}
        for entry in found:
            reasons.setdefault(entry.path, entry.reason)
        self._noted.update(reasons)
        return reasons
