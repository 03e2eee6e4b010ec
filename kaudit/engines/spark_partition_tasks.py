"""Work that is one task for each partition, done by Spark's executors."""

from collections.abc import Sequence
from functools import partial

from kaudit.engines.partition_tasks import Done, Job, Task
from kaudit.engines.progress import Progress
from kaudit.engines.spark_jobs import ask_tasks, from_here, require_readable
from kaudit.engines.spark_session import SparkOptions, session
from kaudit.scanning.options import ScanOptions


def each_partition(
    work: Sequence[Task], job: Job[Task, Done], options: ScanOptions, progress: Progress, *, spark: SparkOptions
) -> list[Done]:
    """Return what comes of each task, in their order.

    Raises:
        UsageError: Spark cannot be started.
        UnreadableInputError: the workers do not see what the driver sees.
        SparkFailedError: Spark gave up.

    """
    # dealt out in turn, so that large ones do not come together
    by_size = sorted(range(len(work)), key=lambda number: -work[number].bytes)
    directories = [directory for task in work for directory in task.directories if directory.segments]
    with session(spark, options.jobs) as started:
        require_readable(started, {directory.log_dir: directory.segments[-1] for directory in directories})
        one = partial(job, options=options, open_source=from_here())
        done = ask_tasks(started, "kaudit: compare partitions", [work[number] for number in by_size], one)
    progress.advance(sum(task.bytes for task in work))
    results = dict(zip(by_size, done, strict=True))
    return [results[number] for number in range(len(work))]
