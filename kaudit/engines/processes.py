"""Reading ranges side by side in processes, their rows handed out in the order of the plan.

Not concurrent.futures: columns sent without a copy take 13 to 16 percent less CPU on logs with many rows (docs/performance.md),
and its workers share one result pipe with locks: a run whose worker was killed hung.
"""

import multiprocessing
import pickle
import signal
import socket
import struct
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kaudit.deferred import Deferred
from kaudit.engines.ranges import Range, RangeRead, read_most, reads
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_rows import Outcome

if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = Deferred("concurrent.futures")

_TASK_BYTES = 4 << 20
"""Small segments share a task until they have this many bytes."""
_IN_FLIGHT = 3
"""Tasks per process that may wait with their rows, one if those have _HELD_BYTES: bounds memory."""
_HELD_BYTES = 8 << 20
_APART_BYTES = 1 << 16
"""Columns from this size on are sent as they lie in memory, without a copy."""
_PARTS_AT_ONCE = 64
"""Far below IOV_MAX everywhere."""
_TOKEN = struct.Struct("<Q")
"""A task's number. A process that reads it from the socket all of them share has that task."""
_MESSAGE = struct.Struct("<QQ")
"""To a process: a task's number and size. From one: a task's number, and of how many parts its answer is; 0 says that it
has taken the task."""
_Answer = tuple[bytes, list[memoryview]]
"""What was pickled, and the columns that were sent apart."""


def read_in_processes(found: Iterable[Range], processes: int, start_method: str) -> Generator[RangeRead]:
    """Read every range in one of several processes; yield them in order.

    What a process cannot read - it was killed, or failed - is read here, and fails here if it must.
    """
    with _Pool(processes, start_method) as pool:
        waiting: deque[list[Range]] = deque()
        for task in _tasks(found):
            pool.submit([spec for _, spec in task])
            waiting.append(task)
            while len(waiting) >= processes * (1 if pool.held > _HELD_BYTES else _IN_FLIGHT):
                yield from _results(waiting.popleft(), pool)
        while waiting:
            yield from _results(waiting.popleft(), pool)


def forked(number: int) -> "futures.ProcessPoolExecutor":
    """Return processes that are forked, for tasks whose results are few and small."""
    return futures.ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("fork"))


class _Pool:
    """Processes that take tasks, each the next one as soon as it is free, and threads that take what comes of them.

    Tasks are numbered as they are submitted and asked for in that order. No process waits for this one: each has been
    sent every task before the task's token lies in the socket that they share.
    """

    def __init__(self, processes: int, start_method: str) -> None:
        self._changed = Condition()
        self._answers: dict[int, _Answer] = {}
        self._taken: dict[int, int] = {}
        self._gone: set[int] = set()
        self._submitted = self._asked = 0
        self.held = 0
        """Bytes of answers that wait to be asked for."""
        self._tokens, tokens = socket.socketpair()
        self._sockets: list[socket.socket] = []
        self._processes: list[multiprocessing.process.BaseProcess] = []
        context: Any = multiprocessing.get_context(start_method)
        for _ in range(processes):
            here, there = socket.socketpair()
            self._sockets.append(here)
            # a forked process inherits our ends: open there, they would outlive us
            ours = [self._tokens, *self._sockets]
            process = context.Process(target=_serve, args=(there, tokens, ours), daemon=True)
            process.start()
            there.close()
            self._processes.append(process)
        tokens.close()
        # threads only when all have been forked
        self._threads = [Thread(target=self._listen, args=(number,), daemon=True) for number in range(processes)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in (self._tokens, *self._sockets):
            with suppress(OSError):  # it may be gone
                connection.shutdown(socket.SHUT_RDWR)
        for process in self._processes:
            process.terminate()
            process.join()
        for thread in self._threads:
            thread.join()
        for connection in (self._tokens, *self._sockets):
            connection.close()

    def submit(self, task: list[ChunkSpec]) -> None:
        """Let one of the processes read these ranges."""
        data = pickle.dumps(task, pickle.HIGHEST_PROTOCOL)
        message = _MESSAGE.pack(self._submitted, len(data)) + data
        for connection in self._sockets:
            with suppress(OSError):  # its thread reports that it is gone
                connection.sendall(message)
        with suppress(OSError):  # all are gone
            self._tokens.sendall(_TOKEN.pack(self._submitted))
        self._submitted += 1

    def answer(self) -> list[list[Outcome]] | None:
        """Return what came of the oldest task not asked for yet, None if it is not to be had."""
        number = self._asked
        with self._changed:
            self._changed.wait_for(lambda: number in self._answers or self._is_lost(number))
            received = self._answers.pop(number, None)
            self._asked += 1
            if received is None:
                return None
            self.held -= _size(received)
        outcomes: list[list[Outcome]] = pickle.loads(received[0], buffers=received[1])  # noqa: S301 - from a process of ours
        return outcomes

    def _is_lost(self, number: int) -> bool:
        # a task that nobody says to have taken may be that of a process that was killed before it could
        return self._taken[number] in self._gone if number in self._taken else bool(self._gone)

    def _take_note(self, number: int, process: int) -> None:
        with self._changed:
            self._taken[number] = process
            self._changed.notify()

    def _keep(self, number: int, answer: _Answer) -> None:
        with self._changed:
            if number >= self._asked:  # or it was read here
                self._answers[number] = answer
                self.held += _size(answer)
            self._changed.notify()

    def _listen(self, process: int) -> None:
        connection = self._sockets[process]
        try:
            while True:
                number, parts = _MESSAGE.unpack(_receive(connection, _MESSAGE.size))
                if parts:
                    self._keep(number, _receive_answer(connection, parts))
                else:
                    self._take_note(number, process)
        except (OSError, EOFError):
            with self._changed:
                self._gone.add(process)
                self._changed.notify()


def _size(answer: _Answer) -> int:
    return len(answer[0]) + sum(map(len, answer[1]))


def _receive(connection: socket.socket, size: int) -> memoryview:
    (data,) = _receive_parts(connection, [size])
    return data


def _receive_answer(connection: socket.socket, parts: int) -> _Answer:
    sizes = struct.unpack(f"<{parts}Q", _receive(connection, _TOKEN.size * parts))
    head, *columns = _receive_parts(connection, sizes)
    return bytes(head), columns


def _receive_parts(connection: socket.socket, sizes: Sequence[int]) -> list[memoryview]:
    """Receive so many bytes each, in few calls: after each one this thread waits for its turn."""
    # not bytearrays: they would be filled with zeros first
    parts = [np.empty(size, dtype=np.uint8).data for size in sizes]
    left = [part for part in parts if len(part)]
    while left:
        count = connection.recvmsg_into(left[:_PARTS_AT_ONCE], 0, socket.MSG_WAITALL)[0]
        if not count:
            raise EOFError
        while left and count >= len(left[0]):
            count -= len(left.pop(0))
        if count:
            left[0] = left[0][count:]
    return parts


def _results(task: Sequence[Range], pool: _Pool) -> Iterator[RangeRead]:
    outcomes = pool.answer()
    if outcomes is None:
        outcomes = [read_most(spec) for _, spec in task]
    for entry, read in zip(task, outcomes, strict=True):
        yield from reads(entry, read)


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


def _serve(connection: socket.socket, tokens: socket.socket, others: Sequence[socket.socket]) -> None:
    """Read what is asked for until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks is interrupted, and ends this
    for other in others:
        other.close()
    inbox = _Inbox(connection)
    try:
        while True:
            (token,) = _TOKEN.unpack(_receive(tokens, _TOKEN.size))
            connection.sendall(_MESSAGE.pack(token, 0))
            task: list[ChunkSpec] = pickle.loads(inbox.task(token))  # noqa: S301 - from the process that started this one
            _answer(connection, token, [read_most(spec) for spec in task])
    except Exception:  # noqa: BLE001 - whoever asked finds this process gone, reads the range and sees what is wrong with it
        connection.close()


class _Inbox:
    """Takes messages about tasks as they come: a sender must never wait until somebody is free to read."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._changed = Condition()
        self._tasks: dict[int, memoryview] = {}
        self._wanted = 0
        self._ended = False
        Thread(target=self._listen, daemon=True).start()

    def task(self, token: int) -> memoryview:
        """Return the task with this token, the greatest asked for so far; those before it have been taken by others."""
        with self._changed:
            self._wanted = token
            for number in [number for number in self._tasks if number < token]:
                del self._tasks[number]
            self._changed.wait_for(lambda: token in self._tasks or self._ended)
            return self._tasks.pop(token)

    def _listen(self) -> None:
        try:
            while True:
                number, size = _MESSAGE.unpack(_receive(self._connection, _MESSAGE.size))
                task = _receive(self._connection, size)
                with self._changed:
                    if number >= self._wanted:
                        self._tasks[number] = task
                    self._changed.notify()
        except (OSError, EOFError):
            with self._changed:
                self._ended = True
                self._changed.notify()


def _answer(connection: socket.socket, token: int, outcomes: list[list[Outcome]]) -> None:
    columns: list[memoryview] = []

    def keep_apart(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _APART_BYTES:
            return True
        columns.append(raw)
        return False

    head = pickle.dumps(outcomes, pickle.HIGHEST_PROTOCOL, buffer_callback=keep_apart)
    sizes = [len(head), *(column.nbytes for column in columns)]
    connection.sendall(_MESSAGE.pack(token, len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes) + head)
    for column in columns:
        connection.sendall(column)
