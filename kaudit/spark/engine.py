"""The Spark engine: the pipeline of the local engine, its ranges and partitions scheduled as Spark tasks.

Reading tasks compress ranges where they read them; their rows are shuffled, by partition replica; replaying tasks put
partitions together and read again what must be read twice. What only all partitions show the driver finds out from their
outlines; tasks make findings with it. The driver gets counts and as many findings as are listed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, get_type_hints

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from kaudit.checks.incident_groups import marked_with, partition_incidents
from kaudit.engines.engine import AuditedInput, Done, Engine, Task
from kaudit.engines.engine import Job as PartitionJob
from kaudit.engines.progress import Progress
from kaudit.engines.rows import NO_ROWS, Rows
from kaudit.listings.producer_histories import RecordedScan
from kaudit.listings.producer_listing import ListedProducers
from kaudit.listings.query import Query
from kaudit.listings.timeline import with_names
from kaudit.listings.transactions import Query as TransactionQuery
from kaudit.listings.transactions import TransactionListing, transaction_listing
from kaudit.model.finding import Finding
from kaudit.model.limits import TIMELINES
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.model.timeline import Timeline
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.job import Job
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.saved_partition import SavedPartition
from kaudit.reading.shuffle_codec import unpack
from kaudit.scanning.audit import Audit, CrossPartition
from kaudit.scanning.opened_state import OpenedState
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.versions import newest_profile
from kaudit.source.schemes import open_segment
from kaudit.spark.jobs import (
    JobProgress,
    ReadMetrics,
    SparkFailedError,
    ask_tasks,
    collected,
    errors_in_one_line,
    from_here,
    named_job,
    on_disk,
    require_readable,
    retries,
)
from kaudit.spark.plan import AuditPlan, SparkPlan, listed_input
from kaudit.spark.producer_listing import NamesOfJobs, RowsOfList, list_producers, shared_ids, shares_of
from kaudit.spark.reading_in_tasks import ReadingInTasks, read_metadata_logs, replayed_on
from kaudit.spark.releases import arrow_table
from kaudit.spark.session import SparkOptions, session
from kaudit.spark.tables import SparkTables
from kaudit.spark.task_findings import (
    FOUND,
    TIMELINE_COUNTS,
    TIMELINE_ROWS,
    AllCounts,
    FindingCounts,
    FindingsInTasks,
    SentFinding,
    audits_of,
    count_findings,
    count_timelines,
    first_of_each,
    first_timelines,
    list_findings,
    make_timelines,
    sent,
)
from kaudit.spark.tasks import OUTLINE, ArrowMap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkFailedError", "listed_producers", "producers", "record", "scan", "timeline"]

_MATCHED_AT_ONCE = 64
"""Partitions that one question to a task is about."""
_FINDINGS_BROUGHT = 10_000
"""With the numbers of findings the driver gets about so many of them, which saves a job where there are few."""
_SCAN_WIDE = -1
"""In place of a job's index: findings about no partition, which come before all others."""


class SparkEngine(Engine):
    """Schedules ranges and partitions as tasks of the Spark that the options say."""

    writes_to_urls = True

    def __init__(self, spark: SparkOptions | None = None) -> None:
        self._spark = spark or SparkOptions()

    @contextmanager
    def audited(self, options: ScanOptions, progress: Progress, rows: Rows = NO_ROWS) -> Iterator[AuditedInput]:
        """Audit on Spark, and keep what is replayed on its disks."""
        with _started(options, self._spark, rows) as run, on_disk(run.replayed) as replayed:
            yield _SparkAudit(run, replayed, _audited_scan(run, replayed, progress))

    def each_partition(
        self, work: Sequence[Task], job: PartitionJob[Task, Done], options: ScanOptions, progress: Progress
    ) -> list[Done]:
        """Return the result of each task, in their order. Raises as `audited` does."""
        # dealt out in turn, so that large ones do not come together
        by_size = sorted(range(len(work)), key=lambda number: -work[number].bytes)
        directories = [directory for task in work for directory in task.directories if directory.segments]
        with session(self._spark, options.jobs) as started:
            require_readable(started, {directory.log_dir: directory.segments[-1] for directory in directories})
            one = partial(_with_findings_apart, job=job, options=options, open_source=from_here())
            hints = get_type_hints(job)
            kinds: Any = hints["task"], GenericAlias(tuple, (hints["return"], list[SentFinding]))
            asked = [work[number] for number in by_size]
            done: list[tuple[Done, list[SentFinding]]] = ask_tasks(
                started, "kaudit: compare partitions", asked, one, kinds
            )
        progress.advance(sum(task.bytes for task in work))
        results = {
            number: replace(result, findings=findings) if findings else result  # type: ignore[type-var]
            for number, (result, findings) in zip(by_size, done, strict=True)
        }
        return [results[number] for number in range(len(work))]


def _with_findings_apart(
    task: Task, job: PartitionJob[Task, Done], options: ScanOptions, open_source: OpenSource
) -> tuple[Done, list[SentFinding]]:
    """Do the job; return what it gives, and its findings, if it has some, as tasks send them."""
    done: Any = job(task, options=options, open_source=open_source)
    findings = getattr(done, "findings", ())
    return replace(done, findings=()) if findings else done, sent(findings)


class _SparkAudit(AuditedInput):
    def __init__(self, run: "_Run", replayed: "DataFrame", scan: "_AuditedScan") -> None:
        self._run = run
        self._replayed = replayed
        self._scan = scan

    @property
    def result(self) -> ScanResult:
        return self._scan.result

    def timelines(self) -> TimelineResult:
        run, scan = self._run, self._scan
        counts = _timeline_counts(run, self._replayed)
        listed = first_timelines(counts, None if run.options.producer_ids else TIMELINES)
        timelines = with_names(scan.audit, _timelines(run, self._replayed, scan, listed))
        return TimelineResult(scan.result, timelines, sum(counts) - len(timelines))

    def producers(self, query: Query) -> ListedProducers:
        run, scan = self._run, self._scan
        ids = shared_ids(run.session, self._replayed, scan.audit, scan.result, scan.in_tasks, scan.scan_wide, query)
        ids = replace(ids, frame=run.kept.enter_context(on_disk(ids.frame)))
        result, rows = list_producers(ids, scan.audit, scan.result)
        return ListedProducers(result, self._tables(rows))

    def recorded(self) -> RecordedScan:
        tables, audit = self._tables(), self._scan.audit
        return RecordedScan(
            self.result, tables.histories, tables.batches, audit.high_watermarks, audit.transactional_ids, tables
        )

    def transactions(self, query: TransactionQuery) -> TransactionListing:
        return transaction_listing(self._scan.audit, self._scan.result, query)

    def _tables(self, listed: RowsOfList | None = None) -> SparkTables:
        run, scan = self._run, self._scan
        return SparkTables(
            run.session,
            self._replayed,
            run.jobs,
            scan.in_tasks,
            scan.across,
            scan.scan_wide,
            newest=newest_profile(scan.result.broker_version),
            listed=listed,
            not_audited=scan.result.not_audited,
            names=NamesOfJobs(run.session, scan.audit.coordinator_logs, shares_of(scan.audit, scan.result)),
        )


class _Run(Struct, frozen=True):
    """One audit under way: its session, its plan, and the partitions as Spark will replay them."""

    session: "SparkSession"
    planned: AuditPlan
    plan: SparkPlan
    replayed: "DataFrame"
    metrics: ReadMetrics
    rows: Rows
    kept: ExitStack
    """What is given up when the run ends."""

    @property
    def options(self) -> ScanOptions:
        """The options, with what the logs of brokers and clients say."""
        return self.planned.known.options

    @property
    def jobs(self) -> Sequence[Job]:
        """The job of each partition replica."""
        return self.planned.jobs

    def audit(self, partitions: Sequence[PartitionAudit]) -> Audit:
        """Take the partitions, in the plan's order, or their outlines; their repeats were looked for."""
        tasks = ReadingInTasks(self.session)
        asked = tasks.coordinator, tasks.rescan, tasks.names, tasks.levels, tasks.group_logs
        known, state = self.planned.known, self.planned.state
        audit = Audit(known.options, known.layout, open_segment, known.histories, *asked)
        audit.state, audit.failed = None if state is None else state.use, tasks.failed
        for job, partition in zip(self.jobs, partitions, strict=True):
            partition.directory = job.directory
            audit.add_compared(partition)
        return audit


class _AuditedScan(Struct, frozen=True):
    """A scan whose findings were made in tasks: its result, and what makes them again for tables.

    `across`: ids of incidents that take more than one topic partition; `scan_wide`: findings about none.
    """

    audit: Audit
    result: ScanResult
    in_tasks: FindingsInTasks
    across: dict[int, dict[int, str]]
    scan_wide: Sequence[Finding]


def _audited_scan(run: _Run, replayed: "DataFrame", progress: Progress) -> _AuditedScan:
    audit = run.audit(_outlines(run, replayed, progress))
    cross = audit.cross_partition()
    in_tasks = FindingsInTasks(cross.context, dict(enumerate(cross.others)), from_here(), run.rows.kind)
    counts = _counts(run, replayed, cross, in_tasks)
    across, to_list = counts.incident_ids(), counts.to_list()
    scan_wide = marked_with(cross.findings, partition_incidents(cross.findings), across.get(_SCAN_WIDE, {}))
    listed = first_of_each(scan_wide, to_list.get(_SCAN_WIDE, {}))
    jobs = [job_index for job_index in to_list if job_index != _SCAN_WIDE]
    if all(counts.partitions[job_index].found is not None for job_index in jobs):
        for job_index in jobs:
            own: Any = counts.partitions[job_index].found
            listed += first_of_each(own.given(across.get(job_index, {})), to_list[job_index])
    else:
        make = partial(list_findings, in_tasks=in_tasks, listed=to_list, across=across)
        listed += _listed(run, replayed, make)
    found = counts.of_scan(listed, tuple(counts.unlisted(to_list)))
    return _AuditedScan(audit, audit.result_of(cross, found), in_tasks, across, scan_wide)


def _outlines(run: _Run, replayed: "DataFrame", progress: Progress) -> list[PartitionAudit]:
    table = _table(run, replayed.where(f"kind = {OUTLINE}").select("job_index", "data"), progress)
    return [unpack(data, PartitionAudit) for _, data in _by_job(table)]


def _counts(run: _Run, replayed: "DataFrame", cross: CrossPartition, in_tasks: FindingsInTasks) -> AllCounts:
    count = partial(count_findings, in_tasks=in_tasks, few=_FINDINGS_BROUGHT // max(len(run.jobs), 1))
    table = collected(run.session, "kaudit: make the findings", audits_of(replayed).mapInArrow(count, FOUND))
    of_scan = FindingCounts.of(
        "", cross.findings, partition_incidents(cross.findings), run.options.producer_ids, outside=cross.outside
    )
    return AllCounts(
        {_SCAN_WIDE: of_scan, **{job_index: unpack(data, FindingCounts) for job_index, data in _by_job(table)}}
    )


def _timeline_counts(run: _Run, replayed: "DataFrame") -> list[int]:
    counts = audits_of(replayed, "kept").mapInArrow(count_timelines, TIMELINE_COUNTS)
    return [count for _, count in _by_job(collected(run.session, "kaudit: count the timelines", counts))]


def _timelines(run: _Run, replayed: "DataFrame", scan: _AuditedScan, listed: Mapping[int, int]) -> list[Timeline]:
    logs = scan.audit.compared_logs()
    if logs is not None and logs.names_transactional_ids:
        logs = logs.named(scan.audit.transactional_ids(None))
    make = partial(make_timelines, in_tasks=scan.in_tasks, across=scan.across, listed=listed, logs=logs)
    made = audits_of(replayed, "kept").mapInArrow(make, TIMELINE_ROWS)
    table = collected(run.session, "kaudit: bring the timelines that are listed", made)
    return [unpack(timeline, Timeline) for _, _, timeline in _by_job(table)]


def _listed(run: _Run, replayed: "DataFrame", make: ArrowMap) -> Iterator[Finding]:
    made = audits_of(replayed).mapInArrow(make, FOUND)
    for _, data in _by_job(collected(run.session, "kaudit: bring the findings that are listed", made)):
        yield from unpack(data, list[SentFinding])


def _by_job(table: pa.Table) -> Iterator[Sequence[Any]]:
    """Yield the rows in the order of their leading numbers, of which no two rows have the same."""
    rows = zip(*(table[name] for name in table.column_names), strict=True)
    return ([cell.as_py() for cell in row] for row in sorted(rows, key=lambda row: [cell.as_py() for cell in row[:-1]]))


@contextmanager
def _started(options: ScanOptions, spark: SparkOptions, rows: Rows) -> Iterator[_Run]:
    listed = listed_input(options)
    with session(spark, options.jobs) as started, ExitStack() as kept:
        planned = listed.planned(partial(read_metadata_logs, started))
        require_readable(started, {job.directory.log_dir: job.plan[-1].file for job in planned.jobs if job.plan})
        if planned.state is not None:
            planned = replace(planned, jobs=_matched(started, planned.state, planned.jobs, resumes=rows is NO_ROWS))
        plan = planned.share(started.sparkContext.defaultParallelism)
        metrics = ReadMetrics.of(started.sparkContext)
        replayed = replayed_on(started, plan, rows, retries(started), metrics.add)
        yield _Run(started, planned, plan, replayed, metrics, rows, kept)
        if planned.state is not None:
            planned.state.sweep(planned.known.layout)


def _matched(spark: "SparkSession", state: OpenedState, jobs: Sequence[Job], *, resumes: bool) -> list[Job]:
    """Return the jobs with what holds of what is saved, as tasks find it."""
    questions = [list(jobs[first : first + _MATCHED_AT_ONCE]) for first in range(0, len(jobs), _MATCHED_AT_ONCE)]
    match = partial(_match, state=state, open_source=from_here(), resumes=resumes)
    kinds = list[Job], list[SavedPartition | None]
    answers = ask_tasks(spark, "kaudit: what of the saved state holds?", questions, match, kinds)
    found = [saved for answer in answers for saved in answer]
    return [replace(state.planned(job), saved=saved) for job, saved in zip(jobs, found, strict=True)]


def _match(
    jobs: Sequence[Job], state: OpenedState, open_source: OpenSource, *, resumes: bool
) -> list[SavedPartition | None]:
    return [state.matched(job, open_source, resumes=resumes).saved for job in jobs]


def _table(run: _Run, frame: "DataFrame", progress: Progress) -> pa.Table:
    with (
        errors_in_one_line(),
        named_job(run.session, f"kaudit: audit {', '.join(run.options.paths)}"),
        JobProgress(run.metrics, run.plan.ranges, run.plan.bytes, progress),
    ):
        table = arrow_table(frame)
    run.metrics.log()
    return table


_HERE = SparkEngine()
scan, timeline, producers, record = _HERE.scan, _HERE.timeline, _HERE.producers, _HERE.record
listed_producers = _HERE.listed_producers
