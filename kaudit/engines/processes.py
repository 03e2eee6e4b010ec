"""Reading ranges side by side in processes, their rows handed out in the order of the plan."""

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor

from kaudit.engines.ranges import Range, RangeRead
from kaudit.pipeline.read import ChunkSpec
from kaudit.pipeline.schedule import Outcome, read_range

_TASK_BYTES = 4 << 20
"""Small segments share a task until they have this many bytes."""
_IN_FLIGHT = 2
"""Tasks per process that may wait with their rows: bounds memory."""


def read_in_processes(found: Iterable[Range], processes: int, start_method: str) -> Iterator[RangeRead]:
    """Read every range in one of so many processes; yield them in order."""
    executor = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context(start_method))
    try:
        waiting: deque[tuple[list[Range], Future[list[Outcome]]]] = deque()
        for task in _tasks(found):
            waiting.append((task, executor.submit(_read_all, [spec for _, spec in task])))
            if len(waiting) >= processes * _IN_FLIGHT:
                yield from _results(*waiting.popleft())
        while waiting:
            yield from _results(*waiting.popleft())
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _results(task: Sequence[Range], future: Future[list[Outcome]]) -> Iterator[RangeRead]:
    for (number, spec), outcome in zip(task, future.result(), strict=True):
        yield RangeRead(number, spec, outcome)


def _tasks(found: Iterable[Range]) -> Iterator[list[Range]]:
    task: list[Range] = []
    size = 0
    for entry in found:
        task.append(entry)
        size += entry.spec.stop - entry.spec.start
        if size >= _TASK_BYTES:
            yield task
            task, size = [], 0
    if task:
        yield task


def _read_all(task: Sequence[ChunkSpec]) -> list[Outcome]:
    return [read_range(spec) for spec in task]
