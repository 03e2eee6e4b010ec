"""The Spark engine: the pipeline of the local engine, its ranges and partitions scheduled as Spark tasks.

Reading tasks compress ranges where they read them; their rows are shuffled, by partition replica; replaying tasks put
partitions together and read again what must be read twice. What only all partitions show the driver finds out from their
outlines; tasks make findings with it. The driver gets counts and as many findings as are listed.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

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
from kaudit.model.limits import TIMELINES
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.partition.job import Job
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.saved_partition import SavedPartition
from kaudit.scanning.audit import Audit
from kaudit.scanning.opened_state import OpenedState
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.result_parts import ScanFindings
from kaudit.scanning.versions import newest_profile
from kaudit.source.schemes import open_segment
from kaudit.spark.jobs import (
    ReadMetrics,
    SparkFailedError,
    ask_tasks,
    collected,
    from_here,
    on_disk,
    reading_progress,
    require_readable,
    retries,
)
from kaudit.spark.plan import AuditPlan, SparkPlan, listed_input
from kaudit.spark.producer_listing import RowsOfList, list_producers, names_of_jobs, shared_ids, shares_of
from kaudit.spark.reading_in_tasks import ReadingInTasks, read_metadata_logs, replayed_on
from kaudit.spark.session import SparkOptions, session
from kaudit.spark.tables import SparkTables
from kaudit.spark.task_findings import (
    FOUND,
    TIMELINE_ROWS,
    AllCounts,
    FindingsInTasks,
    audits_of,
    count_findings,
    first_of_each,
    first_timelines,
    list_findings,
    make_timelines,
    scan_wide,
)
from kaudit.spark.tasks import OUTLINE, WHOLE, ArrowMap, unpacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkFailedError", "listed_producers", "producers", "record", "scan", "timeline"]

_MATCHED_AT_ONCE = 64
"""Partitions that one question to a task is about."""
_FINDINGS_BROUGHT = 10_000
"""With the numbers of findings the driver gets about so many of them, which saves a job where there are few."""


class SparkEngine(Engine):
    """Schedules ranges and partitions as tasks of the Spark that the options say."""

    writes_to_urls = True

    def __init__(self, spark: SparkOptions | None = None) -> None:
        self._spark = spark or SparkOptions()

    @contextmanager
    def audited(self, options: ScanOptions, progress: Progress, rows: Rows = NO_ROWS) -> Iterator[AuditedInput]:
        """Audit on Spark, and keep what is replayed on its disks."""
        with _started(options, self._spark, rows) as run:
            yield _SparkAudit(run, progress)

    def each_partition(
        self, work: Sequence[Task], job: PartitionJob[Task, Done], options: ScanOptions, progress: Progress
    ) -> list[Done]:
        """Return the result of each task, in their order. Raises as `audited` does."""
        # dealt out in turn, so that large ones do not come together
        by_size = sorted(range(len(work)), key=lambda number: -work[number].bytes)
        directories = [directory for task in work for directory in task.directories if directory.segments]
        with session(self._spark, options.jobs) as started:
            require_readable(started, {directory.log_dir: directory.segments[-1] for directory in directories})
            one = partial(job, options=options, open_source=from_here())
            done = ask_tasks(started, "kaudit: compare partitions", [work[number] for number in by_size], one)
        progress.advance(sum(task.bytes for task in work))
        return [result for _, result in sorted(zip(by_size, done, strict=True), key=itemgetter(0))]


class _Run(Struct, frozen=True):
    """One audit under way: its session, its plan, and the partitions as Spark replays them once."""

    session: "SparkSession"
    planned: AuditPlan
    plan: SparkPlan
    replayed: "DataFrame"
    metrics: ReadMetrics
    kept: Any
    """The type of what is kept of each partition replica."""
    closing: ExitStack
    """What is given up when the run ends."""

    def read(self, progress: Progress) -> Audit:
        """Read everything; take the outlines of the partitions, whose repeats were looked for in tasks."""
        known, state, tasks = self.planned.known, self.planned.state, ReadingInTasks(self.session)
        asked = tasks.coordinator, tasks.rescan, tasks.names, tasks.levels, tasks.group_logs
        audit = Audit(known.options, known.layout, open_segment, known.histories, *asked)
        audit.state, audit.failed = None if state is None else state.use, tasks.failed
        outlines = self.replayed.where(f"kind = {OUTLINE}").select("job_index", "data")
        what = f"kaudit: audit {', '.join(known.options.paths)}"
        with reading_progress(self.metrics, self.plan.ranges, self.plan.bytes, progress):
            table = collected(self.session, what, outlines)
        self.metrics.log()
        for job_index, data in _by_job(table):
            outline = unpacked(data)
            outline.directory = self.planned.jobs[job_index].directory
            audit.add_compared(outline)
        return audit

    def bring(self, what: str, make: ArrowMap, columns: str, *more: str) -> Iterator[Sequence[Any]]:
        """Yield the rows that tasks make of the partitions' audits, in the order of their leading numbers."""
        return _by_job(
            collected(self.session, f"kaudit: {what}", audits_of(self.replayed, *more).mapInArrow(make, columns))
        )


class _SparkAudit(AuditedInput):
    """An audit whose findings are made in tasks, with what makes them again for tables."""

    def __init__(self, run: _Run, progress: Progress) -> None:
        self._run = run
        self._audit = run.read(progress)
        cross = self._audit.cross_partition()
        self._scan_wide = scan_wide(cross)
        others, newest = dict(enumerate(cross.others)), newest_profile(cross.stated)
        self._in_tasks = FindingsInTasks(cross.context, others, newest, from_here(), run.kept)
        self._result = self._audit.result_of(cross, self._found())

    def _found(self) -> ScanFindings:
        """Count all findings, and bring those that are listed: few come with their numbers."""
        run, whole = self._run, self._scan_wide
        count = partial(count_findings, in_tasks=self._in_tasks, few=_FINDINGS_BROUGHT // max(len(run.planned.jobs), 1))
        made = {job_index: unpacked(data) for job_index, data in run.bring("make the findings", count, FOUND)}
        counts = AllCounts({WHOLE: whole.counts(len(whole.found)), **made})
        across, to_list = counts.incident_ids(), counts.to_list()
        self._in_tasks = replace(self._in_tasks, across=across)
        came = {number: own.found for number, own in counts.partitions.items() if number in to_list and own.found}
        found = {
            number: first_of_each(own.given(across.get(number, {})), to_list[number]) for number, own in came.items()
        }
        if rest := {number: some for number, some in to_list.items() if number not in came}:
            make = partial(list_findings, in_tasks=self._in_tasks, listed=rest)
            brought = run.bring("bring the findings that are listed", make, FOUND)
            found |= {number: unpacked(data) for number, data in brought}
        listed = [finding for number in to_list for finding in found[number]]
        return counts.of_scan(listed, tuple(counts.unlisted(to_list)))

    @property
    def result(self) -> ScanResult:
        return self._result

    def timelines(self) -> TimelineResult:
        counts, chosen = [part.producers for part in self._audit.partitions], self._audit.options.producer_ids
        listed = first_timelines(counts, None if chosen else TIMELINES)
        logs = self._audit.compared_logs()
        if logs is not None and logs.names_transactional_ids:
            logs = logs.named(self._audit.transactional_ids(None))
        make = partial(make_timelines, in_tasks=self._in_tasks, listed=listed, logs=logs)
        made = self._run.bring("bring the timelines that are listed", make, TIMELINE_ROWS, "kept")
        histories = with_names(self._audit, [unpacked(data) for _, _, data in made])
        return TimelineResult(self._result, histories, 0 if chosen else sum(counts) - sum(listed.values()))

    def producers(self, query: Query) -> ListedProducers:
        run, audit = self._run, self._audit
        ids = shared_ids(run.session, run.replayed, audit, self._result, self._in_tasks, self._scan_wide.found, query)
        ids = replace(ids, frame=run.closing.enter_context(on_disk(ids.frame)))
        result, rows = list_producers(ids, audit, self._result)
        return ListedProducers(result, self._tables(rows))

    def recorded(self) -> RecordedScan:
        tables, audit = self._tables(), self._audit
        return RecordedScan(
            self._result, tables.histories, tables.batches, audit.high_watermarks, audit.transactional_ids, tables
        )

    def transactions(self, query: TransactionQuery) -> TransactionListing:
        return transaction_listing(self._audit, self._result, query)

    def _tables(self, listed: RowsOfList | None = None) -> SparkTables:
        run, result, logs = self._run, self._result, self._audit.coordinator_logs
        return SparkTables(
            run.session,
            run.replayed,
            run.planned.jobs,
            self._in_tasks,
            self._scan_wide.findings(self._in_tasks.across),
            partial(names_of_jobs, run.session, logs, shares_of(self._audit, result)),
            listed,
            result.not_audited,
        )


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
        replayed = kept.enter_context(on_disk(replayed_on(started, plan, rows, retries(started), metrics.add)))
        yield _Run(started, planned, plan, replayed, metrics, rows.kind, kept)
        if planned.state is not None:
            planned.state.sweep(planned.known.layout)


def _matched(spark: "SparkSession", state: OpenedState, jobs: Sequence[Job], *, resumes: bool) -> list[Job]:
    """Return the jobs with what holds of what is saved, as tasks find it."""
    questions = [list(jobs[first : first + _MATCHED_AT_ONCE]) for first in range(0, len(jobs), _MATCHED_AT_ONCE)]
    match = partial(_match, state=state, open_source=from_here(), resumes=resumes)
    answers = ask_tasks(spark, "kaudit: what of the saved state holds?", questions, match)
    found = [saved for answer in answers for saved in answer]
    return [replace(state.planned(job), saved=saved) for job, saved in zip(jobs, found, strict=True)]


def _match(
    jobs: Sequence[Job], state: OpenedState, open_source: OpenSource, *, resumes: bool
) -> list[SavedPartition | None]:
    return [state.matched(job, open_source, resumes=resumes).saved for job in jobs]


_HERE = SparkEngine()
scan, timeline, producers, record = _HERE.scan, _HERE.timeline, _HERE.producers, _HERE.record
listed_producers = _HERE.listed_producers
