"""Sharing the work of a scan among Spark's tasks: ranges into reading tasks, partitions into replaying tasks."""

import heapq
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.analysis.scan.chunk_reader import CHUNK_BYTES
from kaudit.analysis.scan.judging import replicas_of
from kaudit.analysis.scan.planning import Job
from kaudit.engines.spark_tasks import ByteRangeTask, PartitionHeader, ReadTask

_TASKS_PER_CORE = 4
"""So many reading tasks a core even out what compresses, decodes or is stored unlike its neighbours."""
_LARGEST_TASK = 1 << 30
"""A task lost with its executor is read again: this much at most. 100 TB make 100,000 tasks, which Spark bears."""
_SAVED_BYTES = 8 << 20
"""Loading what is saved of a segment costs at most about as much as reading so many bytes of a log."""
_REPLAYED_BYTES = 16 << 30
_REPLAYED_PARTITIONS = 64
"""A replaying task takes about so much of the log, or so many partitions: under dynamic allocation cores come later."""


class SparkPlan(Struct, frozen=True):
    """The reading tasks, and the number of replaying tasks their rows go to."""

    works: Sequence[ReadTask]
    shuffle_partitions: int
    bytes: int


def share(jobs: Sequence[Job], cores: int) -> SparkPlan:
    """Share the jobs among tasks for so many `cores`: small partitions together, large ones in pieces."""
    total = sum(job.bytes for job in jobs)
    saved = sum(len(job.saved.pieces) - job.saved.resumed for job in jobs if job.saved is not None)
    size = min(max((total + saved * _SAVED_BYTES) // (cores * _TASKS_PER_CORE), CHUNK_BYTES), _LARGEST_TASK)
    groups = replicas_of([job.directory for job in jobs])
    wanted = max(cores * _TASKS_PER_CORE, total // _REPLAYED_BYTES, len(groups) // _REPLAYED_PARTITIONS)
    shuffle_partitions = max(min(len(groups), wanted), 1)
    where = _assign(jobs, groups, shuffle_partitions)
    return SparkPlan(list(_works(jobs, where, size)), shuffle_partitions, total)


def _assign(jobs: Sequence[Job], groups: Sequence[Sequence[int]], shuffle_partitions: int) -> list[int]:
    """Give the replicas of each topic partition one replaying task, the largest first, each the task with the fewest bytes so far."""
    loads = [(0, number) for number in range(shuffle_partitions)]
    where = [0] * len(jobs)
    for size, replicas in sorted(((sum(jobs[index].bytes for index in own), own) for own in groups), key=_largest):
        load, number = heapq.heappop(loads)
        for job_index in replicas:
            where[job_index] = number
        heapq.heappush(loads, (load + size, number))
    return where


def _largest(sized: tuple[int, Sequence[int]]) -> int:
    return -sized[0]


def _works(jobs: Sequence[Job], where: Sequence[int], size: int) -> Iterator[ReadTask]:
    work, filled = ReadTask([], []), 0
    for job_index, job in enumerate(jobs):
        ranges = job.ranges()
        work.headers.append((job_index, where[job_index], PartitionHeader(job, len(ranges))))
        for number, spec in enumerate(ranges):
            last = work.byte_ranges[-1] if work.byte_ranges else None
            beside = last is not None and last.job_index == job_index and last.spec.file == spec.file
            if last is not None and beside and last.spec.saved is None and spec.saved is None:
                work.byte_ranges[-1] = replace(last, spec=replace(last.spec, stop=spec.stop))
            else:
                work.byte_ranges.append(ByteRangeTask(job_index, where[job_index], number, spec, job.chunk_bytes))
            filled += _SAVED_BYTES if spec.saved is not None else spec.bytes_to_read
            if filled >= size:
                yield work
                work, filled = ReadTask([], []), 0
    if work.byte_ranges or work.headers:
        yield work
