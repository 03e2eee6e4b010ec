"""Sharing the work of a scan among Spark's tasks: ranges into reading tasks, partitions into replaying tasks."""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec import Struct
from msgspec.structs import replace

from kaudit.engines.spark_tasks import ByteRangeTask, PartitionHeader, ReadTask
from kaudit.engines.task_size import TASKS_PER_CORE, block_bytes, task_bytes
from kaudit.partition.job import Job
from kaudit.scanning.findings import replicas_of
from kaudit.source.layout import PartitionDirectory
from kaudit.source.snapshots import list_snapshots

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
    largest = max((job.bytes for job in jobs), default=0)
    size = task_bytes(total + saved * _SAVED_BYTES, block_bytes(jobs), cores, largest)
    groups = replicas_of([job.directory for job in jobs])
    wanted = max(cores * TASKS_PER_CORE, total // _REPLAYED_BYTES, len(groups) // _REPLAYED_PARTITIONS)
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
        snapshots = [file.offset for file in list_snapshots(job.directory)]
        work.headers.append((job_index, where[job_index], PartitionHeader(job, len(ranges))))
        for number, (spec, following) in enumerate(zip_longest(ranges, ranges[1:])):
            last = work.byte_ranges[-1] if work.byte_ranges else None
            beside = last is not None and last.job_index == job_index and last.spec.file == spec.file
            if last is not None and beside and last.spec.saved is None and spec.saved is None:
                work.byte_ranges[-1] = replace(last, spec=replace(last.spec, stop=spec.stop))
            else:
                inside = _of_segment(snapshots, job.directory, spec.segment)
                task = ByteRangeTask(job_index, where[job_index], number, spec, job.chunk_bytes, inside)
                work.byte_ranges.append(task)
            filled += _SAVED_BYTES if spec.saved is not None else spec.bytes_to_read
            segment_ends = following is None or following.file != spec.file
            if filled >= (size * 3 // 4 if segment_ends else size):
                yield work
                work, filled = ReadTask([], []), 0
    if work.byte_ranges or work.headers:
        yield work


def _of_segment(snapshots: Sequence[int], directory: PartitionDirectory, segment: int) -> Sequence[int]:
    """Return which of these offsets, ascending, lie behind a segment's first one."""
    first = bisect_right(snapshots, directory.segments[segment].base_offset)
    following = directory.segments[segment + 1 : segment + 2]
    stop = bisect_left(snapshots, following[0].base_offset) if following else len(snapshots)
    return tuple(snapshots[first:stop])
