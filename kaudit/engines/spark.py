"""The Spark engine: the pipeline of the local engine, its ranges and partitions scheduled as Spark tasks.

Reading tasks compress ranges where they read them; what is exchanged are their rows, by partition replica; replaying
tasks put partitions together. The driver lists the input and judges what is left of each partition.
"""

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from kaudit.engines.spark_plan import SparkPlan, share
from kaudit.engines.spark_progress import JobProgress
from kaudit.engines.spark_session import SparkOptions, session
from kaudit.engines.spark_tasks import AUDIT_SCHEMA, ROWS_SCHEMA, read, replayer
from kaudit.model.producers import ProducersResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.pipeline.activity import ActivityRows
from kaudit.pipeline.audit import Audit, PartitionAudit
from kaudit.pipeline.blocks import read_blocks
from kaudit.pipeline.exchange import pack, unpack
from kaudit.pipeline.options import Progress, ScanOptions
from kaudit.pipeline.partition import KeptRows, RowKeeper
from kaudit.pipeline.producers import list_producers
from kaudit.pipeline.query import Query
from kaudit.pipeline.schedule import Job, find_input, plan_jobs
from kaudit.pipeline.timeline import build_timelines
from kaudit.source.filesystem import open_segment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Keeper = TypeVar("_Keeper", bound=RowKeeper | None)
_GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


class SparkFailedError(RuntimeError):
    """Spark gave up on a job. The text is the first line of its reason."""


def scan(options: ScanOptions, progress: Progress, spark: SparkOptions | None = None) -> ScanResult:
    """Audit everything under the given paths on Spark.

    Raises:
        UsageError: a path does not exist, an option does not fit, or Spark cannot be started.
        NothingToAuditError: no segment was found.
        SparkFailedError: Spark gave up.

    """
    audit, _ = _run(options, progress, spark or SparkOptions(), _no_rows)
    return audit.result()


def timeline(options: ScanOptions, progress: Progress, spark: SparkOptions | None = None) -> TimelineResult:
    """Audit on Spark, and tell the history of the chosen producer ids (all of them if none are chosen).

    Raises as `scan` does.
    """
    chosen = frozenset(options.producer_ids) or None
    audit, kept = _run(options, progress, spark or SparkOptions(), partial(KeptRows, chosen))
    return build_timelines(audit.result(), audit.partitions, kept)


def producers(
    options: ScanOptions, progress: Progress, query: Query, spark: SparkOptions | None = None
) -> ProducersResult:
    """Audit on Spark, and list the producer ids that `query` chooses.

    Raises as `scan` does.
    """
    audit, kept = _run(options, progress, spark or SparkOptions(), ActivityRows)
    return list_producers(audit, kept, query)


def _no_rows() -> None:
    return None


def _run(
    options: ScanOptions, progress: Progress, spark: SparkOptions, keeper: Callable[[], _Keeper]
) -> tuple[Audit, list[_Keeper]]:
    layout = find_input(options)
    book = read_blocks(options, layout, open_segment)
    jobs = plan_jobs(options, layout)
    with session(spark, options.jobs) as started:
        parts = _collect(started, options, jobs, progress, keeper)
    audit = Audit(options, layout, open_segment, book)
    kept: list[_Keeper] = []
    for job, (partition, rows) in zip(jobs, parts, strict=True):
        partition.directory = job.directory
        audit.add(partition)
        kept.append(rows)
    return audit, kept


def _collect(
    spark: "SparkSession",
    options: ScanOptions,
    jobs: Sequence[Job],
    progress: Progress,
    keeper: Callable[[], _Keeper],
) -> list[tuple[PartitionAudit, _Keeper]]:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    context = spark.sparkContext
    plan = share(jobs, options, context.defaultParallelism)
    audits = _dataframe(spark, plan, keeper)
    group = f"kaudit-{secrets.token_hex(4)}"
    context.setJobGroup(group, f"kaudit: audit {', '.join(options.paths)}", interruptOnCancel=True)
    try:
        with JobProgress(context, group, len(plan.works), plan.bytes, progress):
            table = audits.toArrow()
    except PySparkException as error:
        raise SparkFailedError(_reason(error)) from error
    finally:
        for name in _GROUP_PROPERTIES:
            context.setLocalProperty(name, None)  # type: ignore[arg-type]
    parts = {place.as_py(): unpack(data.as_py()) for place, data in zip(table["place"], table["audit"], strict=True)}
    return [parts[place] for place in range(len(jobs))]


def _dataframe(spark: "SparkSession", plan: SparkPlan, keeper: Callable[[], RowKeeper | None]) -> "DataFrame":
    """Describe the job: plan -> read -> exchange -> replay -> one row per partition replica."""
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
        .mapInArrow(replayer(keeper), AUDIT_SCHEMA)
    )


def _reason(error: Exception) -> str:
    """Return the line of Spark's long account that says what happened: the last of a worker's traceback."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    told = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (told or lines or [type(error).__name__])[-1]
