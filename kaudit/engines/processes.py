"""Reading ranges side by side in processes, their rows handed out in the order of the plan.

Not an executor of the standard library: rows are columns of some MiB, which those would copy four times on their way.
"""

import multiprocessing
import pickle
import signal
import socket
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, Self

import numpy as np

from kaudit.engines.ranges import Range, RangeRead
from kaudit.pipeline.read import ChunkSpec
from kaudit.pipeline.schedule import Outcome, read_range

_TASK_BYTES = 4 << 20
"""Small segments share a task until they have this many bytes."""
_IN_FLIGHT = 3
"""Tasks per process that may wait with their rows, one if those have _HELD_BYTES: bounds memory."""
_HELD_BYTES = 8 << 20
_APART_BYTES = 1 << 16
"""Columns from this size on are sent as they lie in memory, without a copy."""
_COUNT = struct.Struct("<Q")
_Answer = tuple[bytes, list[memoryview]]
"""What was pickled, and the columns that were sent apart."""


def read_in_processes(found: Iterable[Range], processes: int, start_method: str) -> Iterator[RangeRead]:
    """Read every range in one of so many processes; yield them in order.

    What a process cannot read - it was killed, or failed - is read here, and fails here if it must.
    """
    with ExitStack() as stack:
        workers = _start(processes, start_method, stack)
        waiting: deque[tuple[list[Range], _Worker]] = deque()
        for task in _tasks(found):
            worker = min(workers, key=_Worker.busy)
            worker.submit([spec for _, spec in task])
            waiting.append((task, worker))
            while len(waiting) >= processes * (1 if sum(map(_Worker.held, workers)) > _HELD_BYTES else _IN_FLIGHT):
                yield from _results(*waiting.popleft())
        while waiting:
            yield from _results(*waiting.popleft())


def _start(processes: int, start_method: str, stack: ExitStack) -> "list[_Worker]":
    context: Any = multiprocessing.get_context(start_method)
    ours: list[socket.socket] = []
    workers: list[_Worker] = []
    for _ in range(processes):
        here, there = socket.socketpair()
        ours.append(here)
        # a forked process inherits our ends: open there, they would outlive us
        process = context.Process(target=_serve, args=(there, ours), daemon=True)
        process.start()
        there.close()
        workers.append(stack.enter_context(_Worker(process, here)))
    for worker in workers:
        worker.listen()  # threads only when all have been forked
    return workers


class _Worker:
    """One process, its socket, and the thread that takes what comes from it. Tasks are answered in order."""

    def __init__(self, process: multiprocessing.process.BaseProcess, here: socket.socket) -> None:
        self._process = process
        self._socket = here
        # each counted by one thread only
        self._sent = self._answered = 0
        self._bytes_in = self._bytes_out = 0
        self._answers: SimpleQueue[_Answer | None] = SimpleQueue()
        self._thread = Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # it may be gone
            self._socket.shutdown(socket.SHUT_RDWR)
        self._process.terminate()
        self._process.join()
        if self._thread.ident is not None:
            self._thread.join()
        self._socket.close()

    def listen(self) -> None:
        self._thread.start()

    def busy(self) -> int:
        """How many tasks it has not answered yet."""
        return self._sent - self._answered

    def held(self) -> int:
        """How many bytes of answers wait to be asked for."""
        return self._bytes_in - self._bytes_out

    def submit(self, task: list[ChunkSpec]) -> None:
        self._sent += 1
        data = pickle.dumps(task, pickle.HIGHEST_PROTOCOL)
        try:
            self._socket.sendall(_COUNT.pack(len(data)) + data)
        except OSError:
            self._answers.put(None)  # it is gone

    def answer(self) -> list[Outcome] | None:
        """Return what came of the oldest task not asked for yet, None if it is not to be had."""
        received = self._answers.get()
        if received is None:
            self._answers.put(None)  # nor will there be any more
            return None
        self._bytes_out += _size(received)
        outcomes: list[Outcome] = pickle.loads(received[0], buffers=received[1])  # noqa: S301 - from a process of ours
        return outcomes

    def _listen(self) -> None:
        try:
            while True:
                (parts,) = _COUNT.unpack(_receive(self._socket, _COUNT.size))
                sizes = struct.unpack(f"<{parts}Q", _receive(self._socket, _COUNT.size * parts))
                head, *columns = [_receive(self._socket, size) for size in sizes]
                answer = bytes(head), columns
                self._answered += 1
                self._bytes_in += _size(answer)
                self._answers.put(answer)
        except (OSError, EOFError):
            self._answers.put(None)


def _size(answer: _Answer) -> int:
    return len(answer[0]) + sum(map(len, answer[1]))


def _receive(connection: socket.socket, size: int) -> memoryview:
    # not a bytearray: it would be filled with zeros first
    data = rest = np.empty(size, dtype=np.uint8).data
    while len(rest):
        count = connection.recv_into(rest, 0, socket.MSG_WAITALL)
        if not count:
            raise EOFError
        rest = rest[count:]
    return data


def _results(task: Sequence[Range], worker: _Worker) -> Iterator[RangeRead]:
    outcomes = worker.answer()
    if outcomes is None:
        outcomes = [read_range(spec) for _, spec in task]
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


def _serve(connection: socket.socket, others: Sequence[socket.socket]) -> None:
    """Read what is asked for until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks is interrupted, and ends this
    for other in others:
        other.close()
    try:
        while True:
            (size,) = _COUNT.unpack(_receive(connection, _COUNT.size))
            task: list[ChunkSpec] = pickle.loads(_receive(connection, size))  # noqa: S301 - from the process that started this one
            _answer(connection, [read_range(spec) for spec in task])
    except Exception:  # noqa: BLE001 - whoever asked finds this process gone, reads the range and sees what is wrong with it
        connection.close()


def _answer(connection: socket.socket, outcomes: list[Outcome]) -> None:
    columns: list[memoryview] = []

    def keep_apart(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _APART_BYTES:
            return True
        columns.append(raw)
        return False

    head = pickle.dumps(outcomes, pickle.HIGHEST_PROTOCOL, buffer_callback=keep_apart)
    sizes = [len(head), *(column.nbytes for column in columns)]
    connection.sendall(struct.pack(f"<{1 + len(sizes)}Q", len(sizes), *sizes) + head)
    for column in columns:
        connection.sendall(column)
