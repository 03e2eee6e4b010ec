"""How much a Spark task reads: a block of the store, whoever plans, within bounds."""

import pytest

from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.spark import plan as task_size
from kaudit.spark.options import read_options
from kaudit.spark.plan import Chosen, segment_reads, share, task_bytes
from tests.engines.webhdfs_server import WebHdfs

MIB = 1 << 20
SEGMENTS = 12


@pytest.fixture
def logs(tmp_path):
    """Twelve segments of 128 MiB, of which only the size is read."""
    (tmp_path / "orders-0").mkdir()
    for number in range(SEGMENTS):
        with (tmp_path / "orders-0" / f"{number * 1000:020d}.log").open("wb") as segment:
            segment.truncate(128 * MIB)
    return tmp_path


def planned(path):
    """The number of tasks of an audit on one core, and of a data source, with the bytes of the largest one each."""
    options = ScanOptions([path])
    works = share(plan_jobs(options, find_input(options), all_needs), 1).works
    audit = [sum(task.spec.stop - task.spec.start for task in work.byte_ranges) for work in works]
    source = [sum(read.bytes for read in group) for group in segment_reads(read_options({"path": path}), Chosen())[1]]
    assert sum(audit) == sum(source) == SEGMENTS * 128 * MIB
    return (len(audit), max(audit) // MIB), (len(source), max(source) // MIB)


@pytest.mark.parametrize(
    ("block", "tasks", "source_tasks"),
    [
        (128 * MIB, (12, 128), (12, 128)),
        (256 * MIB, (6, 256), (6, 256)),
        (64 * MIB, (24, 64), (12, 128)),  # a source cuts no segment
        (1 * MIB, (48, 32), (12, 128)),
        (8192 * MIB, (4, 384), (2, 1024)),  # one core is to have four tasks; else 1 GiB is the most
        (0, (12, 128), (12, 128)),
    ],
)
def test_a_task_reads_a_block_of_the_store(logs, block, tasks, source_tasks):
    with WebHdfs(logs) as served:
        served.block_bytes = block
        assert planned(f"{served.url}/") == (tasks, source_tasks)
        assert served.opened == []


def test_without_blocks_a_task_reads_128_mib(logs, monkeypatch):
    assert planned(str(logs)) == ((12, 128), (12, 128))
    with WebHdfs(logs) as served:
        options = ScanOptions([f"{served.url}/"])
        jobs = plan_jobs(options, find_input(options), all_needs)
    # nobody answers by now: a reading task will say so
    assert len(share(jobs, 1).works) == 12


@pytest.mark.parametrize(
    ("total", "cores", "expected"),
    [
        (100 << 30, None, 128 * MIB),
        (100 << 30, 1000, 32 * MIB),  # cores would be idle
        (100 << 30, 4, 128 * MIB),
        (5 << 40, 4, (5 << 40) // 10_000),
        (100 << 40, 4, 1 << 30),
        (0, None, 128 * MIB),
    ],
)
def test_there_are_no_more_than_some_thousand_tasks_and_none_is_huge(total, cores, expected):
    assert task_bytes(total, 128 * MIB, cores) == expected


@pytest.mark.parametrize(
    ("partition", "cores", "expected"),
    [
        (250 << 30, 10, 128 * MIB),
        (1 << 40, 10, (1 << 40) // 2000),
        (8 << 40, 10, 1 << 30),
        (1 << 40, 1000, (2 << 40) // 4000),  # cores would be idle
    ],
)
def test_a_partition_comes_in_two_thousand_pieces_or_in_pieces_of_1_gib(partition, cores, expected):
    """One task puts them together."""
    assert task_bytes(2 << 40, 128 * MIB, cores, partition) == max(expected, (2 << 40) // 10_000)


def test_the_largest_partition_of_an_audit_decides(logs, monkeypatch):
    options = ScanOptions([str(logs)])
    jobs = plan_jobs(options, find_input(options), all_needs)
    monkeypatch.setattr(task_size, "_PIECES", 6)
    works = share(jobs, 1).works
    assert [sum(each.spec.stop - each.spec.start for each in work.byte_ranges) // MIB for work in works] == [256] * 6
