"""Work that is one task for each partition, and the local engine for it: in processes, or here."""

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from kaudit.engines.progress import Progress
from kaudit.engines.ranges import PROCESSES_PAY_BYTES
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import PartitionDirectory
from kaudit.source.schemes import open_segment
from kaudit.source.uri import Uri


class PartitionTask(Protocol):
    """What is to be done for one partition."""

    @property
    def bytes(self) -> int:
        """Bytes to read."""

    @property
    def directories(self) -> Sequence[PartitionDirectory]:
        """What is read: the partition's directory on each replica."""


Task = TypeVar("Task", bound=PartitionTask)
Done = TypeVar("Done")
_Task_contra = TypeVar("_Task_contra", bound=PartitionTask, contravariant=True)
_Done_co = TypeVar("_Done_co", covariant=True)


class Job(Protocol[_Task_contra, _Done_co]):
    """What does one task, wherever an engine calls it."""

    def __call__(self, task: _Task_contra, /, options: ScanOptions, open_source: OpenSource) -> _Done_co:
        """Do one task."""


class EachPartition(Protocol):
    """An engine, for this kind of work."""

    def __call__(
        self, work: Sequence[Task], job: Job[Task, Done], options: ScanOptions, progress: Progress
    ) -> Iterable[Done]:
        """Return what comes of each task, in their order."""


def each_partition(
    work: Sequence[Task], job: Job[Task, Done], options: ScanOptions, progress: Progress
) -> Iterator[Done]:
    """Yield what comes of each task, in their order: in processes, where that pays."""
    jobs = min(options.jobs or os.cpu_count() or 1, len(work))
    # clients of remote stores have threads, which a fork would leave behind with their locks held
    local = all(Uri.parse(path).is_local for path in options.paths)
    one = partial(job, options=options, open_source=open_segment)
    if jobs < 2 or not local or sum(task.bytes for task in work) < PROCESSES_PAY_BYTES:
        yield from _advancing(work, map(one, work), progress)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        yield from _advancing(work, pool.map(one, work), progress)


def _advancing(work: Sequence[Task], results: Iterable[Done], progress: Progress) -> Iterator[Done]:
    for task, result in zip(work, results, strict=True):
        progress.advance(task.bytes)
        yield result
