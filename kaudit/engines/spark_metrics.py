"""What Spark's jobs did, as accumulators that tasks add to, and a line of the log for each job."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from kaudit.reading.chunk_rows import ChunkRows, Outcome

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext

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
        """Count what reading a range gave; in a task."""
        self.ranges.add(1)
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
