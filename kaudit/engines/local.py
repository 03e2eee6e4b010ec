"""The local engine: schedules ranges over processes and feeds their rows to each partition in order."""

import multiprocessing
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Self

from kaudit.model.result import ScanResult, TimelineResult
from kaudit.pipeline.audit import Audit
from kaudit.pipeline.options import Progress, ScanOptions
from kaudit.pipeline.partition import KeptRows
from kaudit.pipeline.read import ChunkSpec
from kaudit.pipeline.schedule import Job, Outcome, PartitionFeed, find_input, plan_jobs, read_range
from kaudit.pipeline.timeline import build_timelines
from kaudit.source.filesystem import open_segment
from kaudit.source.layout import Layout
from kaudit.source.place import Place

_TASK_BYTES = 8 << 20
"""Small segments share a task until they have this many bytes."""
_POOL_THRESHOLD_BYTES = 64 << 20
"""Below this, starting processes costs more than it saves."""
_IN_FLIGHT = 3
"""Tasks per process that may wait with their rows: bounds memory."""


def scan(options: ScanOptions, progress: Progress) -> ScanResult:
    """Audit everything under the given paths.

    Raises:
        UsageError: a path does not exist, or an option does not fit.
        NothingToAuditError: no segment was found.

    """
    audit, _ = _run(options, progress, keep=None)
    return audit.result()


def timeline(options: ScanOptions, progress: Progress) -> TimelineResult:
    """Audit, and tell the history of the chosen producer ids (all of them if none are chosen).

    Raises as `scan` does.
    """
    chosen = frozenset(options.producer_ids) or None
    audit, kept = _run(options, progress, keep=KeptRows(chosen))
    return build_timelines(audit.result(), audit.partitions, kept)


def _run(options: ScanOptions, progress: Progress, *, keep: KeptRows | None) -> tuple[Audit, list[KeptRows]]:
    layout = find_input(options)
    audit = Audit(options, layout, open_segment)
    jobs = plan_jobs(options, layout)
    total = sum(job.bytes for job in jobs)
    progress.start(total)
    processes = options.jobs or os.cpu_count() or 1
    kept: list[KeptRows] = []
    with _Pool(processes if total >= _POOL_THRESHOLD_BYTES else 1, _start_method(layout)) as pool:
        outcomes = pool.read(jobs)
        for job in jobs:
            feed = PartitionFeed(job, KeptRows(keep.producer_ids) if keep is not None else None)
            for _ in job.ranges():
                spec, outcome = next(outcomes)
                progress.advance(spec.stop - spec.start)
                feed.take(outcome)
            audit.add(feed.close(compacted=options.compacted))
            if feed.kept is not None:
                kept.append(feed.kept)
    return audit, kept


def _start_method(layout: Layout) -> str:
    # clients of remote stores have threads, which a fork would leave behind with their locks held
    local = all(Place.parse(directory.directory).is_local for directory in layout.partitions)
    return "fork" if local else "spawn"


class _Pool:
    """Reads ranges, in processes or here, and hands their rows out in the order of the plan."""

    def __init__(self, processes: int, start_method: str) -> None:
        self._processes = processes
        self._start_method = start_method
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self._processes > 1:
            context = multiprocessing.get_context(self._start_method)
            self._executor = ProcessPoolExecutor(self._processes, mp_context=context)
        return self

    def __exit__(self, *failure: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def read(self, jobs: Iterable[Job]) -> Iterator[tuple[ChunkSpec, Outcome]]:
        """Yield every range of every job with its outcome, in order."""
        if self._executor is None:
            for spec in _ranges(jobs):
                yield spec, read_range(spec)
            return
        waiting: deque[tuple[list[ChunkSpec], Future[list[Outcome]]]] = deque()
        for task in _tasks(jobs):
            waiting.append((task, self._executor.submit(_read_all, task)))
            if len(waiting) >= self._processes * _IN_FLIGHT:
                yield from _results(*waiting.popleft())
        while waiting:
            yield from _results(*waiting.popleft())


def _results(task: Sequence[ChunkSpec], future: "Future[list[Outcome]]") -> Iterator[tuple[ChunkSpec, Outcome]]:
    yield from zip(task, future.result(), strict=True)


def _ranges(jobs: Iterable[Job]) -> Iterator[ChunkSpec]:
    for job in jobs:
        yield from job.ranges()


def _tasks(jobs: Iterable[Job]) -> Iterator[list[ChunkSpec]]:
    task: list[ChunkSpec] = []
    size = 0
    for spec in _ranges(jobs):
        task.append(spec)
        size += spec.stop - spec.start
        if size >= _TASK_BYTES:
            yield task
            task, size = [], 0
    if task:
        yield task


def _read_all(task: Sequence[ChunkSpec]) -> list[Outcome]:
    return [read_range(spec) for spec in task]
