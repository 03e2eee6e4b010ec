"""The local engine: schedules ranges over processes and feeds their rows to each partition in order."""

import multiprocessing
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

from kaudit.engines.memory import keep_freed_memory, keep_freed_memory_small
from kaudit.model.finding import Finding
from kaudit.model.producers import ProducersResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.pipeline.activity import ActivityRows
from kaudit.pipeline.audit import Audit, PartitionAudit
from kaudit.pipeline.batch_rows import BatchTeller, segment_tasks, tell_segment
from kaudit.pipeline.blocks import read_blocks
from kaudit.pipeline.exchange import pack, unpack
from kaudit.pipeline.histories import HistoryRows, PartitionHistory, Piece, Recording, Teller, by_replica
from kaudit.pipeline.options import Progress, ScanOptions
from kaudit.pipeline.partition import KeptRows, RowKeeper
from kaudit.pipeline.producers import list_producers, remembers_markers
from kaudit.pipeline.query import Query
from kaudit.pipeline.read import CHUNK_BYTES, ChunkSpec
from kaudit.pipeline.schedule import (
    Job,
    Outcome,
    PartitionFeed,
    all_needs,
    audit_needs,
    find_input,
    plan_jobs,
    read_range,
)
from kaudit.pipeline.timeline import build_timelines
from kaudit.source.filesystem import open_segment
from kaudit.source.layout import Layout
from kaudit.source.place import Place

_Keeper = TypeVar("_Keeper", bound=RowKeeper | None)
_TASK_BYTES = 8 << 20
"""Small segments share a task until they have this many bytes."""
_SMALL_PIECE_BYTES = 1 << 20
"""For a million producer ids in memory: what is made while a piece is read must stay small beside them."""
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
    audit = _run(options, progress, lambda: _appended(kept, ActivityRows()), _SMALL_PIECE_BYTES, ids=True)
    return list_producers(audit, kept, query)


@contextmanager
def record(options: ScanOptions, progress: Progress, teller: Teller) -> Iterator[Recording]:
    """Audit, and keep on disk what `teller` needs to tell the producers' histories while the body runs.

    Raises as `scan` does.
    """
    keep_freed_memory()
    with tempfile.TemporaryDirectory(prefix="kaudit-") as directory:
        files: list[Path] = []

        def close(partition: PartitionAudit, kept: HistoryRows) -> None:
            files.append(Path(directory, str(len(files))))
            files[-1].write_bytes(pack(PartitionHistory.of(partition, kept)))

        audit = _run(options, progress, HistoryRows, on_close=close)
        result = audit.result()

        def tell(findings: Sequence[Finding]) -> Iterator[Piece]:
            own, remembers = by_replica(findings), remembers_markers(result)
            for file in files:
                history: PartitionHistory = unpack(file.read_bytes())
                yield from teller(history, own.get(history.place, ()), remembers)

        def tell_batches(teller: BatchTeller) -> Iterator[Piece]:
            for task in segment_tasks(plan_jobs(options, audit.layout, audit_needs(audit.layout, audit.book))):
                yield from tell_segment(task, open_segment, teller)

        yield Recording(result, tell, tell_batches)


def _appended(kept: list[_Keeper], keeper: _Keeper) -> _Keeper:
    kept.append(keeper)
    return keeper


def _run(
    options: ScanOptions,
    progress: Progress,
    keeper: Callable[[], _Keeper],
    piece_bytes: int = CHUNK_BYTES,
    *,
    ids: bool = False,
    on_close: Callable[[PartitionAudit, _Keeper], None] | None = None,
) -> Audit:
    """Read everything, about `piece_bytes` at a time.

    `keeper` is asked once a partition, in order, for what takes its rows beside the audit. `ids`: those of every
    partition are wanted. `on_close` is told of each partition that has been read.
    """
    layout = find_input(options)
    audit = Audit(options, layout, open_segment, read_blocks(options, layout, open_segment))
    jobs = plan_jobs(options, layout, all_needs if ids else audit_needs(layout, audit.book), piece_bytes)
    total = sum(job.bytes for job in jobs)
    progress.start(total)
    processes = options.jobs or os.cpu_count() or 1
    with _Pool(processes if total >= _POOL_THRESHOLD_BYTES else 1, _start_method(layout), piece_bytes) as pool:
        outcomes = pool.read(jobs)
        for job in jobs:
            kept = keeper()
            feed = PartitionFeed(job, kept)
            for _ in job.ranges():
                spec, outcome = next(outcomes)
                progress.advance(spec.stop - spec.start)
                feed.take(outcome)
            partition = feed.close()
            if on_close is not None:
                on_close(partition, kept)
            audit.add(partition)
    return audit


def _start_method(layout: Layout) -> str:
    # clients of remote stores have threads, which a fork would leave behind with their locks held
    local = all(Place.parse(directory.directory).is_local for directory in layout.partitions)
    return "fork" if local else "spawn"


class _Pool:
    """Reads ranges, in processes or here, and hands their rows out in the order of the plan."""

    def __init__(self, processes: int, start_method: str, piece_bytes: int) -> None:
        self._processes = processes
        self._start_method = start_method
        self._task_bytes = min(_TASK_BYTES, piece_bytes)
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
        for task in _tasks(jobs, self._task_bytes):
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


def _tasks(jobs: Iterable[Job], task_bytes: int) -> Iterator[list[ChunkSpec]]:
    task: list[ChunkSpec] = []
    size = 0
    for spec in _ranges(jobs):
        task.append(spec)
        size += spec.stop - spec.start
        if size >= task_bytes:
            yield task
            task, size = [], 0
    if task:
        yield task


def _read_all(task: Sequence[ChunkSpec]) -> list[Outcome]:
    return [read_range(spec) for spec in task]
