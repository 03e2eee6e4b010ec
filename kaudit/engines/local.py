"""The local engine: schedules chunks over processes and feeds their rows to each partition in order."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeVar

import numpy as np

from kaudit.engines.memory import keep_freed_memory_small
from kaudit.model.batch import CONTROL_FLAG, last_offsets, last_sequences
from kaudit.model.producers import ProducersResult
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.pipeline.activity import ActivityRows
from kaudit.pipeline.audit import DAY_MS, Audit, PartitionAudit, close_partition, latest_modification
from kaudit.pipeline.blocks import read_blocks
from kaudit.pipeline.options import Depth, NothingToAuditError, Progress, ScanOptions, UsageError
from kaudit.pipeline.partition import KeptRows, PartitionReplay, RowKeeper
from kaudit.pipeline.plan import cut, whole_segments
from kaudit.pipeline.producers import list_producers
from kaudit.pipeline.query import Query
from kaudit.pipeline.read import CHUNK_BYTES, ChunkSpec, read_chunk, read_serially
from kaudit.pipeline.rows import ChunkRows, Rows
from kaudit.pipeline.stream import stream_batches
from kaudit.pipeline.timeline import build_timelines
from kaudit.replay.judge import Edge
from kaudit.source.bytes import ByteSource, LocalFile
from kaudit.source.discover import PathNotFoundError, discover
from kaudit.source.layout import Layout, PartitionDirectory, SegmentFile, Unreadable

_Keeper = TypeVar("_Keeper", bound=RowKeeper)
_TASK_BYTES = 8 << 20
"""Small segments share a task until they have this many bytes."""
_SMALL_PIECE_BYTES = 1 << 20
"""For a million producer ids in memory: what is made while a piece is read must stay small beside them."""
_POOL_THRESHOLD_BYTES = 64 << 20
"""Below this, starting processes costs more than it saves."""
_IN_FLIGHT = 3
"""Tasks per process that may wait with their rows: bounds memory."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A chunk whose file could not be read."""

    path: str
    reason: str
    vanished: bool


Outcome = ChunkRows | Failure


def scan(options: ScanOptions, progress: Progress) -> ScanResult:
    """Audit everything under the given paths.

    Raises:
        UsageError: a path does not exist, or an option does not fit.
        NothingToAuditError: no segment was found.

    """
    return _run(options, progress, lambda: None).result()


def timeline(options: ScanOptions, progress: Progress) -> TimelineResult:
    """Audit, and tell the history of the chosen producer ids (all of them if none are chosen).

    Raises as `scan` does.
    """
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


def open_segment(segment: SegmentFile) -> ByteSource:
    """Open a local segment file."""
    return LocalFile(Path(segment.path))


def _run(
    options: ScanOptions, progress: Progress, keeper: Callable[[], RowKeeper | None], piece_bytes: int = CHUNK_BYTES
) -> Audit:
    """Read everything, about `piece_bytes` at a time.

    `keeper` is asked once a partition, in order, for what takes its rows beside the audit.
    """
    layout = _discover(options)
    audit = Audit(options, layout, open_segment, read_blocks(options, layout, open_segment))
    latest = latest_modification(layout) + DAY_MS
    plans = [
        whole_segments(
            directory,
            log_start_offset=directory.log_start_offset,
            verify=options.depth is not Depth.HEADERS,
            latest_timestamp=latest,
        )
        for directory in layout.partitions
    ]
    if options.depth is Depth.RECORDS:
        plans = [[replace(spec, decode=True) for spec in plan] for plan in plans]
    total = sum(spec.end for plan in plans for spec in plan)
    progress.start(total)
    jobs = options.jobs or os.cpu_count() or 1
    with _Pool(jobs if total >= _POOL_THRESHOLD_BYTES else 1, piece_bytes) as pool:
        outcomes = pool.read(plans)
        for directory, plan in zip(layout.partitions, plans, strict=True):
            audit.add(_read_partition(directory, plan, outcomes, options, progress, keeper()))
    return audit


def _discover(options: ScanOptions) -> Layout:
    try:
        layout = discover(options.paths)
    except PathNotFoundError as error:
        raise UsageError(f"no such file or directory: {error}") from error
    chosen = [
        directory
        for directory in layout.partitions
        if (not options.topics or directory.topic in options.topics)
        and (not options.partitions or directory.partition in options.partitions)
    ]
    unchosen = [directory for directory in layout.partitions if directory not in chosen]
    if options.log_start_offset is not None:
        chosen = [replace(directory, log_start_offset=options.log_start_offset) for directory in chosen]
    if not any(directory.segments for directory in chosen):
        raise NothingToAuditError(_nothing(options, layout))
    return replace(layout, partitions=chosen, unchosen=unchosen)


def _nothing(options: ScanOptions, layout: Layout) -> str:
    where = ", ".join(options.paths)
    if layout.unreadable:
        return f"nothing to audit under {where}: {layout.unreadable[0].path}: {layout.unreadable[0].reason}"
    if layout.strays:
        return f"nothing to audit under {where}: only {layout.strays[0].relative} ({layout.strays[0].kind})"
    if layout.partitions:
        names = sorted({directory.topic for directory in layout.partitions})
        return f"nothing to audit under {where}: no segment matches; topics there: {', '.join(names[:10])}"
    if layout.skipped:
        return f"nothing to audit under {where}: {layout.skipped[0].path}: {layout.skipped[0].reason}"
    return f"nothing to audit under {where}: no segment (a file such as 00000000000000000000.log) was found"


def _read_partition(
    directory: PartitionDirectory,
    plan: Sequence[ChunkSpec],
    outcomes: "Iterator[tuple[ChunkSpec, Outcome]]",
    options: ScanOptions,
    progress: Progress,
    kept: RowKeeper | None,
) -> PartitionAudit:
    replay = PartitionReplay(directory, _fetcher(directory), kept)
    failures: list[Unreadable] = []
    disordered = False
    remaining = {spec.segment: spec.stop for spec in plan}
    while remaining:
        spec, outcome = next(outcomes)
        if spec.stop == remaining[spec.segment]:
            del remaining[spec.segment]
        progress.advance(spec.stop - spec.start)
        if isinstance(outcome, Failure):
            replay.continuity.skip()
            if not outcome.vanished:
                failures.append(Unreadable(outcome.path, outcome.reason))
        elif not disordered:
            cut_short = outcome.read_to != spec.stop
            disordered = cut_short or not replay.feed(outcome)
    if disordered and not failures:
        replay = _read_in_order(directory, plan, kept)
    replay.finish()
    return close_partition(replay, compacted=options.says_compacted(directory.topic), unreadable=failures)


def _read_in_order(directory: PartitionDirectory, plan: Sequence[ChunkSpec], kept: RowKeeper | None) -> PartitionReplay:
    """Read a partition again from front to back: its offsets do not ascend, or damage crosses a cut."""
    if kept is not None:
        kept.clear()
    replay = PartitionReplay(directory, _fetcher(directory), kept)
    for rows in read_serially(plan, open_segment):
        if not replay.feed(rows):
            raise AssertionError(f"batches of {directory.directory} are out of order after ordering")
    return replay


class _Fetcher:
    """Reads all batches of one run again: only rows of producers with anomalies need it."""

    def __init__(self, directory: PartitionDirectory) -> None:
        self._directory = directory

    def __call__(self, run: Rows) -> list[Edge]:
        segment = self._directory.segments[int(run["segment"])]
        present, reached = int(run["present_before_first"]), int(run["first_offset"]) - 1
        edges: list[Edge] = []
        source = open_segment(segment)
        try:
            for piece in stream_batches(
                source, int(run["first_position"]), segment.size, segment.size, expected_offset=None
            ):
                batches = piece.batches
                lasts, sequences = last_offsets(batches), last_sequences(batches)
                mine = (batches["producer_id"] == run["producer_id"]) & (batches["attributes"] & CONTROL_FLAG == 0)
                covered = present + np.cumsum(lasts - batches["base_offset"] + 1)
                for index in np.flatnonzero(mine & (batches["base_offset"] > reached)).tolist():
                    row = batches[index]
                    if int(row["base_offset"]) > int(run["last_offset"]):
                        return edges
                    before = int(covered[index]) - (int(lasts[index]) - int(row["base_offset"]) + 1)
                    edges.append(
                        Edge(
                            int(row["base_offset"]),
                            int(lasts[index]),
                            int(row["base_sequence"]),
                            int(sequences[index]),
                            int(row["record_count"]),
                            int(row["crc"]),
                            int(row["max_timestamp"]),
                            before,
                            int(row["position"]),
                            int(row["size"]),
                            int(row["leader_epoch"]),
                            int(run["segment"]),
                        )
                    )
                if len(batches):
                    present = int(covered[-1])
        finally:
            source.close()
        return edges


def _fetcher(directory: PartitionDirectory) -> _Fetcher:
    return _Fetcher(directory)


class _Pool:
    """Reads chunks, in processes or here, and hands their rows out in the order of the plan."""

    def __init__(self, jobs: int, piece_bytes: int) -> None:
        self._jobs = jobs
        self._piece_bytes = piece_bytes
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self._jobs > 1:
            self._executor = ProcessPoolExecutor(self._jobs, mp_context=multiprocessing.get_context("fork"))
        return self

    def __exit__(self, *failure: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def read(self, plans: Iterable[Sequence[ChunkSpec]]) -> Iterator[tuple[ChunkSpec, Outcome]]:
        """Yield every chunk of every plan with its outcome, in order."""
        if self._executor is None:
            for plan in plans:
                for spec in plan:
                    for part in _parts(spec, self._piece_bytes):
                        yield part, _read(part)
            return
        waiting: deque[tuple[list[ChunkSpec], Future[list[Outcome]]]] = deque()
        for task in _tasks(plans, self._piece_bytes):
            waiting.append((task, self._executor.submit(_read_all, task)))
            if len(waiting) >= self._jobs * _IN_FLIGHT:
                yield from _results(*waiting.popleft())
        while waiting:
            yield from _results(*waiting.popleft())


def _results(task: list[ChunkSpec], future: "Future[list[Outcome]]") -> Iterator[tuple[ChunkSpec, Outcome]]:
    yield from zip(task, future.result(), strict=True)


def _tasks(plans: Iterable[Sequence[ChunkSpec]], piece_bytes: int) -> Iterator[list[ChunkSpec]]:
    task: list[ChunkSpec] = []
    size = 0
    for plan in plans:
        for spec in plan:
            for part in _parts(spec, piece_bytes):
                task.append(part)
                size += part.stop - part.start
                if size >= min(_TASK_BYTES, piece_bytes):
                    yield task
                    task, size = [], 0
    if task:
        yield task


def _parts(spec: ChunkSpec, piece_bytes: int) -> Iterator[ChunkSpec]:
    try:
        source = open_segment(spec.file)
    except OSError:
        yield spec  # reading it tells the reason
        return
    try:
        yield from cut(spec, source, piece_bytes)
    finally:
        source.close()


def _read_all(task: list[ChunkSpec]) -> list[Outcome]:
    return [_read(spec) for spec in task]


def _read(spec: ChunkSpec) -> Outcome:
    try:
        source = open_segment(spec.file)
    except OSError as error:
        vanished = isinstance(error, FileNotFoundError)
        return Failure(spec.file.path, error.strerror or type(error).__name__, vanished)
    try:
        return read_chunk(spec, source)
    except OSError as error:
        return Failure(spec.file.path, error.strerror or type(error).__name__, vanished=False)
    finally:
        source.close()
