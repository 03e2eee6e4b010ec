"""Ranges read side by side in processes: every log gives the same results, and whoever leaves early leaves nothing behind."""

import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.generate import Shape, generate
from kaudit.engines import local as engine
from kaudit.engines import processes
from kaudit.engines import ranges as reading
from kaudit.engines.processes import read_in_processes
from kaudit.engines.progress import SilentProgress
from kaudit.engines.ranges import RangeRead, ranges, read_here, with_rest
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.chunk_size import fixed_size
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from tests.engines.faulty_logs import FAULTS, gap


def rows_of(read: RangeRead) -> ChunkRows:
    assert isinstance(read.outcome, ChunkRows)
    return read.outcome


@pytest.fixture
def log_directory(tmp_path):
    for number, make in enumerate(FAULTS):
        make(tmp_path / f"orders-{number}")
    return tmp_path


def found(path, size):
    options = ScanOptions([str(path)])
    jobs = plan_jobs(options, find_input(options), all_needs)
    return ranges(jobs, [fixed_size(size) for _ in jobs])


def test_two_processes_report_what_one_reports(local, log_directory, monkeypatch):
    alone = local.documents(log_directory, jobs=1, chunk_bytes=700)
    monkeypatch.setattr(engine, "PROCESSES_PAY_BYTES", 0)
    assert local.documents(log_directory, jobs=2, chunk_bytes=700) == alone
    assert local.documents(log_directory, jobs=2) == alone


@pytest.mark.parametrize("most", [1, 3, 20])
def test_ranges_with_more_batches_than_are_held_give_the_same(local, log_directory, monkeypatch, most):
    alone = local.documents(log_directory, jobs=1)
    monkeypatch.setattr(reading, "_MOST_BATCHES", most)
    assert local.documents(log_directory, jobs=1) == alone
    monkeypatch.setattr(engine, "PROCESSES_PAY_BYTES", 0)
    assert local.documents(log_directory, jobs=2) == alone


def test_the_rest_of_a_range_begins_where_its_first_batches_end(tmp_path, monkeypatch):
    partition = tmp_path / "orders-0"
    partition.mkdir()
    generate(partition / f"{0:020d}.log", Shape("small", anomalies=0), 8 << 20)
    (whole,) = read_here(found(partition, 1 << 30))
    monkeypatch.setattr(reading, "_MOST_BATCHES", 1000)
    (first,) = read_here(found(partition, 1 << 30))
    reads = list(with_rest(first, fixed_size(1 << 19)))
    batches = [rows_of(read).counts.batches for read in reads]
    assert sum(batches) == rows_of(whole).counts.batches
    assert len(batches) > 5
    assert batches[0] < rows_of(whole).counts.batches // 2
    assert [read.spec.start for read in reads[1:]] == [read.spec.stop for read in reads[:-1]]
    assert (reads[0].spec.start, reads[-1].spec.stop) == (whole.spec.start, whole.spec.stop)


class Connection:
    """Gives bytes of `data` as a socket does, so many at a time, into as many buffers as they fill."""

    def __init__(self, data: bytes, most: int) -> None:
        self.data, self.most = data, most

    def recvmsg_into(self, buffers: list[memoryview], _: int, flags: int) -> tuple[int, list[object], int, None]:
        assert flags == socket.MSG_WAITALL
        assert 0 < len(buffers) <= processes._PARTS_AT_ONCE
        count = 0
        for buffer in buffers:
            part = self.data[: min(len(buffer), self.most - count)]
            buffer[: len(part)] = part
            self.data = self.data[len(part) :]
            count += len(part)
        return count, [], 0, None


@pytest.mark.parametrize("most", [1, 2, 3, 5, 6, 100])
def test_parts_are_received_whole_however_few_bytes_come_at_a_time(most, monkeypatch):
    monkeypatch.setattr(processes, "_PARTS_AT_ONCE", 2)
    connection: Any = Connection(b"abcdefghij+", most)
    parts = processes._receive_parts(connection, [3, 0, 1, 4, 2])
    assert [bytes(part) for part in parts] == [b"abc", b"", b"d", b"efgh", b"ij"]
    assert connection.data == b"+"


def test_a_process_that_ends_in_the_middle_of_a_part_is_gone():
    connection: Any = Connection(b"abcd", 100)
    with pytest.raises(EOFError):
        processes._receive_parts(connection, [3, 2])


class Progress(SilentProgress):
    def __init__(self) -> None:
        self.read = 0

    def advance(self, read: int) -> None:
        self.read += read


def who(task: Any, /, options: object, open_source: object) -> tuple[int, int]:
    return task.number, os.getpid()


def task(number, size, path):
    segments = [SimpleNamespace(path=f"{path}/t-0/00000000000000000000.log")]
    return SimpleNamespace(bytes=size, number=number, directories=[SimpleNamespace(segments=segments)])


@pytest.mark.parametrize(
    ("sizes", "jobs", "path", "others"),
    [
        ([50, 50], 2, "/logs", True),
        ([50, 49], 2, "/logs", False),  # starting processes costs more
        ([90, 90, 90], 1, "/logs", False),
        ([500], 4, "/logs", False),  # one task is not shared out
        ([90, 90, 90], 8, "/logs", True),
        ([90, 90, 90], 8, "s3://bucket/logs", False),  # its client has threads
        ([90, 90, 90], None, "/logs", True),  # the machine has two cores
    ],
)
def test_partitions_are_shared_out_where_that_pays(monkeypatch, sizes, jobs, path, others):
    monkeypatch.setattr(engine, "PROCESSES_PAY_BYTES", 100)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    work: Any = [task(number, size, path) for number, size in enumerate(sizes)]
    progress = Progress()
    done = list(engine.LOCAL.each_partition(work, who, ScanOptions([path], jobs=jobs), progress))
    assert [number for number, _ in done] == list(range(len(sizes)))
    assert (os.getpid() not in {pid for _, pid in done}) is others
    assert len({pid for _, pid in done}) <= min(jobs or 2, len(sizes))
    assert progress.read == sum(sizes)


def test_where_the_cores_cannot_be_counted_all_is_done_here(monkeypatch):
    monkeypatch.setattr(engine, "PROCESSES_PAY_BYTES", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    work: Any = [task(number, 50, "/logs") for number in range(3)]
    done = list(engine.LOCAL.each_partition(work, who, ScanOptions(["/logs"]), SilentProgress()))
    assert done == [(number, os.getpid()) for number in range(3)]


PARENT = """
import multiprocessing, sys, time
from tests.engines.test_processes import found
from kaudit.engines.processes import read_in_processes
reads = read_in_processes(found(sys.argv[1], 1 << 14), 2, "fork")
next(reads)
print(*(child.pid for child in multiprocessing.active_children()), flush=True)
time.sleep(60)
"""


def is_alive(pid):
    """Return whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


COLUMNS = ("runs", "boundary_batches", "markers", "gaps", "leader_epochs")


def columns(rows):
    return [*(getattr(rows, name).tolist() for name in COLUMNS), rows.non_idempotent.rows.tolist()]


def contents(reads):
    """What came of the ranges, to the byte."""
    return [
        (read.job, read.spec, read.outcome.counts, read.outcome.damages, read.outcome.malformed, columns(read.outcome))
        for read in reads
    ]


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_ranges_come_in_the_order_of_the_plan(log_directory, start_method):
    here = contents(read_here(found(log_directory, 700)))
    assert contents(read_in_processes(found(log_directory, 700), 2, start_method)) == here
    assert len({job for job, *_ in here}) == len(FAULTS)


def test_large_columns_come_as_they_were_sent(tmp_path):
    partition = tmp_path / "orders-0"
    partition.mkdir()
    generate(partition / f"{0:020d}.log", Shape("many ids", producers=50_000), 1 << 22)
    here = list(read_here(found(partition, 1 << 21)))
    there = list(read_in_processes(found(partition, 1 << 21), 2, "fork"))
    assert rows_of(here[0]).runs["producer_id"].nbytes > 1 << 16
    assert contents(there) == contents(here)
    assert all(rows_of(read).runs["producer_id"].flags.writeable for read in there)


class ThreadedProcess:
    """Runs in a thread of this process, with ends of its own of the sockets that it is given."""

    def __init__(self, target, args, daemon):
        assert daemon
        there, tokens, ours = args
        own = there.dup(), tokens.dup(), [each.dup() for each in ours]
        self._thread = threading.Thread(target=target, args=own, daemon=True)
        self.start, self.join = self._thread.start, self._thread.join

    def terminate(self):
        """Its sockets have been shut down."""


@pytest.mark.parametrize("task_bytes", [1, 700, 4 << 20])
@pytest.mark.parametrize("apart", [1, 1 << 16])
def test_all_is_read_by_the_processes_and_nothing_here(tmp_path, log_directory, monkeypatch, task_bytes, apart):
    here = contents(read_here(found(log_directory, 700)))
    readers: list[threading.Thread] = []

    def read_most(spec):
        readers.append(threading.current_thread())
        return reading.read_most(spec)

    monkeypatch.setattr(processes, "read_most", read_most)
    monkeypatch.setattr(processes, "_TASK_BYTES", task_bytes)
    monkeypatch.setattr(processes, "_APART_BYTES", apart)
    monkeypatch.setattr(processes, "_PARTS_AT_ONCE", 3)
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: SimpleNamespace(Process=ThreadedProcess))
    handlers: list[object] = []
    monkeypatch.setattr(signal, "signal", lambda *given: handlers.append(given))
    assert contents(read_in_processes(found(log_directory, 700), 2, "fork")) == here
    assert len(readers) == len(here)
    assert threading.current_thread() not in readers
    assert handlers == [(signal.SIGINT, signal.SIG_IGN)] * 2


def test_ranges_share_a_task_until_they_have_enough_bytes(log_directory, monkeypatch):
    monkeypatch.setattr(processes, "_TASK_BYTES", 1000)
    tasks = [[spec.stop - spec.start for _, spec in task] for task in processes._tasks(found(log_directory, 700))]
    assert all(sum(task) >= 1000 for task in tasks[:-1])
    assert all(sum(task[:-1]) < 1000 for task in tasks)
    assert max(map(len, tasks)) > 1
    whole = [spec.stop - spec.start for _, spec in found(log_directory, 700)]
    assert [size for task in tasks for size in task] == whole


def test_a_message_that_comes_in_pieces_is_put_together():
    """Parts of sizes from 0 on, more than are received at once, sent a few bytes at a time."""
    parts = [bytes([number]) * size for number, size in enumerate([0, 1, 7, 0, 300, 2] * 20)]
    here, there = socket.socketpair()
    with here, there:
        here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)

        def send():
            content = b"".join(parts)
            for start in range(0, len(content), 97):
                there.sendall(content[start : start + 97])
            there.close()

        sender = threading.Thread(target=send)
        sender.start()
        assert [bytes(part) for part in processes._receive_parts(here, list(map(len, parts)))] == parts
        sender.join()
        with pytest.raises(EOFError):
            processes._receive_parts(here, [1])


def test_a_process_that_is_asked_for_no_more_stops_waiting():
    """Whoever asks is gone: what has come is read, what has not never comes."""
    here, there = socket.socketpair()
    with here, there:
        inbox = processes._Inbox(here)
        there.sendall(processes._MESSAGE.pack(3, 4) + b"task" + processes._MESSAGE.pack(5, 0))
        assert bytes(inbox.task(3)) == b"task"
        assert bytes(inbox.task(5)) == b""
        there.close()
        ended: list[BaseException] = []

        def wait() -> None:
            try:
                inbox.task(7)
            except KeyError as error:
                ended.append(error)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        waiting.join(20)
        assert len(ended) == 1


@pytest.mark.parametrize("killed", [1, 2, 3])
@pytest.mark.parametrize("task_bytes", [1, 4 << 20])
def test_what_a_killed_process_was_to_read_is_read_by_another(log_directory, monkeypatch, killed, task_bytes):
    monkeypatch.setattr(processes, "_TASK_BYTES", task_bytes)
    here = contents(read_here(found(log_directory, 700)))
    reads = read_in_processes(found(log_directory, 700), 3, "fork")
    first = next(reads)
    for process in multiprocessing.active_children()[:killed]:
        process.kill()
    assert contents([first, *reads]) == here


def test_a_process_that_is_killed_before_it_says_what_it_took_holds_nobody_up(log_directory, monkeypatch):
    monkeypatch.setattr(processes, "_TASK_BYTES", 1)
    here = contents(read_here(found(log_directory, 700)))
    monkeypatch.setattr(processes._Pool, "_take_note", lambda *_: None)
    reads = read_in_processes(found(log_directory, 700), 2, "fork")
    first = next(reads)
    multiprocessing.active_children()[0].kill()
    assert contents([first, *reads]) == here


def test_no_process_outlives_a_parent_that_is_killed(tmp_path):
    partition = tmp_path / "orders-0"
    partition.mkdir()
    generate(partition / f"{0:020d}.log", Shape("small", anomalies=0), 1 << 20)
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [int(word) for word in parent.stdout.readline().split()]
        parent.kill()
    assert len(children) == 2
    while any(map(is_alive, children)):  # or the test's own timeout ends it
        time.sleep(0.05)


def test_what_fails_in_a_process_fails_here(log_directory, monkeypatch):
    def fail(spec):
        raise ZeroDivisionError(spec.file.path)

    monkeypatch.setattr(processes, "read_most", fail)
    with pytest.raises(ZeroDivisionError, match="orders-0"):
        list(read_in_processes(found(log_directory, 700), 2, "fork"))
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_more_tasks_than_a_queue_holds_block_nobody(tmp_path, monkeypatch, start_method):
    long_name = "-".join(["deep"] * 40)
    partition = gap(tmp_path / long_name / long_name / "orders-0")
    smallest = min(found(partition, 100), key=lambda entry: entry.spec.stop - entry.spec.start)
    once = pickle.dumps(smallest)
    many = [pickle.loads(once) for _ in range(800)]
    assert len(once) * len(many) > 1 << 19
    monkeypatch.setattr(processes, "_IN_FLIGHT", len(many))
    for task_bytes in (1, 1 << 30) if start_method == "fork" else (1,):  # starting them takes seconds
        monkeypatch.setattr(processes, "_TASK_BYTES", task_bytes)
        assert len(list(read_in_processes(many, 2, start_method))) == len(many)


def test_whoever_stops_listening_leaves_no_process_behind(log_directory):
    reads = read_in_processes(found(log_directory, 700), 2, "fork")
    next(reads)
    started = multiprocessing.active_children()
    assert isinstance(reads, Generator)
    reads.close()
    for process in started:
        process.join(10)
    assert started
    assert not any(process.is_alive() for process in started)
