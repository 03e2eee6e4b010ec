"""The Spark engine: the pipeline of the local engine, its ranges and partitions scheduled as Spark tasks.

Reading tasks compress ranges where they read them; their rows are shuffled, by partition replica; replaying
tasks put partitions together. The driver lists the input and judges what is left of each partition.
"""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from msgspec import Struct

from kaudit.analysis.producer_ids.activity import ActivityRows
from kaudit.analysis.producer_ids.block_histories import BlockHistories, read_blocks
from kaudit.analysis.producer_ids.producer_listing import list_producers, remembers_markers
from kaudit.analysis.producer_ids.query import Query
from kaudit.analysis.scan.audit import Audit
from kaudit.analysis.scan.batch_export import BatchWriter, segment_tasks
from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.analysis.scan.options import Progress, ScanOptions, UnreadableInputError, UsageError
from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.analysis.scan.partition_replay import KeptRows, RowSink
from kaudit.analysis.scan.planning import Job, all_needs, audit_needs, find_input, plan_jobs, share_rate
from kaudit.analysis.scan.shuffle_codec import pack, unpack
from kaudit.analysis.timelines.producer_histories import (
    HistoryRows,
    HistoryWriter,
    PartitionHistory,
    Piece,
    RecordedScan,
)
from kaudit.analysis.timelines.timeline import build_timelines, by_replica
from kaudit.engines.spark_plan import SparkPlan, share
from kaudit.engines.spark_progress import JobProgress
from kaudit.engines.spark_session import SparkOptions, session
from kaudit.engines.spark_tasks import (
    AUDIT_SCHEMA,
    PIECES_SCHEMA,
    PROBE_SCHEMA,
    ROWS_SCHEMA,
    OutputBatches,
    Seal,
    batch_writing,
    history_writing,
    probing,
    reading,
    replayer,
    whole,
)
from kaudit.model.finding import Finding
from kaudit.model.producer_listing import ProducersResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.source.layout import Layout, SegmentFile
from kaudit.source.schemes import open_segment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Sink = TypeVar("_Sink", bound=RowSink | None)
_MOST_OUTPUT_BATCHES = 1000
"""Each batch of pieces is a job of its own: some 50 ms."""
_GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


class SparkFailedError(UsageError):
    """Spark gave up on a job. The text has the line of its reason that says why."""


def scan(options: ScanOptions, progress: Progress, spark: SparkOptions | None = None) -> ScanResult:
    """Audit everything under the given paths on Spark.

    Raises:
        UsageError: a path does not exist, an option does not fit, or Spark cannot be started.
        NothingToAuditError: no segment was found.
        SparkFailedError: Spark gave up.

    """
    with _started(options, spark, _nothing_kept) as run:
        partitions = _collect(run, run.replayed.select("job_index", "audit"), progress)
    return run.audit(partitions).result()


def timeline(options: ScanOptions, progress: Progress, spark: SparkOptions | None = None) -> TimelineResult:
    """Audit on Spark, and return the history of the chosen producer ids (all of them if none are chosen).

    Raises as `scan` does.
    """
    chosen = frozenset(options.producer_ids) or None
    audit, kept = _kept(options, progress, spark, partial(KeptRows, chosen))
    return build_timelines(audit, kept)


def producers(
    options: ScanOptions, progress: Progress, query: Query, spark: SparkOptions | None = None
) -> ProducersResult:
    """Audit on Spark, and list the producer ids that `query` chooses.

    Raises as `scan` does.
    """
    audit, kept = _kept(options, progress, spark, ActivityRows, ids=True)
    return list_producers(audit, kept, query)


@contextmanager
def record(options: ScanOptions, progress: Progress, spark: SparkOptions | None = None) -> Iterator[RecordedScan]:
    """Audit on Spark, and keep the producers' histories on its disks while the body runs.

    Tables are made in tasks; pieces of tables come to the driver one after the other. Raises as `scan` does.
    """
    from pyspark import StorageLevel  # noqa: PLC0415 - an extra

    with _started(options, spark, HistoryRows, PartitionHistory.of) as run:
        replayed = run.replayed.persist(StorageLevel.DISK_ONLY)
        audit = run.audit(_collect(run, replayed.select("job_index", "audit"), progress))
        result = audit.result()

        def write_histories(writer: HistoryWriter, findings: Sequence[Finding]) -> Iterator[Piece]:
            own = by_replica(findings)
            job_indexes = ((job.directory.topic, job.directory.partition, job.directory.replica) for job in run.jobs)
            packed = {number: pack(own[job_index]) for number, job_index in enumerate(job_indexes) if job_index in own}
            output_batches = OutputBatches(len(run.jobs), _MOST_OUTPUT_BATCHES)
            pieces = replayed.select("job_index", "kept").mapInArrow(
                history_writing(writer, packed, output_batches, remembers_markers=remembers_markers(result)),
                PIECES_SCHEMA,
            )
            yield from _in_order(run.session, pieces, output_batches.count, "kaudit: write the producers' histories")

        def write_batches(writer: BatchWriter) -> Iterator[Piece]:
            tasks = segment_tasks(run.jobs)
            output_batches = OutputBatches(len(tasks), _MOST_OUTPUT_BATCHES)
            table = pa.table(
                {
                    "output_batch": pa.array((output_batches.of(task.number) for task in tasks), pa.int32()),
                    "work": pa.array((pack(task) for task in tasks), pa.binary()),
                }
            )
            planned = run.session.createDataFrame(table).repartitionById(output_batches.count, "output_batch")
            pieces = planned.mapInArrow(batch_writing(writer, output_batches, _from_here()), PIECES_SCHEMA)
            yield from _in_order(run.session, pieces, output_batches.count, "kaudit: write the batches")

        yield RecordedScan(
            result,
            write_histories,
            write_batches,
            audit.high_watermarks,
            lambda: audit.transactional_ids(lambda _: True),
        )


def _in_order(spark: "SparkSession", pieces: "DataFrame", output_batches: int, description: str) -> Iterator[Piece]:
    """Bring pieces of tables to the driver in order, one batch of them in memory at a time."""
    ordered = pieces.repartitionById(output_batches, "output_batch").sortWithinPartitions("job_index", "number")
    with _errors_in_one_line(), _job(spark, description):
        for row in ordered.toLocalIterator(prefetchPartitions=True):
            yield row["table"], bytes(row["data"])


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

    def audit(self, partitions: Sequence[PartitionAudit]) -> Audit:
        """Take the partitions, in the plan's order."""
        audit = Audit(self.options, self.layout, open_segment, self.histories)
        for job, partition in zip(self.jobs, partitions, strict=True):
            partition.directory = job.directory
            audit.add(partition)
        return audit


@contextmanager
def _started(
    options: ScanOptions,
    spark: SparkOptions | None,
    make_sink: Callable[[], RowSink | None],
    seal: Seal = _as_it_is,
    *,
    ids: bool = False,
) -> Iterator[_Run]:
    layout = find_input(options)
    histories = read_blocks(options, layout, open_segment)
    jobs = plan_jobs(options, layout, all_needs if ids else audit_needs(options, layout, histories))
    with session(spark or SparkOptions(), options.jobs) as started:
        _require_readable(started, jobs)
        cores = started.sparkContext.defaultParallelism
        plan = share(share_rate(jobs, cores), cores)
        yield _Run(started, options, layout, histories, jobs, plan, _dataframe(started, plan, make_sink, seal))


def _from_here() -> OpenSource:
    """Return how tasks open segments: a relative path is the driver's, whatever directory a worker runs in."""
    return partial(open_segment, working_directory=os.getcwd())  # noqa: PTH109 - a text is wanted


def _require_readable(spark: "SparkSession", jobs: Sequence[Job]) -> None:
    """Open one segment of each log directory from a task, the newest: retention removes it last.

    Raises:
        UnreadableInputError: the driver can open it and the task cannot: the workers do not see this log directory.

    """
    newest = {job.directory.log_dir: job.plan[-1].file for job in jobs if job.plan}
    table = pa.table(
        {
            "task": pa.array(range(len(newest)), pa.int32()),
            "segment": pa.array(map(pack, newest.values()), pa.binary()),
        }
    )
    tasks = min(len(newest), spark.sparkContext.defaultParallelism)
    probes = spark.createDataFrame(table).repartitionById(max(tasks, 1), "task")
    with _errors_in_one_line(), _job(spark, "kaudit: can the workers read the input?"):
        failed = probes.mapInArrow(probing(_from_here()), PROBE_SCHEMA).toArrow().to_pylist()
    refused = {entry["path"]: entry["reason"] for entry in failed}
    for segment in newest.values():
        if segment.path in refused and _opens_here(segment):
            raise UnreadableInputError(
                f"{segment.path}: {refused[segment.path]} on a Spark worker, though the driver can read it: give a URL "
                "that every worker reads (hdfs://, s3://), mount the directory on all of them, or use --engine local"
            )


def _opens_here(segment: SegmentFile) -> bool:
    try:
        open_segment(segment).close()
    except OSError:
        return False  # gone for everybody: the audit says so
    return True


def _kept(
    options: ScanOptions,
    progress: Progress,
    spark: SparkOptions | None,
    make_sink: Callable[[], _Sink],
    *,
    ids: bool = False,
) -> tuple[Audit, list[_Sink]]:
    """Audit, and bring what took each partition's rows to the driver."""
    with _started(options, spark, make_sink, ids=ids) as run:
        partitions, kept = _collect_kept(run, progress)
    return run.audit(partitions), kept


def _collect(run: _Run, frame: "DataFrame", progress: Progress) -> list[PartitionAudit]:
    table = _table(run, frame, progress)
    parts = {
        job_index.as_py(): unpack(data.as_py())
        for job_index, data in zip(table["job_index"], table["audit"], strict=True)
        if data.is_valid
    }
    return [parts[job_index] for job_index in range(len(run.jobs))]


def _collect_kept(run: _Run, progress: Progress) -> tuple[list[PartitionAudit], list[Any]]:
    table = _table(run, run.replayed, progress)
    slices = sorted(
        zip(table["job_index"].to_pylist(), range(table.num_rows), strict=True)
    )  # a job's slices come in their order
    kept = dict(whole((job_index, table["kept"][at].as_py()) for job_index, at in slices))
    parts = {job_index: unpack(table["audit"][at].as_py()) for job_index, at in slices if table["audit"][at].is_valid}
    job_indexes = range(len(run.jobs))
    return [parts[job_index] for job_index in job_indexes], [kept[job_index] for job_index in job_indexes]


def _table(run: _Run, frame: "DataFrame", progress: Progress) -> pa.Table:
    with (
        _errors_in_one_line(),
        _job(run.session, f"kaudit: audit {', '.join(run.options.paths)}") as group,
        JobProgress(run.session.sparkContext, group, len(run.plan.works), run.plan.bytes, progress),
    ):
        return frame.toArrow()


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    """Turn Spark's error reports into one line."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    try:
        yield
    except PySparkException as error:
        raise SparkFailedError(f"Spark gave up: {_reason(error)}") from error
    except Exception as error:
        if type(error).__module__.startswith("py4j."):  # what the JVM throws past pyspark
            raise SparkFailedError(f"Spark gave up: {_reason(error)}") from error
        raise


@contextmanager
def _job(spark: "SparkSession", description: str) -> Iterator[str]:
    """Name the jobs of the body in Spark's UI; give their group."""
    context = spark.sparkContext
    group = f"kaudit-{secrets.token_hex(4)}"
    context.setJobGroup(group, description, interruptOnCancel=True)
    try:
        yield group
    finally:
        for name in _GROUP_PROPERTIES:
            context.setLocalProperty(name, None)  # type: ignore[arg-type]


def _dataframe(
    spark: "SparkSession", plan: SparkPlan, make_sink: Callable[[], RowSink | None], seal: Seal
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
        .mapInArrow(reading(_from_here()), ROWS_SCHEMA)
        .repartitionById(plan.shuffle_partitions, "shuffle_partition")
        .sortWithinPartitions("job_index", "number")
        .mapInArrow(replayer(make_sink, seal, _from_here()), AUDIT_SCHEMA)
    )


def _reason(error: Exception) -> str:
    """Return the line of Spark's long report that says what happened: the last of a worker's traceback."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    errors = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (errors or lines or [type(error).__name__])[-1]
