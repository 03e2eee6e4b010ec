"""The Spark engine: the pipeline of the local engine, its ranges and partitions scheduled as Spark tasks.

Reading tasks compress ranges where they read them; what is exchanged are their rows, by partition replica; replaying
tasks put partitions together. The driver lists the input and judges what is left of each partition.
"""

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
from kaudit.analysis.scan.options import Progress, ScanOptions, UsageError
from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.analysis.scan.partition_replay import KeptRows, RowSink
from kaudit.analysis.scan.planning import Job, all_needs, audit_needs, find_input, plan_jobs
from kaudit.analysis.scan.shuffle_codec import pack, unpack
from kaudit.analysis.timelines.producer_histories import (
    HistoryRows,
    HistoryWriter,
    PartitionHistory,
    Piece,
    RecordedScan,
    by_replica,
)
from kaudit.analysis.timelines.timeline import build_timelines
from kaudit.engines.spark_plan import SparkPlan, share
from kaudit.engines.spark_progress import JobProgress
from kaudit.engines.spark_session import SparkOptions, session
from kaudit.engines.spark_tasks import (
    AUDIT_SCHEMA,
    PIECES_SCHEMA,
    ROWS_SCHEMA,
    Lots,
    Seal,
    batch_writing,
    history_writing,
    read,
    replayer,
    whole,
)
from kaudit.model.finding import Finding
from kaudit.model.producer_listing import ProducersResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.source.layout import Layout
from kaudit.source.schemes import open_segment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Keeper = TypeVar("_Keeper", bound=RowSink | None)
_MOST_LOTS = 1000
"""Each lot of pieces is a job of its own: some 50 ms."""
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
        partitions = _collect(run, run.replayed.select("place", "audit"), progress)
    return run.audit(partitions).result()


def timeline(options: ScanOptions, progress: Progress, spark: SparkOptions | None = None) -> TimelineResult:
    """Audit on Spark, and tell the history of the chosen producer ids (all of them if none are chosen).

    Raises as `scan` does.
    """
    chosen = frozenset(options.producer_ids) or None
    audit, kept = _kept(options, progress, spark, partial(KeptRows, chosen))
    return build_timelines(audit.result(), audit.partitions, kept)


def producers(
    options: ScanOptions, progress: Progress, query: Query, spark: SparkOptions | None = None
) -> ProducersResult:
    """Audit on Spark, and list the producer ids that `query` chooses.

    Raises as `scan` does.
    """
    audit, kept = _kept(options, progress, spark, ActivityRows, ids=True)
    return list_producers(audit, kept, query)


@contextmanager
def record(
    options: ScanOptions, progress: Progress, writer: HistoryWriter, spark: SparkOptions | None = None
) -> Iterator[RecordedScan]:
    """Audit on Spark, and keep on its disks what `writer` needs to tell the producers' histories while the body runs.

    They are told in tasks; pieces of tables come to the driver one after the other. Raises as `scan` does.
    """
    from pyspark import StorageLevel  # noqa: PLC0415 - an extra

    with _started(options, spark, HistoryRows, PartitionHistory.of) as run:
        replayed = run.replayed.persist(StorageLevel.DISK_ONLY)
        result = run.audit(_collect(run, replayed.select("place", "audit"), progress)).result()

        def write_histories(findings: Sequence[Finding]) -> Iterator[Piece]:
            own = by_replica(findings)
            places = ((job.directory.topic, job.directory.partition, job.directory.replica) for job in run.jobs)
            packed = {number: pack(own[place]) for number, place in enumerate(places) if place in own}
            lots = Lots(len(run.jobs), _MOST_LOTS)
            told = replayed.select("place", "kept").mapInArrow(
                history_writing(writer, packed, lots, remembers_markers=remembers_markers(result)), PIECES_SCHEMA
            )
            yield from _in_order(run.session, told, lots.count, "kaudit: tell the producers' histories")

        def write_batches(writer: BatchWriter) -> Iterator[Piece]:
            tasks = segment_tasks(run.jobs)
            lots = Lots(len(tasks), _MOST_LOTS)
            table = pa.table(
                {
                    "lot": pa.array((lots.of(task.number) for task in tasks), pa.int32()),
                    "work": pa.array((pack(task) for task in tasks), pa.binary()),
                }
            )
            planned = run.session.createDataFrame(table).repartitionById(lots.count, "lot")
            told = planned.mapInArrow(batch_writing(writer, lots), PIECES_SCHEMA)
            yield from _in_order(run.session, told, lots.count, "kaudit: tell the batches")

        yield RecordedScan(result, write_histories, write_batches)


def _in_order(spark: "SparkSession", told: "DataFrame", lots: int, description: str) -> Iterator[Piece]:
    """Bring pieces of tables to the driver in order, one lot of them in memory at a time."""
    ordered = told.repartitionById(lots, "lot").sortWithinPartitions("place", "number")
    with _told_in_a_line(), _job(spark, description):
        for row in ordered.toLocalIterator(prefetchPartitions=True):
            yield row["table"], bytes(row["data"])


def _nothing_kept() -> None:
    return None


def _as_it_is(_: PartitionAudit, kept: _Keeper) -> _Keeper:
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
    keeper: Callable[[], RowSink | None],
    seal: Seal = _as_it_is,
    *,
    ids: bool = False,
) -> Iterator[_Run]:
    layout = find_input(options)
    histories = read_blocks(options, layout, open_segment)
    jobs = plan_jobs(options, layout, all_needs if ids else audit_needs(layout, histories))
    with session(spark or SparkOptions(), options.jobs) as started:
        plan = share(jobs, started.sparkContext.defaultParallelism)
        yield _Run(started, options, layout, histories, jobs, plan, _dataframe(started, plan, keeper, seal))


def _kept(
    options: ScanOptions,
    progress: Progress,
    spark: SparkOptions | None,
    keeper: Callable[[], _Keeper],
    *,
    ids: bool = False,
) -> tuple[Audit, list[_Keeper]]:
    """Audit, and bring what took each partition's rows to the driver."""
    with _started(options, spark, keeper, ids=ids) as run:
        partitions, kept = _collect_kept(run, progress)
    return run.audit(partitions), kept


def _collect(run: _Run, frame: "DataFrame", progress: Progress) -> list[PartitionAudit]:
    table = _table(run, frame, progress)
    parts = {
        place.as_py(): unpack(data.as_py())
        for place, data in zip(table["place"], table["audit"], strict=True)
        if data.is_valid
    }
    return [parts[place] for place in range(len(run.jobs))]


def _collect_kept(run: _Run, progress: Progress) -> tuple[list[PartitionAudit], list[Any]]:
    table = _table(run, run.replayed, progress)
    slices = sorted(
        zip(table["place"].to_pylist(), range(table.num_rows), strict=True)
    )  # a place's slices come in their order
    kept = dict(whole((place, table["kept"][at].as_py()) for place, at in slices))
    parts = {place: unpack(table["audit"][at].as_py()) for place, at in slices if table["audit"][at].is_valid}
    places = range(len(run.jobs))
    return [parts[place] for place in places], [kept[place] for place in places]


def _table(run: _Run, frame: "DataFrame", progress: Progress) -> pa.Table:
    with (
        _told_in_a_line(),
        _job(run.session, f"kaudit: audit {', '.join(run.options.paths)}") as group,
        JobProgress(run.session.sparkContext, group, len(run.plan.works), run.plan.bytes, progress),
    ):
        return frame.toArrow()


@contextmanager
def _told_in_a_line() -> Iterator[None]:
    """Turn Spark's accounts of what went wrong into one line."""
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


def _dataframe(spark: "SparkSession", plan: SparkPlan, keeper: Callable[[], RowSink | None], seal: Seal) -> "DataFrame":
    """Describe the job: plan -> read -> exchange -> replay -> one row per partition replica, more if much is kept."""
    table = pa.table(
        {
            "task": pa.array(range(len(plan.works)), pa.int32()),
            "work": pa.array((pack(work) for work in plan.works), pa.binary()),
        }
    )
    return (
        spark.createDataFrame(table)
        .repartitionById(len(plan.works), "task")
        .mapInArrow(read, ROWS_SCHEMA)
        .repartitionById(plan.replays, "replay")
        .sortWithinPartitions("place", "number")
        .mapInArrow(replayer(keeper, seal), AUDIT_SCHEMA)
    )


def _reason(error: Exception) -> str:
    """Return the line of Spark's long account that says what happened: the last of a worker's traceback."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    told = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (told or lines or [type(error).__name__])[-1]
