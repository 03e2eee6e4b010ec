"""Spark's jobs as kaudit runs them: named and logged, with progress, failures in one line, and questions that tasks answer."""

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from msgspec import Struct
from pyspark import StorageLevel
from pyspark.errors import PySparkException

from kaudit.engines.progress import Progress
from kaudit.errors import UnreadableInputError
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.chunk_rows import ChunkRows, Outcome
from kaudit.source.layout import SegmentFile
from kaudit.source.schemes import open_segment
from kaudit.spark.releases import arrow_table, frame_of
from kaudit.spark.tasks import ANSWERS, answering, packed, unpacked

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext
    from pyspark.sql import DataFrame, SparkSession

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")
_GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_SENTENCES = {
    "spark.driver.maxResultSize": "the results of a job are larger than spark.driver.maxResultSize allows: "
    "--spark-conf spark.driver.maxResultSize=4g, or audit fewer topics at a time",
    "PYTHON_VERSION_MISMATCH": "the workers' Python is not of the driver's version: give both the same with "
    "PYSPARK_PYTHON, or a bundle made with it (kaudit spark-bundle)",
    "No module named 'kaudit": "the workers' Python has no kaudit: kaudit spark-bundle makes an archive for --archives",
    "No module named 'pyarrow": "the workers' Python is not the one with kaudit: spark.pyspark.python or PYSPARK_PYTHON names it",
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
    """Return how often Spark starts a task that failed again: never on this machine alone, unless its master says so; not known to Connect."""
    return (
        0
        if is_connect(spark) or _is_here(spark)
        else int(spark.sparkContext.getConf().get("spark.task.maxFailures") or 4) - 1
    )


def is_connect(spark: "SparkSession") -> bool:
    """Return whether a session is a client of Spark Connect, which has no SparkContext."""
    return ".connect." in type(spark).__module__


def _is_here(spark: "SparkSession") -> bool:
    """Return whether tasks run on the driver's own machine."""
    master = spark.sparkContext.getConf().get("spark.master") or ""
    return master == "local" or master.startswith("local[")


def ask_tasks(
    spark: "SparkSession",
    description: str,
    questions: Sequence[_Question],
    answer: Callable[[_Question], _Answer],
) -> list[_Answer]:
    """Return the answers to the questions, in their order, each given in a task."""
    if not questions:
        return []
    table = pa.table(
        {
            "number": pa.array(range(len(questions)), pa.int64()),
            "question": pa.array(map(packed, questions), pa.binary()),
        }
    )
    tasks = max(min(len(questions), 2 * spark.sparkContext.defaultParallelism), 1)
    asked = frame_of(spark, table).repartition(tasks) if tasks > 1 else frame_of(spark, table).coalesce(1)
    answers = collected(spark, description, asked.mapInArrow(partial(answering, answer=answer), ANSWERS))
    found = dict(zip(answers["number"].to_pylist(), answers["answer"], strict=True))
    return [unpacked(found[number].as_py()) for number in range(len(questions))]


def why_not_opened(segment: SegmentFile, open_source: OpenSource) -> str:
    """Return why a segment cannot be opened here, nothing where it can."""
    try:
        open_source(segment).close()
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


def require_readable(spark: "SparkSession", newest: Mapping[str, SegmentFile]) -> None:
    """Open one segment of each log directory from a task, the newest: retention removes it last.

    Raises:
        UnreadableInputError: the driver can open it and the task cannot: the workers do not see this log directory.

    """
    if is_connect(spark) or _is_here(spark):
        return
    try_to_open = partial(why_not_opened, open_source=from_here())
    what = "kaudit: can the workers read the input?"
    reasons = ask_tasks(spark, what, list(newest.values()), try_to_open)
    refused = {segment.path: reason for segment, reason in zip(newest.values(), reasons, strict=True) if reason}
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
    try:
        yield
    except Exception as error:
        # py4j: what the JVM throws past pyspark
        if isinstance(error, PySparkException) or type(error).__module__.startswith("py4j."):
            raise SparkFailedError(f"Spark gave up: {_reason(error)}") from error
        raise


def collected(spark: "SparkSession", description: str, frame: "DataFrame") -> pa.Table:
    """Bring a frame to the driver by a named job. Raises as `errors_in_one_line` does."""
    with errors_in_one_line(), named_job(spark, description):
        return arrow_table(frame)


@contextmanager
def on_disk(frame: "DataFrame") -> Iterator["DataFrame"]:
    """Keep the rows of a frame on Spark's disks once they are made, while the body runs."""
    kept = frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield kept
    finally:
        kept.unpersist()


@contextmanager
def named_job(spark: "SparkSession", description: str) -> Iterator[None]:
    """Name the jobs of the body in Spark's UI, where a session can, and log them in a line."""
    if is_connect(spark):
        yield
        return
    context = spark.sparkContext
    group = f"kaudit-{secrets.token_hex(4)}"
    context.setJobGroup(group, description, interruptOnCancel=True)
    try:
        with logged_job(context, group, description):
            yield
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


_LOG = logging.getLogger(__name__)


class ReadMetrics(Struct, frozen=True):
    """Accumulators of the reading stage: ranges, the bytes and batches that were valid in them, the runs they came to.

    A task that runs twice, failed or copied, counts twice: Spark promises no more of a stage that makes rows.
    """

    ranges: "Accumulator[int]"
    bytes: "Accumulator[int]"
    batches: "Accumulator[int]"
    runs: "Accumulator[int]"

    @classmethod
    def of(cls, context: "SparkContext") -> "ReadMetrics":
        """Return accumulators of this context, at 0."""
        return cls(*(context.accumulator(0) for _ in cls.__struct_fields__))

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Count what reading a range gave; in a task. What could not be read counts as nothing."""
        self.ranges.add(all(isinstance(outcome, ChunkRows) for outcome in outcomes))
        for rows in outcomes:
            if isinstance(rows, ChunkRows):
                self.bytes.add(rows.counts.bytes)
                self.batches.add(rows.counts.batches)
                self.runs.add(len(rows.runs))

    def log(self) -> None:
        """Log them in one line; on the driver."""
        read = (metric.value for metric in (self.ranges, self.bytes, self.batches, self.runs))
        _LOG.info("kaudit: ranges read: %s, bytes %s, batches %s, runs %s", *(f"{number:,}" for number in read))


@contextmanager
def logged_job(context: "SparkContext", group: str, description: str) -> Iterator[None]:
    """Log in one line how many tasks the jobs of this group took, and how long, once the body has ended."""
    began = time.monotonic()
    yield
    seconds = time.monotonic() - began
    tasks, failed = _tasks(context, group) if _LOG.isEnabledFor(logging.INFO) else (0, 0)
    again = f", {failed:,} failed and tried again" if failed else ""
    _LOG.info("%s: tasks: %s%s, %.1f s", description, f"{tasks:,}", again, seconds)


def _tasks(context: "SparkContext", group: str) -> tuple[int, int]:
    """Return the tasks of a group's jobs that ran, and how often one failed."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    found = [info for stage in stages if (info := tracker.getStageInfo(stage)) is not None]
    return sum(info.numCompletedTasks for info in found), sum(info.numFailedTasks for info in found)


_POLL_SECONDS = 0.25


@contextmanager
def reading_progress(metrics: ReadMetrics, ranges: int, total_bytes: int, progress: Progress) -> Iterator[None]:
    """Report how many bytes are read, while the body runs: all of them once every one of the `ranges` was."""
    reported, share, done = 0, 0, threading.Event()

    def report() -> None:
        nonlocal reported
        # tasks that ran twice counted twice, so only the end of the job is the end
        read = total_bytes * min(metrics.ranges.value, ranges - 1 + share) // max(ranges, 1)
        if read > reported:
            progress.advance(read - reported)
            reported = read

    def poll() -> None:
        while not done.wait(_POLL_SECONDS):
            report()

    progress.start(total_bytes)
    thread = threading.Thread(target=poll, name="kaudit-progress", daemon=True)
    thread.start()
    ended = False
    try:
        yield
        ended = True
    finally:
        done.set()
        thread.join()
        share = int(ended)
        report()
