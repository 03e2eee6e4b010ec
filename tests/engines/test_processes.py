"""Ranges read side by side in processes: the same is told of every log, and whoever leaves early leaves nothing behind."""

import multiprocessing

import pytest

from kaudit.engines import local as engine
from kaudit.engines.processes import read_in_processes
from kaudit.engines.ranges import ranges, read_here
from kaudit.pipeline.options import ScanOptions
from kaudit.pipeline.pace import steady
from kaudit.pipeline.schedule import all_needs, find_input, plan_jobs
from tests.engines.faulty_logs import FAULTS


@pytest.fixture
def log_directory(tmp_path):
    for number, make in enumerate(FAULTS):
        make(tmp_path / f"orders-{number}")
    return tmp_path


def found(path, size):
    options = ScanOptions([str(path)])
    jobs = plan_jobs(options, find_input(options), all_needs)
    return ranges(jobs, [steady(size) for _ in jobs])


def test_two_processes_tell_what_one_tells(local, log_directory, monkeypatch):
    alone = local.documents(log_directory, jobs=1, chunk_bytes=700)
    monkeypatch.setattr(engine, "_POOL_PAYS_SECONDS", 0)
    assert local.documents(log_directory, jobs=2, chunk_bytes=700) == alone
    assert local.documents(log_directory, jobs=2) == alone


def test_ranges_come_in_the_order_of_the_plan(log_directory):
    here = [(read.job, read.spec, read.outcome.counts) for read in read_here(found(log_directory, 700))]
    there = [
        (read.job, read.spec, read.outcome.counts) for read in read_in_processes(found(log_directory, 700), 2, "fork")
    ]
    assert there == here
    assert len({job for job, *_ in here}) == len(FAULTS)


def test_whoever_stops_listening_leaves_no_process_behind(log_directory):
    reads = read_in_processes(found(log_directory, 700), 2, "fork")
    next(reads)
    started = multiprocessing.active_children()
    reads.close()
    for process in started:
        process.join(10)
    assert started
    assert not any(process.is_alive() for process in started)
