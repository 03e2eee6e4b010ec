"""Reading ranges side by side in processes, their rows handed out in the order of the plan."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from threading import Thread

from kaudit.analysis.scan.chunk_plan import ChunkSpec
from kaudit.analysis.scan.partition_assembler import Outcome
from kaudit.engines.ranges import Range, RangeRead, read_most

_TASK_BYTES = 4 << 20
"""Small segments share a task until they have this many bytes."""
_IN_FLIGHT = 2
"""Tasks per process that are read ahead of the one whose turn it is: bounds the rows in memory."""


def read_in_processes(found: Iterable[Range], processes: int, start_method: str) -> Iterator[RangeRead]:
    """Read every range in one of so many processes; yield them in order.

    When a process is killed, the executor gives up the others too: what is left is read here.
    """
    context = multiprocessing.get_context(start_method)
    with ProcessPoolExecutor(processes, context, _prepare_process) as executor:
        waiting: deque[tuple[list[Range], Future[list[Outcome]] | None]] = deque()
        try:
            for task in _tasks(found):
                waiting.append((task, _submit(executor, task)))
                if len(waiting) >= processes * _IN_FLIGHT:
                    yield from _results(*waiting.popleft())
            while waiting:
                yield from _results(*waiting.popleft())
        finally:
            executor.shutdown(cancel_futures=True)  # the consumer may have stopped early


def _submit(executor: ProcessPoolExecutor, task: Sequence[Range]) -> Future[list[Outcome]] | None:
    """Return the task's future, None where no process is left to do it."""
    try:
        return executor.submit(_read, [spec for _, spec in task])
    except BrokenProcessPool:
        return None


def _results(task: Sequence[Range], future: Future[list[Outcome]] | None) -> Iterator[RangeRead]:
    try:
        outcomes = None if future is None else future.result()
    except BrokenProcessPool:
        outcomes = None
    if outcomes is None:
        outcomes = _read([spec for _, spec in task])
    for (number, spec), outcome in zip(task, outcomes, strict=True):
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


def _read(specs: Sequence[ChunkSpec]) -> list[Outcome]:
    return [read_most(spec) for spec in specs]


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its processes
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent is gone: after SIGKILL nobody shuts the executor down."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
