"""Spark's jobs as the engine runs them: named in its UI, their failures as one line, questions answered in tasks."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from kaudit.engines.spark_metrics import logged_job
from kaudit.engines.spark_tasks import ANSWER_SCHEMA, answering, why_not_opened
from kaudit.errors import UnreadableInputError
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.source.layout import SegmentFile
from kaudit.source.schemes import open_segment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Question = TypeVar("_Question")
_GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_SENTENCES = {
    "spark.driver.maxResultSize": "the results of a job are larger than spark.driver.maxResultSize allows: "
    "--spark-conf spark.driver.maxResultSize=4g, or audit fewer topics at a time",
    "PYTHON_VERSION_MISMATCH": "the workers' Python is not of the driver's version: give both the same with "
    "PYSPARK_PYTHON, or a bundle made with it (kaudit spark-bundle)",
    "No module named 'kaudit": "the workers' Python has no kaudit: kaudit spark-bundle makes an archive for --archives",
    "No module named 'pandas": "the driver's Python has no pandas, which pyspark needs: make the bundle anew",
    "Cannot run program": "the workers have no Python at the given place: see PYSPARK_PYTHON and --archives",
    "S3AFileSystem not found": "Spark has no connector for s3a://: --spark-conf "
    "spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION, the version being that of Spark's Hadoop",
    "failed on connection exception": "nobody answers at the name node of the URL that is written to",
    "failed on socket timeout exception": "the name node of the URL that is written to does not answer in time",
    "No FileSystem for scheme": "Spark has no connector for this kind of URL",
}
"""What Spark's reports of common faults say, and how it is put here."""


class SparkFailedError(UnreadableInputError):
    """Spark gave up on a job: the input was not read to its end. The text says why."""


def from_here() -> OpenSource:
    """Return how tasks open segments: a relative path is the driver's, whatever directory a worker runs in."""
    return partial(open_segment, working_directory=os.getcwd())  # noqa: PTH109 - a text is wanted


def retries(spark: "SparkSession") -> int:
    """Return how often Spark starts a task that failed again: never on this machine alone, unless its master says so."""
    settings = spark.sparkContext.getConf()
    master = settings.get("spark.master") or ""
    if master == "local" or master.startswith("local["):
        return 0
    return int(settings.get("spark.task.maxFailures") or 4) - 1


def ask_tasks(
    spark: "SparkSession", description: str, questions: Sequence[_Question], answer: Callable[[_Question], Any]
) -> list[Any]:
    """Return the answers to the questions, in their order, each given in a task."""
    if not questions:
        return []
    table = pa.table(
        {
            "number": pa.array(range(len(questions)), pa.int64()),
            "question": pa.array(map(pack, questions), pa.binary()),
        }
    )
    tasks = max(min(len(questions), 2 * spark.sparkContext.defaultParallelism), 1)
    asked = spark.createDataFrame(table).repartition(tasks) if tasks > 1 else spark.createDataFrame(table).coalesce(1)
    with errors_in_one_line(), named_job(spark, description):
        answers = asked.mapInArrow(answering(answer), ANSWER_SCHEMA).toArrow()
    found = dict(zip(answers["number"].to_pylist(), answers["answer"], strict=True))
    return [unpack(found[number].as_py()) for number in range(len(questions))]


def require_readable(spark: "SparkSession", newest: Mapping[str, SegmentFile]) -> None:
    """Open one segment of each log directory from a task, the newest: retention removes it last.

    Raises:
        UnreadableInputError: the driver can open it and the task cannot: the workers do not see this log directory.

    """
    try_to_open = partial(why_not_opened, open_source=from_here())
    reasons = ask_tasks(spark, "kaudit: can the workers read the input?", list(newest.values()), try_to_open)
    refused = {
        segment.path: reason for segment, reason in zip(newest.values(), reasons, strict=True) if reason is not None
    }
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


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Turn Spark's error reports into one line.

    Raises:
        SparkFailedError: in place of what Spark raised.

    """
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
def named_job(spark: "SparkSession", description: str) -> Iterator[str]:
    """Name the jobs of the body in Spark's UI, and log them in a line; give their group."""
    context = spark.sparkContext
    group = f"kaudit-{secrets.token_hex(4)}"
    context.setJobGroup(group, description, interruptOnCancel=True)
    try:
        with logged_job(context, group, description):
            yield group
    finally:
        for name in _GROUP_PROPERTIES:
            context.setLocalProperty(name, None)  # type: ignore[arg-type]


def _reason(error: Exception) -> str:
    """Return what a common fault means, else the line of Spark's long report that says what happened."""
    text = str(error)
    for sign, sentence in _SENTENCES.items():
        if sign in text:
            return sentence
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    errors = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (errors or lines or [type(error).__name__])[-1]
