"""Large batches are read in threads, all others in processes, and nothing that is reported depends on it."""

import shutil
import threading
from pathlib import Path

import pytest

from benchmarks.generate import Shape, generate
from kaudit.engines import local as engine
from kaudit.engines import processes, threads
from kaudit.engines.ranges import ranges, read_most
from kaudit.reading.chunk_size import fixed_size
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs

LARGE = Shape("large", records=(16, 16), value_bytes=(1000, 1040), anomalies=2e-2)
SMALL = Shape("small")
CHUNK = 256 << 10


def write(partition, shape, size=1 << 20):
    partition.mkdir()
    generate(partition / f"{0:020d}.log", shape, size)


@pytest.fixture
def reads(monkeypatch):
    """The partitions whose ranges threads and processes read, in order."""
    asked: dict[str, list[str]] = {"threads": [], "processes": []}
    in_processes = processes.read_in_processes

    def read_in_processes(found, count, start_method):
        for read in in_processes(found, count, start_method):
            asked["processes"].append(read.spec.file.path.split("/")[-2])
            yield read

    def read_here(spec):
        if threading.current_thread() is not threading.main_thread():
            asked["threads"].append(spec.file.path.split("/")[-2])
        return read_most(spec)

    monkeypatch.setattr(engine, "PROCESSES_PAY_BYTES", 0)
    monkeypatch.setattr(processes, "read_in_processes", read_in_processes)
    monkeypatch.setattr(threads, "read_most", read_here)
    return asked


def test_large_batches_are_read_in_threads_alone(local, tmp_path, reads):
    write(tmp_path / "orders-0", LARGE)
    alone = local.documents(tmp_path, jobs=1, chunk_bytes=CHUNK)
    assert len(alone[0]["findings"]) > 0
    assert local.documents(tmp_path, jobs=2, chunk_bytes=CHUNK) == alone
    assert len(reads["threads"]) >= 3 * 4
    assert reads["processes"] == []


def test_from_the_first_range_of_small_batches_on_processes_read(local, tmp_path, reads):
    write(tmp_path / "orders-0", LARGE)
    write(tmp_path / "orders-1", SMALL)
    write(tmp_path / "orders-2", LARGE)
    alone = local.scan(tmp_path, jobs=1, chunk_bytes=CHUNK)
    both = local.scan(tmp_path, jobs=2, chunk_bytes=CHUNK)
    assert (both.findings, both.summary) == (alone.findings, alone.summary)
    assert set(reads["threads"]) == {"orders-0", "orders-1"}
    assert 1 <= reads["threads"].count("orders-1") <= 3  # what was asked for when the first of them came back
    assert set(reads["processes"]) == {"orders-1", "orders-2"}


def test_one_range_shows_that_batches_are_small(local, tmp_path, reads):
    write(tmp_path / "orders-0", SMALL)
    local.scan(tmp_path, jobs=2, chunk_bytes=CHUNK)
    assert reads["threads"] == ["orders-0"]
    assert len(reads["processes"]) >= 3


@pytest.mark.parametrize("what", ["records are decoded", "archive"])
def test_what_is_more_than_copied_is_read_in_processes(local, tmp_path, reads, what):
    write(tmp_path / "orders-0", LARGE)
    place = tmp_path
    if what == "archive":
        place = Path(shutil.make_archive(str(tmp_path / "logs"), "zip", tmp_path, "orders-0"))
    local.scan(place, jobs=2, chunk_bytes=CHUNK, depth=Depth.CRC if what == "archive" else Depth.RECORDS)
    assert reads["threads"] == []
    assert len(reads["processes"]) >= 3


def test_what_fails_in_a_thread_is_read_where_it_was_asked_for(local, tmp_path, monkeypatch):
    """The reader's own failure, not one of the file, which is an outcome."""
    write(tmp_path / "orders-0", LARGE)
    alone = local.scan(tmp_path, jobs=1, chunk_bytes=CHUNK)
    main = threading.get_ident()

    def failing(spec):
        if threading.get_ident() != main:
            raise MemoryError
        return read_most(spec)

    monkeypatch.setattr(engine, "PROCESSES_PAY_BYTES", 0)
    monkeypatch.setattr(threads, "read_most", failing)
    both = local.scan(tmp_path, jobs=2, chunk_bytes=CHUNK)
    assert (both.findings, both.summary) == (alone.findings, alone.summary)


def test_no_thread_outlives_what_was_asked_for(tmp_path):
    write(tmp_path / "orders-0", LARGE)
    before = threading.active_count()
    options = ScanOptions([str(tmp_path)])
    jobs = plan_jobs(options, find_input(options), all_needs)
    read = list(threads.read_in_threads(ranges(jobs, [fixed_size(CHUNK) for _ in jobs]), 3))
    assert [entry.spec.stop for entry in read][-1] == (tmp_path / "orders-0" / f"{0:020d}.log").stat().st_size
    assert threading.active_count() == before


def test_readers_end_when_nobody_asks_any_more(tmp_path):
    write(tmp_path / "orders-0", LARGE)
    before = set(threading.enumerate())
    options = ScanOptions([str(tmp_path)])
    jobs = plan_jobs(options, find_input(options), all_needs)
    read = threads.read_in_threads(ranges(jobs, [fixed_size(CHUNK) for _ in jobs]), 3)
    next(read)
    readers = set(threading.enumerate()) - before
    read.close()
    for reader in readers:
        reader.join(60)
    assert len(readers) == 3
    assert not any(reader.is_alive() for reader in readers)
