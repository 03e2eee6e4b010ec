"""From what was read of every partition to findings: the part of a scan that needs to see all of them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaudit.analysis.coordinator.transaction_state_reader import TRANSACTION_STATE, CoordinatorReader
from kaudit.analysis.producer_ids.allocation_evidence import allocation_evidence
from kaudit.analysis.producer_ids.block_histories import BlockHistories
from kaudit.analysis.repeats.epochs import one_for_each_bump, repeated_epochs
from kaudit.analysis.repeats.non_idempotent_repeats import without_equal_records
from kaudit.analysis.repeats.restarts import handovers
from kaudit.analysis.repeats.sessions import compare_sessions
from kaudit.analysis.replicas.moments import BrokerMoments, broker_moments, same_time
from kaudit.analysis.replicas.other_copies import other_copies
from kaudit.analysis.scan.asked_for import missing_from_inputs, missing_producers
from kaudit.analysis.scan.broker_versions import AUTO, given_version, inferred_versions
from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.analysis.scan.command_line import asked_for, asked_of
from kaudit.analysis.scan.not_audited import anomalies_not_listed, partitions_not_audited
from kaudit.analysis.scan.options import NothingToAuditError, ScanOptions
from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.analysis.scan.partition_context import partition_context
from kaudit.analysis.scan.partition_evidence import partition_evidence, transaction_evidence
from kaudit.analysis.scan.suggestions import suggestions
from kaudit.analysis.scan.summaries import partition_summary, segment_rows, total
from kaudit.analysis.sidefiles.checkpoint_audit import CheckpointAudit
from kaudit.analysis.sidefiles.side_file_reader import SideFileReader
from kaudit.broker.releases.profile import VersionRange
from kaudit.bugs.matching import with_known_bugs
from kaudit.checks.check import Evidence
from kaudit.checks.context import Context
from kaudit.checks.incidents import with_incidents
from kaudit.checks.notes import fold_notes
from kaudit.checks.registry import run_checks
from kaudit.formats.sidefiles.checkpoints import HIGH_WATERMARK_CHECKPOINT
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.finding import Finding, in_order
from kaudit.model.other_copies import HeldRecords, OtherCopies
from kaudit.model.result import BrokerVersions, NotAudited, ScanResult
from kaudit.source.layout import INTERNAL_TOPICS, Layout, PartitionDirectory, Unreadable

if TYPE_CHECKING:
    from kaudit.analysis.log_events.comparison import ComparedLogs


class _Moment(Struct, frozen=True):
    """Partitions copied together (their numbers in the scan), what their coordinator says of them, and their clock, ms."""

    numbers: Sequence[int]
    reader: CoordinatorReader
    coordinator: CoordinatorView
    now_ms: int


ReadCoordinator = Callable[[Sequence[PartitionDirectory], Collection[int]], tuple[CoordinatorReader, CoordinatorView]]
"""Returns what partitions of __transaction_state say of these producer ids, and who read it."""


def coordinator_of(open_source: OpenSource) -> ReadCoordinator:
    """Return what reads __transaction_state whenever it is asked."""

    def read(
        directories: Sequence[PartitionDirectory], wanted: Collection[int]
    ) -> tuple[CoordinatorReader, CoordinatorView]:
        reader = CoordinatorReader(open_source)
        return reader, reader.view(directories, wanted)

    return read


class Audit:
    """Collects partitions and turns them into one result."""

    def __init__(
        self,
        options: ScanOptions,
        layout: Layout,
        open_source: OpenSource,
        histories: BlockHistories,
        read_coordinator: ReadCoordinator | None = None,
    ) -> None:
        self.options = options
        self._read_coordinator = read_coordinator or coordinator_of(open_source)
        self.layout = layout
        self.open_source = open_source
        self.histories = histories
        self.idle_ms = 0
        """For how long nothing has been appended, as far as the directory's own clock does not show it."""
        self.partitions: list[PartitionAudit] = []
        self.not_asked: list[str] = []
        """Why brokers could not be asked for the state of transactions."""
        self._logs: ComparedLogs | None = None
        self.checkpoints = CheckpointAudit(SideFileReader(open_source))

    def add(self, partition: PartitionAudit) -> None:
        """Add a partition that was read."""
        self.look_for_repeats(partition)
        self.add_compared(partition)

    def add_compared(self, partition: PartitionAudit) -> None:
        """Add a partition in which repeats have been looked for; compare it with its log directory's checkpoints."""
        found = [*partition.side_facts, *self.checkpoints.compare(partition)]
        self.partitions.append(replace(partition, side_facts=found))

    def result(self) -> ScanResult:  # noqa: PLR0914 - each is a part of the result
        """Run the checks over everything that was read."""
        parts = self.partitions
        copies = broker_moments(self.layout.everything, self.open_source)
        moments = self._moments(copies)
        versions, stated = self._versions(moments)
        asked = asked_for(self.options, self.layout)
        scan_wide = Context(versions=versions, coordinator=CoordinatorView(), now_ms=self.now(), asked=asked)
        allocation = allocation_evidence(parts, self.histories, self.open_source)
        others = other_copies(parts, self.open_source)
        findings = run_checks(
            scan_wide, Evidence(self.layout.leftover_files, self.checkpoints.unparsable, allocation.histories)
        )
        for moment in moments:
            around = replace(scan_wide, coordinator=moment.coordinator, now_ms=moment.now_ms)
            transactions = transaction_evidence([parts[number] for number in moment.numbers], moment.reader.history)
            for number, ended in zip(moment.numbers, transactions, strict=True):
                found = [*ended, *allocation.partitions[number], *others[number]]
                findings += self._findings(around, parts[number], found)
        findings = with_incidents(in_order(found for found in findings if self._wanted(found)))
        logs = self.compared_logs()
        if logs is not None:
            findings = logs.events.all_explained(findings)
        not_audited = [
            *self._missing(findings),
            *self._not_audited(moments),
            *self.histories.notes,
            *allocation.unlisted,
            *(() if logs is None else logs.not_audited),
        ]
        partitions = [partition_summary(part, self.options.log_start_offset) for part in parts]
        findings = with_known_bugs(findings, versions, partitions)
        return ScanResult(
            inputs=tuple(self.options.paths),
            broker_version=stated,
            partitions=partitions,
            findings=findings,
            not_audited=not_audited,
            summary=total(partitions, findings),
            incomplete=any(note.unreadable for note in not_audited),
            segments=[row for part in parts for row in segment_rows(part.directory, [*part.unreadable, *part.removed])],
            suggestions=list(suggestions(self.options, self.layout.partitions, copies, _held(parts, others))),
            log_events=None if logs is None else logs.summary,
        )

    def _not_audited(self, moments: Sequence[_Moment]) -> Iterator[NotAudited]:
        """Yield what was there and could not be checked."""
        named = {entry.path for entry in self.layout.empty_inputs}
        for entry in self._unreadable():
            yield NotAudited(entry.path, entry.reason, unreadable=True)
        for entry in self.layout.skipped:
            if entry.path not in named:
                yield NotAudited(entry.path, entry.reason)
        alone = [number for moment in moments if not moment.coordinator.present for number in moment.numbers]
        yield from partitions_not_audited(
            self.partitions,
            log_start_given=self.options.log_start_offset is not None,
            without_coordinator=[self.partitions[number] for number in alone],
        )
        for text in self.not_asked:
            yield NotAudited("open transactions", f"their state could not be asked for: {text}")
        for moment in moments:
            for text in moment.reader.unreadable:
                yield NotAudited(TRANSACTION_STATE, text)
        yield from anomalies_not_listed(self.partitions)

    def compared_logs(self) -> "ComparedLogs | None":
        """Return what the logs of brokers and clients say of the partitions, None without any. Called once all are read."""
        if self.options.logs is not None and self._logs is None:
            from kaudit.analysis.log_events.comparison import compare_logs  # noqa: PLC0415 - few audits have logs

            self._logs = compare_logs(self.options.logs, self.partitions, self.open_source)
        return self._logs

    def _missing(self, findings: Sequence[Finding]) -> list[NotAudited]:
        """Return what was asked for and is not there.

        Raises NothingToAuditError where that is every producer id asked for.
        """
        known = [finding.producer_id for finding in findings]
        producers = list(missing_producers(self.options, [part.producer_ids for part in self.partitions], known))
        if producers and len(producers) == len(set(self.options.producer_ids)):
            raise NothingToAuditError("; ".join(f"{entry.path}: {entry.reason}" for entry in producers))
        return [*missing_from_inputs(self.options, self.layout), *producers]

    def look_for_repeats(self, partition: PartitionAudit) -> None:
        """Read again what may be there twice, and keep what is."""
        directory = partition.directory
        partition.repeats = without_equal_records(partition.repeats, directory, self.open_source)
        sessions = [*partition.sessions, *handovers(partition.restarts, directory, self.open_source)]
        partition.repeated_sessions, epochs = compare_sessions(sessions, directory, self.open_source)
        partition.restarts_compared, partition.sessions = len(partition.restarts), ()
        partition.restarts = ()
        if not partition.coverage_gaps and directory.topic not in INTERNAL_TOPICS:
            of_batches, partition.bumps_not_compared = repeated_epochs(
                partition.observations, directory, self.open_source
            )
            partition.repeated_epochs = one_for_each_bump([*epochs, *of_batches])

    def transactional_ids(self, wanted: Callable[[int], bool]) -> Mapping[int, str]:
        """Return the transactional id of each wanted producer id that __transaction_state names."""
        directories = [entry for entry in self.layout.everything if entry.topic == TRANSACTION_STATE]
        return CoordinatorReader(self.open_source).names(directories, wanted)

    def high_watermarks(self) -> Mapping[tuple[str, int, str], int]:
        """Return what replication-offset-checkpoint says, by topic, partition and replica."""
        return self.checkpoints.offsets((part.directory for part in self.partitions), HIGH_WATERMARK_CHECKPOINT)

    def _findings(self, around: Context, part: PartitionAudit, found: Iterable[object]) -> list[Finding]:
        """Run the checks of one partition; `found` is what the others show of it."""
        context = partition_context(
            around,
            part.directory,
            compacted=part.compacted,
            log_end_offset=part.log_end_offset,
            asked=asked_of(part.directory, around.asked, self.options),
        )
        return fold_notes(run_checks(context, partition_evidence(part, found, self.open_source, around.versions)))

    def now(self) -> int:
        """The directory's own clock: never the wall clock, so that recorded logs give the same answer for ever."""
        if self.options.now_ms is not None:
            return self.options.now_ms
        return self._clock(self.partitions)

    def _clock(self, parts: Iterable[PartitionAudit]) -> int:
        newest = max((part.counts.max_timestamp for part in parts), default=-1)
        return (newest if newest >= 0 else latest_modification(self.layout)) + self.idle_ms

    def _moments(self, copies: Sequence[BrokerMoments]) -> list[_Moment]:
        """Group the partitions by when they were copied: a coordinator's log of another time says nothing about them."""
        together = same_time(self.layout.everything, copies, self.open_source)
        return [self._moment(log_dirs) for log_dirs in together]

    def _moment(self, log_dirs: Collection[str]) -> _Moment:
        numbers = [number for number, part in enumerate(self.partitions) if part.directory.log_dir in log_dirs]
        parts = [self.partitions[number] for number in numbers]
        directories = [
            entry for entry in self.layout.everything if entry.topic == TRANSACTION_STATE and entry.log_dir in log_dirs
        ]
        wanted = {transaction.producer_id for part in parts for transaction in part.opened}
        if directories:
            reader, coordinator = self._read_coordinator(directories, wanted)
        else:
            reader, coordinator = CoordinatorReader(self.open_source), self._live_view(parts)
        now = self.options.now_ms if self.options.now_ms is not None else self._clock(parts)
        return _Moment(numbers, reader, coordinator, now)

    def _live_view(self, parts: Sequence[PartitionAudit]) -> CoordinatorView:
        """Return what live brokers say of the open transactions of partitions that they sent."""
        fetched = [part for part in parts if part.directory.is_fetched]
        if not any(part.opened for part in fetched):
            return CoordinatorView()
        from kaudit.analysis.coordinator.live_coordinator import ask_coordinators  # noqa: PLC0415 - an extra

        return ask_coordinators(fetched, self.not_asked)

    def _versions(self, moments: Sequence[_Moment]) -> tuple[VersionRange, BrokerVersions]:
        if self.options.broker_version != AUTO:
            return given_version(self.options.broker_version)
        return inferred_versions(
            self.layout,
            self.partitions,
            self.open_source,
            flexible_transaction_value=any(moment.reader.has_flexible_value for moment in moments),
        )

    def _unreadable(self) -> list[Unreadable]:
        return [
            *self.layout.unreadable,
            *(entry for partition in self.partitions for entry in partition.unreadable),
            *(entry for partition in self.partitions for entry in partition.side_files_unread),
            *self.checkpoints.files.unreadable,
        ]

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


def _held(
    parts: Sequence[PartitionAudit], others: Sequence[Sequence[OtherCopies]]
) -> Iterator[tuple[str, HeldRecords]]:
    """The records that other copies hold where the leader of each of `parts` changed, by the partition's name."""
    for part, changes in zip(parts, others, strict=True):
        for change in changes:
            yield from ((part.directory.name, held) for held in change.held_by)


def latest_modification(layout: Layout) -> int:
    """Newest modification time of any segment, ms since the epoch; 0 without one."""
    return max((segment.modified_ms for part in layout.partitions for segment in part.segments), default=0)
