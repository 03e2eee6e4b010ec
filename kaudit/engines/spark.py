"""The Spark engine: the pipeline of the local engine, its ranges and partitions scheduled as Spark tasks.

Reading tasks compress ranges where they read them; their rows are shuffled, by partition replica; replaying tasks put
partitions together and read again what must be read twice. What only all partitions show the driver finds out from their
outlines, and tasks judge with it. The driver gets counts and as many findings as are listed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.coordinator.transaction_state_reader import CoordinatorReader
from kaudit.audits.sequences.rescan import Questions, Seen, rescan
from kaudit.checks.incident_groups import marked_with, partition_incidents
from kaudit.engines.progress import Progress
from kaudit.engines.spark_jobs import (
    SparkFailedError,
    ask_tasks,
    errors_in_one_line,
    from_here,
    named_job,
    require_readable,
    retries,
)
from kaudit.engines.spark_judging import (
    JUDGED_SCHEMA,
    AllCounts,
    JudgedCounts,
    Judging,
    counting,
    first_of_each,
    listing,
)
from kaudit.engines.spark_listing import NamesOfJobs, SharedIds, ids_to_share, list_producers, shares_of
from kaudit.engines.spark_metrics import ReadMetrics
from kaudit.engines.spark_plan import SparkPlan, share
from kaudit.engines.spark_progress import JobProgress
from kaudit.engines.spark_session import SparkOptions, session
from kaudit.engines.spark_tables import ListedRows, SparkTables
from kaudit.engines.spark_tasks import AUDIT_SCHEMA, ROWS_SCHEMA, Seal, reading, replayer
from kaudit.engines.spark_timelines import (
    COUNTS_SCHEMA,
    TIMELINES_SCHEMA,
    counting_timelines,
    first_timelines,
    making_timelines,
)
from kaudit.listings.producer_histories import HistoryRows, PartitionHistory, RecordedScan
from kaudit.listings.producer_listing import ListedProducers
from kaudit.listings.query import Query
from kaudit.listings.timeline import with_names
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.finding import Finding
from kaudit.model.limits import TIMELINES
from kaudit.model.producer_listing import ProducersResult
from kaudit.model.result import ScanResult, StateUse, Timeline, TimelineResult
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.job import Job
from kaudit.partition.replay import KeptRows, RowSink
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.saved_partition import SavedPartition
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.scanning.audit import Audit, CrossPartition, ScanFindings, coordinator_of, names_of
from kaudit.scanning.block_histories import BlockHistories, metadata_of, read_blocks
from kaudit.scanning.feature_levels import METADATA_VERSION, TRANSACTION_VERSION, feature_levels
from kaudit.scanning.findings import PartitionFindings
from kaudit.scanning.opened_state import OpenedState, open_state
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import audit_needs, find_input, plan_jobs, share_rate
from kaudit.scanning.versions import newest_profile
from kaudit.source.layout import Layout, PartitionDirectory
from kaudit.source.schemes import open_segment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kaudit.audits.producer_ids.block_sources import BlockSource

__all__ = ["SparkFailedError", "listed_producers", "producers", "record", "scan", "timeline"]

_Sink = TypeVar("_Sink", bound=RowSink | None)
_MATCHED_AT_ONCE = 64
"""Partitions that one question to a task is about."""
_SCAN_WIDE = -1
"""In place of a job's index: findings about no partition, which come before all others."""


def scan(options: ScanOptions, progress: Progress, spark: SparkOptions | None = None) -> ScanResult:
    """Audit everything under the given paths on Spark.

    Raises:
        UsageError: a path does not exist, an option does not fit, or Spark cannot be started.
        NothingToAuditError: no segment was found.
        SparkFailedError: Spark gave up.

    """
    with _started(options, spark, _nothing_kept) as run, _kept_on_disk(run.replayed) as replayed:
        return _judged(run, replayed, progress).result


def timeline(options: ScanOptions, progress: Progress, spark: SparkOptions | None = None) -> TimelineResult:
    """Audit on Spark, and return the history of the chosen producer ids; if none are chosen, the first ones of all.

    Raises as `scan` does.
    """
    chosen = frozenset(options.producer_ids) or None
    with _started(options, spark, partial(KeptRows, chosen)) as run, _kept_on_disk(run.replayed) as replayed:
        judged = _judged(run, replayed, progress)
        counts = _timeline_counts(run, replayed)
        listed = first_timelines(counts, TIMELINES if chosen is None else None)
        timelines = with_names(judged.audit, _timelines(run, replayed, judged, listed))
        return TimelineResult(judged.result, timelines, sum(counts) - len(timelines))


def producers(
    options: ScanOptions, progress: Progress, query: Query, spark: SparkOptions | None = None
) -> ProducersResult:
    """Audit on Spark, and list the producer ids that `query` chooses; without a limit and ids asked for, the first ones of all.

    Raises as `scan` does.
    """
    with listed_producers(options, progress, query, spark) as listed:
        return listed.result


@contextmanager
def listed_producers(
    options: ScanOptions, progress: Progress, query: Query, spark: SparkOptions | None = None
) -> Iterator[ListedProducers]:
    """Audit on Spark, and list producer ids; tables of all that `query` chooses can be made while the body runs.

    Raises as `scan` does.
    """
    with _started(options, spark, _activity_only, PartitionHistory.of) as run, _kept_on_disk(run.replayed) as replayed:
        judged = _judged(run, replayed, progress)
        ids = ids_to_share(judged.audit, judged.result, judged.judging, judged.scan_wide, query)
        with _kept_on_disk(ids.frame(run.session, replayed)) as frame:
            result, rows = list_producers(SharedIds(run.session, frame, ids), judged.audit, judged.result)
            yield ListedProducers(result, _tables(run, replayed, judged, rows))


def _activity_only() -> HistoryRows:
    return HistoryRows(KeptRows(frozenset()))


@contextmanager
def record(options: ScanOptions, progress: Progress, spark: SparkOptions | None = None) -> Iterator[RecordedScan]:
    """Audit on Spark, and keep the producers' histories on its disks while the body runs.

    Tables are made in tasks, of all findings. Raises as `scan` does.
    """
    with (
        _started(options, spark, HistoryRows, PartitionHistory.of) as run,
        _kept_on_disk(run.replayed) as replayed,
    ):
        judged = _judged(run, replayed, progress)
        tables = _tables(run, replayed, judged)
        yield RecordedScan(
            judged.result,
            tables.histories,
            tables.batches,
            judged.audit.high_watermarks,
            judged.audit.transactional_ids,
            tables,
        )


def _tables(run: "_Run", replayed: "DataFrame", judged: "_JudgedScan", listed: ListedRows | None = None) -> SparkTables:
    return SparkTables(
        run.session,
        replayed,
        run.jobs,
        judged.judging,
        judged.across,
        judged.scan_wide,
        newest=newest_profile(judged.result.broker_version),
        listed=listed,
        names=NamesOfJobs(run.session, judged.audit.coordinator_logs, shares_of(judged.audit, judged.result)),
    )


def _nothing_kept() -> None:
    return None


def _as_it_is(_: PartitionAudit, kept: _Sink) -> _Sink:
    return kept


class _Run(Struct, frozen=True):
    """One audit under way: its session, its plan, and the partitions as Spark will replay them."""

    session: "SparkSession"
    options: ScanOptions
    layout: Layout
    histories: BlockHistories
    jobs: Sequence[Job]
    plan: SparkPlan
    replayed: "DataFrame"
    metrics: ReadMetrics
    state: StateUse | None = None

    def audit(self, partitions: Sequence[PartitionAudit]) -> Audit:
        """Take the partitions, in the plan's order, or their outlines; their repeats were looked for."""
        asked = self._coordinator, self._rescan, self._names, self._levels
        audit = Audit(self.options, self.layout, open_segment, self.histories, *asked)
        audit.state = self.state
        for job, partition in zip(self.jobs, partitions, strict=True):
            partition.directory = job.directory
            audit.add_compared(partition)
        return audit

    def _coordinator(
        self,
        directories: Sequence[PartitionDirectory],
        wanted: Any,  # noqa: ANN401 - ids
    ) -> tuple[CoordinatorReader, CoordinatorView]:
        read = partial(_read_coordinator, open_source=from_here())
        what = "kaudit: read __transaction_state"
        (found,) = ask_tasks(self.session, what, [(directories, frozenset(wanted))], read)
        reader = CoordinatorReader(open_segment)
        reader.has_flexible_value, reader.unreadable, reader.history, reader.expired, view = found
        return reader, view

    def _names(self, directories: Sequence[PartitionDirectory], wanted: NDArray[np.int64] | None) -> Mapping[int, str]:
        read = partial(_read_names, open_source=from_here())
        questions = [(directory, wanted) for directory in directories]
        found = ask_tasks(self.session, "kaudit: read the names in __transaction_state", questions, read)
        return {producer_id: name for names in found for producer_id, name in names.items()}

    def _levels(self, directories: Sequence[PartitionDirectory]) -> Mapping[str, int]:
        read = partial(_read_levels, open_source=from_here())
        (found,) = ask_tasks(self.session, "kaudit: read the feature levels in __cluster_metadata", [directories], read)
        levels: Mapping[str, int] = found
        return levels

    def _rescan(self, asked: Sequence[tuple[PartitionDirectory, Questions]]) -> list[Seen]:
        return ask_tasks(
            self.session, "kaudit: find unallocated producer ids", asked, partial(_rescan, open_source=from_here())
        )


def _read_coordinator(question: tuple[Sequence[PartitionDirectory], frozenset[int]], open_source: OpenSource) -> object:
    reader, view = coordinator_of(open_source)(*question)
    return reader.has_flexible_value, reader.unreadable, reader.history, reader.expired, view


def _read_levels(directories: Sequence[PartitionDirectory], open_source: OpenSource) -> Mapping[str, int]:
    levels = feature_levels(directories, open_source)
    return {name: levels[name] for name in (METADATA_VERSION, TRANSACTION_VERSION) if name in levels}


def _metadata(spark: "SparkSession", directories: Sequence[PartitionDirectory]) -> "list[BlockSource]":
    """Return what replicas of __cluster_metadata say of blocks, each read in a task."""
    read = partial(_read_metadata, open_source=from_here())
    return ask_tasks(spark, "kaudit: read __cluster_metadata", directories, read)


def _read_metadata(directory: PartitionDirectory, open_source: OpenSource) -> "BlockSource":
    (source,) = metadata_of(open_source)([directory])
    return source


def _read_names(
    question: tuple[PartitionDirectory, NDArray[np.int64] | None], open_source: OpenSource
) -> Mapping[int, str]:
    directory, wanted = question
    return names_of(open_source)([directory], wanted)


def _rescan(question: tuple[PartitionDirectory, Questions], open_source: OpenSource) -> Seen:
    directory, questions = question
    return rescan(directory, open_source, questions)


class _JudgedScan(Struct, frozen=True):
    """A scan whose partitions were judged in tasks: its result, and what judges them again for tables.

    `across`: ids of incidents that take more than one topic partition; `scan_wide`: findings about none.
    """

    audit: Audit
    result: ScanResult
    judging: Judging
    across: dict[int, dict[int, str]]
    scan_wide: Sequence[Finding]


def _judged(run: _Run, replayed: "DataFrame", progress: Progress) -> _JudgedScan:
    audit = run.audit(_outlines(run, replayed, progress))
    cross = audit.cross_partition()
    judging = Judging(cross.context, cross.others, from_here())
    counts = _counts(run, replayed, cross, judging)
    across, to_list = counts.incident_ids(), counts.to_list()
    scan_wide = marked_with(cross.findings, partition_incidents(cross.findings), across.get(_SCAN_WIDE, {}))
    jobs = [job_index for job_index in to_list if job_index != _SCAN_WIDE]
    listed = _listed(run, replayed, listing(judging, to_list, across)) if jobs else ()
    partitions = counts.partitions.values()
    found = ScanFindings(
        [*first_of_each(scan_wide, to_list.get(_SCAN_WIDE, {})), *listed],
        [held for own in partitions for held in own.held],
        {producer_id for own in partitions for producer_id in own.producer_ids},
        tuple(counts.unlisted(to_list)),
    )
    return _JudgedScan(audit, audit.result_of(cross, found), judging, across, scan_wide)


def _outlines(run: _Run, replayed: "DataFrame", progress: Progress) -> list[PartitionAudit]:
    table = _table(run, replayed.select("job_index", "outline").where("outline is not null"), progress)
    found = dict(zip(table["job_index"].to_pylist(), table["outline"], strict=True))
    return [unpack(found[job_index].as_py()) for job_index in range(len(run.jobs))]


def _counts(run: _Run, replayed: "DataFrame", cross: CrossPartition, judging: Judging) -> AllCounts:
    with errors_in_one_line(), named_job(run.session, "kaudit: judge the partitions"):
        table = replayed.select("job_index", "audit").mapInArrow(counting(judging), JUDGED_SCHEMA).toArrow()
    found = sorted(zip(table["job_index"].to_pylist(), table["judged"], strict=True), key=lambda row: row[0])
    wide = PartitionFindings(cross.findings)
    of_scan = JudgedCounts.of("", wide, partition_incidents(cross.findings), run.options.producer_ids)
    return AllCounts({_SCAN_WIDE: of_scan, **{job_index: unpack(data.as_py()) for job_index, data in found}})


def _timeline_counts(run: _Run, replayed: "DataFrame") -> list[int]:
    with errors_in_one_line(), named_job(run.session, "kaudit: count the timelines"):
        kept = replayed.select("job_index", "audit", "kept")
        table = kept.mapInArrow(counting_timelines(), COUNTS_SCHEMA).toArrow()
    return [count for _, count in sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))]


def _timelines(run: _Run, replayed: "DataFrame", judged: _JudgedScan, listed: Mapping[int, int]) -> list[Timeline]:
    make = making_timelines(judged.judging, judged.across, listed, judged.audit.compared_logs())
    with errors_in_one_line(), named_job(run.session, "kaudit: bring the timelines that are listed"):
        kept = replayed.select("job_index", "audit", "kept")
        table = kept.mapInArrow(make, TIMELINES_SCHEMA).toArrow()
    places = zip(table["job_index"].to_pylist(), table["number"].to_pylist(), range(table.num_rows), strict=True)
    return [unpack(table["timeline"][at].as_py()) for _, _, at in sorted(places)]


def _listed(run: _Run, replayed: "DataFrame", list_findings: Any) -> Iterator[Finding]:  # noqa: ANN401 - an ArrowMap
    with errors_in_one_line(), named_job(run.session, "kaudit: bring the findings that are listed"):
        table = replayed.select("job_index", "audit").mapInArrow(list_findings, JUDGED_SCHEMA).toArrow()
    for _, data in sorted(zip(table["job_index"].to_pylist(), table["judged"], strict=True), key=lambda row: row[0]):
        yield from unpack(data.as_py())


@contextmanager
def _kept_on_disk(frame: "DataFrame") -> Iterator["DataFrame"]:
    from pyspark import StorageLevel  # noqa: PLC0415 - an extra

    kept = frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield kept
    finally:
        kept.unpersist()


@contextmanager
def _started(
    options: ScanOptions,
    spark: SparkOptions | None,
    make_sink: Callable[[], RowSink | None],
    seal: Seal = _as_it_is,
) -> Iterator[_Run]:
    layout = find_input(options)
    state = None if options.state is None else open_state(options.state, options, layout)
    with session(spark or SparkOptions(), options.jobs) as started:
        histories = read_blocks(options, layout, partial(_metadata, started))
        jobs = plan_jobs(options, layout, audit_needs(options, layout, histories))
        require_readable(started, {job.directory.log_dir: job.plan[-1].file for job in jobs if job.plan})
        cores = started.sparkContext.defaultParallelism
        if state is not None:
            jobs = _matched(started, state, jobs, resumes=make_sink is _nothing_kept)
        plan = share(share_rate(jobs, cores), cores)
        use = None if state is None else state.use
        metrics = ReadMetrics.of(started.sparkContext)
        replayed = _dataframe(started, plan, metrics, make_sink, seal)
        yield _Run(started, options, layout, histories, jobs, plan, replayed, metrics, use)
        if state is not None:
            state.sweep(layout)


def _matched(spark: "SparkSession", state: OpenedState, jobs: Sequence[Job], *, resumes: bool) -> list[Job]:
    """Return the jobs with what holds of what is saved, as tasks find it."""
    questions = [jobs[first : first + _MATCHED_AT_ONCE] for first in range(0, len(jobs), _MATCHED_AT_ONCE)]
    match = partial(_match, state=state, open_source=from_here(), resumes=resumes)
    answers = ask_tasks(spark, "kaudit: what of the saved state holds?", questions, match)
    found = [saved for answer in answers for saved in answer]
    return [replace(state.planned(job), saved=saved) for job, saved in zip(jobs, found, strict=True)]


def _match(
    jobs: Sequence[Job], state: OpenedState, open_source: OpenSource, *, resumes: bool
) -> list[SavedPartition | None]:
    return [state.matched(job, open_source, resumes=resumes).saved for job in jobs]


def _table(run: _Run, frame: "DataFrame", progress: Progress) -> pa.Table:
    with (
        errors_in_one_line(),
        named_job(run.session, f"kaudit: audit {', '.join(run.options.paths)}") as group,
        JobProgress(run.session.sparkContext, group, len(run.plan.works), run.plan.bytes, progress),
    ):
        table = frame.toArrow()
    run.metrics.log()
    return table


def _dataframe(
    spark: "SparkSession", plan: SparkPlan, metrics: ReadMetrics, make_sink: Callable[[], RowSink | None], seal: Seal
) -> "DataFrame":
    """Describe the job: plan -> read -> shuffle -> replay -> one row per partition replica, more if much is kept."""
    table = pa.table(
        {
            "task": pa.array(range(len(plan.works)), pa.int32()),
            "work": pa.array((pack(work) for work in plan.works), pa.binary()),
        }
    )
    return (
        spark.createDataFrame(table)
        .repartitionById(len(plan.works), "task")
        .mapInArrow(reading(from_here(), retries(spark), metrics.add), ROWS_SCHEMA)
        .repartitionById(plan.shuffle_partitions, "shuffle_partition")
        .sortWithinPartitions("job_index", "number")
        .mapInArrow(replayer(make_sink, seal, from_here()), AUDIT_SCHEMA)
    )
