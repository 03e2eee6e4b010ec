"""The local engine: schedules ranges over processes and feeds their rows to each partition in order."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import NamedTuple, Self, TypeVar

from kaudit.engines.memory import keep_freed_memory, keep_freed_memory_small
from kaudit.model.producers import ProducersResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.pipeline.activity import ActivityRows
from kaudit.pipeline.audit import Audit
from kaudit.pipeline.blocks import read_blocks
from kaudit.pipeline.options import Progress, ScanOptions
from kaudit.pipeline.pace import Pace, paced, steady
from kaudit.pipeline.partition import KeptRows, RowKeeper
from kaudit.pipeline.plan import cut_first
from kaudit.pipeline.producers import list_producers
from kaudit.pipeline.query import Query
from kaudit.pipeline.read import ChunkSpec
from kaudit.pipeline.rows import ChunkRows
from kaudit.pipeline.schedule import Job, Outcome, PartitionFeed, find_input, plan_jobs, read_range
from kaudit.pipeline.timeline import build_timelines
from kaudit.source.filesystem import open_segment
from kaudit.source.layout import Layout
from kaudit.source.place import Place

_Keeper = TypeVar("_Keeper", bound=RowKeeper)
_TASK_BYTES = 4 << 20
"""Small segments share a task until they have this many bytes."""
_SMALL_PIECE_BYTES = 1 << 20
"""For a million producer ids in memory: what is made while a piece is read must stay small beside them."""
_POOL_THRESHOLD_BYTES = 64 << 20
"""Below this, starting processes costs more than it saves."""
_IN_FLIGHT = 2
"""Tasks per process that may wait with their rows: bounds memory."""


def scan(options: ScanOptions, progress: Progress) -> ScanResult:
    """Audit everything under the given paths.

    Raises:
        UsageError: a path does not exist, or an option does not fit.
        NothingToAuditError: no segment was found.

    """
    keep_freed_memory()
    return _run(options, progress, lambda: None).result()


def timeline(options: ScanOptions, progress: Progress) -> TimelineResult:
    """Audit, and tell the history of the chosen producer ids (all of them if none are chosen).

    Raises as `scan` does.
    """
    keep_freed_memory()
    chosen = frozenset(options.producer_ids) or None
    kept: list[KeptRows] = []
    audit = _run(options, progress, lambda: _appended(kept, KeptRows(chosen)))
    return build_timelines(audit.result(), audit.partitions, kept)


def producers(options: ScanOptions, progress: Progress, query: Query) -> ProducersResult:
    """Audit, and list the producer ids that `query` chooses.

    Raises as `scan` does.
    """
    keep_freed_memory_small()
    kept: list[ActivityRows] = []
    audit = _run(options, progress, lambda: _appended(kept, ActivityRows()), _SMALL_PIECE_BYTES)
    return list_producers(audit, kept, query)


def _appended(kept: list[_Keeper], keeper: _Keeper) -> _Keeper:
    kept.append(keeper)
    return keeper


def _run(
    options: ScanOptions, progress: Progress, keeper: Callable[[], RowKeeper | None], piece_bytes: int | None = None
) -> Audit:
    """Read everything, `piece_bytes` at a time if given, else as the rows allow.

    `keeper` is asked once a partition, in order, for what takes its rows beside the audit.
    """
    layout = find_input(options)
    audit = Audit(options, layout, open_segment, read_blocks(options, layout, open_segment))
    jobs = plan_jobs(options, layout)
    total = sum(job.bytes for job in jobs)
    progress.start(total)
    processes = (options.jobs or os.cpu_count() or 1) if total >= _POOL_THRESHOLD_BYTES else 1
    fixed = options.chunk_bytes or piece_bytes
    paces = [paced(total, processes) if fixed is None else steady(fixed) for _ in jobs]
    with _Pool(processes, _start_method(layout)) as pool:
        outcomes = pool.read(jobs, paces)
        ahead = next(outcomes, None)
        for number, (job, pace) in enumerate(zip(jobs, paces, strict=True)):
            feed = PartitionFeed(job, keeper())
            while ahead is not None and ahead.job == number:
                progress.advance(ahead.spec.stop - ahead.spec.start)
                feed.take(ahead.outcome)
                if isinstance(ahead.outcome, ChunkRows):
                    pace.note(ahead.outcome, feed.producer_ids)
                ahead = next(outcomes, None)
            audit.add(feed.close(compacted=options.says_compacted(job.directory.topic)))
    return audit


def _start_method(layout: Layout) -> str:
    # clients of remote stores have threads, which a fork would leave behind with their locks held
    local = all(Place.parse(directory.directory).is_local for directory in layout.partitions)
    return "fork" if local else "spawn"


class _Range(NamedTuple):
    """A range to read, of the job with this number."""

    job: int
    spec: ChunkSpec


class _Read(NamedTuple):
    """A range and what came of it."""

    job: int
    spec: ChunkSpec
    outcome: Outcome


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

    def read(self, jobs: Sequence[Job], paces: Sequence[Pace]) -> Iterator[_Read]:
        """Yield every range of every job with its outcome, in order; ranges are cut when their turn comes."""
        if self._executor is None:
            for number, spec in _ranges(jobs, paces):
                yield _Read(number, spec, read_range(spec))
            return
        waiting: deque[tuple[list[_Range], Future[list[Outcome]]]] = deque()
        for task in _tasks(_ranges(jobs, paces)):
            waiting.append((task, self._executor.submit(_read_all, [spec for _, spec in task])))
            if len(waiting) >= self._processes * _IN_FLIGHT:
                yield from _results(*waiting.popleft())
        while waiting:
            yield from _results(*waiting.popleft())


def _results(task: Sequence[_Range], future: "Future[list[Outcome]]") -> Iterator[_Read]:
    for (number, spec), outcome in zip(task, future.result(), strict=True):
        yield _Read(number, spec, outcome)


def _ranges(jobs: Sequence[Job], paces: Sequence[Pace]) -> Iterator[_Range]:
    for number, (job, pace) in enumerate(zip(jobs, paces, strict=True)):
        for spec in job.plan:
            rest: ChunkSpec | None = spec
            while rest is not None:
                part, rest = cut_first(rest, pace.bytes)
                yield _Range(number, part)


def _tasks(ranges: Iterable[_Range]) -> Iterator[list[_Range]]:
    task: list[_Range] = []
    size = 0
    for entry in ranges:
        task.append(entry)
        size += entry.spec.stop - entry.spec.start
        if size >= _TASK_BYTES:
            yield task
            task, size = [], 0
    if task:
        yield task


def _read_all(task: Sequence[ChunkSpec]) -> list[Outcome]:
    return [read_range(spec) for spec in task]
