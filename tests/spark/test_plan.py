"""How an audit's ranges and partitions are shared among Spark's tasks: whole plans, derived by hand."""

import pytest
from msgspec.structs import replace

from kaudit.model.result import StateUse
from kaudit.reading.saved_partition import SavedPartition, SavedPiece, SavedRows, Settings
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.spark import plan as spark_plan
from kaudit.spark.plan import share
from tests.crafted_sample import snapshot
from tests.engines.faulty_logs import healthy

MIB = 1 << 20


def sized(directory, *segments):
    """A partition of segments of so many MiB, of which only the size is read; their offsets are 1000 apart."""
    directory.mkdir(parents=True)
    for number, mib in enumerate(segments):
        with (directory / f"{number * 1000:020d}.log").open("wb") as segment:
            segment.truncate(mib * MIB)
    return directory


def plan(*paths, cores=1):
    options = ScanOptions([str(path) for path in paths])
    jobs = plan_jobs(options, find_input(options), all_needs)
    return jobs, share(jobs, cores)


def replaying(jobs, planned):
    """The replaying task of each partition replica, by the paths of their directories."""
    headers = [entry for work in planned.works for entry in work.headers]
    assert [(header.job_index, header.job) for _, header in headers] == list(enumerate(jobs))
    where = {header.job_index: number for number, header in headers}
    assert all(task.shuffle_partition == where[task.job_index] for work in planned.works for task in work.byte_ranges)
    return {header.job.directory.partition: number for number, header in headers}


def test_the_largest_partition_goes_first_and_each_to_the_task_with_the_fewest_bytes(tmp_path):
    """80 70 60 50 to tasks 0 1 2 3; 41 to 3 (91), 32 to 2 (92), 23 to 1 (93), 11 to 0 (91), and 1 to 0: the first of 91 and 91."""
    for number, mib in enumerate([11, 23, 32, 41, 50, 60, 70, 80, 1]):
        sized(tmp_path / f"orders-{number}", mib)
    jobs, planned = plan(tmp_path)
    assert (planned.shuffle_partitions, planned.bytes) == (4, 368 * MIB)  # four tasks for one core
    assert replaying(jobs, planned) == {7: 0, 6: 1, 5: 2, 4: 3, 3: 3, 2: 2, 1: 1, 0: 0, 8: 0}


def test_replicas_of_a_partition_are_replayed_by_one_task(tmp_path):
    """Both replicas of orders-0 are 40 MiB together, more than orders-1 has."""
    for broker in "ab":
        sized(tmp_path / broker / "orders-0", 20)
    sized(tmp_path / "a" / "orders-1", 30)
    jobs, planned = plan(tmp_path / "a", tmp_path / "b")
    headers = [(header.job.directory, number) for work in planned.works for number, header in work.headers]
    assert sorted((each.replica, each.partition, number) for each, number in headers) == [
        ("a", 0, 0),
        ("a", 1, 1),
        ("b", 0, 0),
    ]
    assert (len(jobs), planned.shuffle_partitions) == (3, 2)


@pytest.mark.parametrize(("cores", "log_mib", "partitions", "expected"), [
    (1, 1, 1, 1),  # no more tasks than partitions
    (1, 1, 9, 4),
    (2, 1, 9, 8),
    (3, 1, 9, 9),
    (1, 5, 9, 9),  # 45 MiB, 5 MiB a task
    (1, 4, 9, 7),  # 36 MiB
    (1, 1, 35, 11),  # 35 MiB, three partitions a task
    (1, 0, 24, 8),
    (1, 0, 26, 8),
    (1, 0, 11, 4),
])  # fmt: skip
def test_how_many_tasks_replay(tmp_path, monkeypatch, cores, log_mib, partitions, expected):
    """Four a core, or one for so many bytes, or for so many partitions."""
    monkeypatch.setattr(spark_plan, "_REPLAYED_BYTES", 5 * MIB)
    monkeypatch.setattr(spark_plan, "_REPLAYED_PARTITIONS", 3)
    for number in range(partitions):
        sized(tmp_path / f"orders-{number}", log_mib)
    assert plan(tmp_path, cores=cores)[1].shuffle_partitions == expected


def test_nothing_is_shared_as_one_task():
    planned = share([], 2)
    assert (planned.works, planned.shuffle_partitions, planned.bytes) == ([], 1, 0)


def pieces(planned):
    """Of each reading task its ranges: partition, the range's number, segment, MiB from and to."""
    return [
        [
            (task.job_index, task.number, task.spec.segment, task.spec.start / MIB, task.spec.stop / MIB)
            for task in work.byte_ranges
        ]
        for work in planned.works
    ]


def test_ranges_of_a_segment_side_by_side_are_one_and_a_task_ends_when_it_is_full(tmp_path):
    """One core: 4 tasks of 320 MiB are 80 MiB each, and a range is 32 MiB, the last up to half more.

    A task takes ranges until it has 80, or 60 where a segment ends.
    """
    sized(tmp_path / "orders-0", 8, 40)
    sized(tmp_path / "orders-1", 200)
    sized(tmp_path / "orders-2", 72)
    jobs, planned = plan(tmp_path)
    ranges = [[(spec.segment, spec.start // MIB, spec.stop // MIB) for spec in job.ranges()] for job in jobs]
    assert ranges == [
        [(0, 0, 8), (1, 0, 40)],
        [(0, 0, 32), (0, 32, 64), (0, 64, 96), (0, 96, 128), (0, 128, 160), (0, 160, 200)],
        [(0, 0, 32), (0, 32, 72)],
    ]
    assert pieces(planned) == [
        [(0, 0, 0, 0, 8), (0, 1, 1, 0, 40), (1, 0, 0, 0, 32)],  # 80
        [(1, 1, 0, 32, 128)],  # 96
        [(1, 4, 0, 128, 200)],  # 72
        [(2, 0, 0, 0, 72)],
    ]
    assert [[(header.job_index, header.ranges) for _, header in work.headers] for work in planned.works] == [
        [(0, 2), (1, 6)],
        [],
        [],
        [(2, 2)],
    ]
    assert {task.chunk_bytes for work in planned.works for task in work.byte_ranges} == {
        job.chunk_bytes for job in jobs
    }


def test_a_range_knows_the_producer_snapshots_within_its_segment(tmp_path):
    """Behind the segment's first offset, and below that of the next one."""
    partition = healthy(tmp_path / "orders-0")
    bases = sorted(int(path.stem) for path in partition.glob("*.log"))
    assert len(bases) == 4
    for offset in (0, 3, bases[1] - 1, bases[1], bases[1] + 1, bases[2], bases[3], bases[3] + 5, bases[3] + 1000):
        (partition / f"{offset:020d}.snapshot").write_bytes(snapshot([]))
    (work,) = plan(tmp_path)[1].works
    assert [(task.spec.segment, tuple(task.snapshot_offsets)) for task in work.byte_ranges] == [
        (0, (3, bases[1] - 1)),
        (1, (bases[1] + 1,)),
        (2, ()),
        (3, (bases[3] + 5, bases[3] + 1000)),
    ]


def test_thousands_of_small_partitions_share_tasks(tmp_path):
    for number in range(300):
        healthy(tmp_path / f"orders-{number}", producers=1, batches=3)
    options = ScanOptions([str(tmp_path)])
    plan = share(plan_jobs(options, find_input(options), all_needs), cores=2)
    assert len(plan.works) == 1
    assert plan.shuffle_partitions == 8
    assert len(plan.works[0].headers) == 300


@pytest.mark.parametrize(("cores", "tasks"), [(1, 24), (2, 24), (8, 32), (1000, 96)])
def test_few_cores_at_the_start_make_no_large_tasks(tmp_path, cores, tasks):
    # under dynamic allocation cores come when tasks wait
    (tmp_path / "orders-0").mkdir()
    with (tmp_path / "orders-0" / f"{0:020d}.log").open("wb") as segment:
        segment.truncate(3 << 30)  # a hole: nothing is read
    options = ScanOptions([str(tmp_path)])
    plan = share(plan_jobs(options, find_input(options), all_needs), cores)
    assert len(plan.works) == tasks
    assert sum(task.spec.stop - task.spec.start for work in plan.works for task in work.byte_ranges) == 3 << 30


def test_a_saved_piece_that_is_put_together_again_counts_as_eight_mib(tmp_path):
    """200 MiB to read and 19 pieces of 8 MiB are four tasks of 88 MiB for one core; seven more pieces are resumed.

    Without pieces a task would have 50 MiB, with all of them 102; a range has 32.
    """
    sized(tmp_path / "orders-0", 192)
    sized(tmp_path / "orders-1", *[8] * 27)
    jobs, _ = plan(tmp_path)
    held = [SavedPiece(number, 0, 8 * MIB, number * 1000, (number + 1) * 1000) for number in range(26)]
    rows, settings = SavedRows("state", "digest"), Settings("headers")
    jobs[1] = replace(jobs[1], saved=SavedPartition("state", settings, [], StateUse(), rows, held, resumed=7))
    planned = share(jobs, 1)
    assert planned.bytes == 200 * MIB
    assert pieces(planned)[:1] == [[(0, 0, 0, 0, 96)]]
    assert [each[:3] for work in pieces(planned) for each in work if each[0] == 1] == [
        (1, number, number + 7) for number in range(20)
    ]
