"""Rows of the DataFrame `runs`: what a chunk is reduced to, and what is said of one that could not be read."""

from kaudit.engines.ranges import read_most
from kaudit.partition.batch_export import SegmentTask
from kaudit.reading.chunk_codec import unpack_chunk
from kaudit.reading.unread_segments import Failure
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.spark.rows import run_rows
from tests.logs import Log, data, marker
from tests.reading.test_range_joining import plain


def task_of(tmp_path):
    """Producer 7 writes 0..1 and 2, producer 9 offset 3 in a transaction that is aborted at 4."""
    log = Log()
    log.append(data(7, 0, 0, 2))
    log.append(data(7, 0, 2))
    log.append(data(9, 1, 0, transactional=True))
    log.append(marker(9, 1, commit=False))
    log.write(tmp_path / "b1" / "orders-3")
    options = ScanOptions([str(tmp_path / "b1")])
    (job,) = plan_jobs(options, find_input(options), all_needs)
    (spec,) = job.ranges()
    return SegmentTask("orders", 3, "b1", 0, spec)


def test_a_chunk_its_runs_and_its_markers(tmp_path):
    task = task_of(tmp_path)
    outcomes = read_most(task.spec)
    rows = run_rows(task, outcomes, "logs").to_pylist()
    assert [
        (row["row"], row["producer_id"], row["producer_epoch"], row["first_offset"], row["last_offset"], row["batches"],
         row["records"], row["marker"], row["coordinator_epoch"])
        for row in rows
    ] == [
        ("chunk", None, None, None, None, None, None, None, None),
        ("run", 7, 0, 0, 2, 2, 3, None, None),
        ("run", 9, 1, 3, 3, 1, 1, None, None),
        ("marker", 9, 1, 4, 4, None, None, "ABORT", 0),
    ]  # fmt: skip
    assert {
        (row["topic"], row["partition"], row["replica"], row["segment"], row["segment_number"]) for row in rows
    } == {("orders", 3, "b1", f"{0:020d}.log", 0)}
    assert {row["first_position"] for row in rows} == {0}
    assert [row["chunk"] is None for row in rows] == [False, True, True, True]
    assert {(row["path"], row["origin"]) for row in rows} == {(task.spec.file.path, "logs")}
    assert list(map(plain, unpack_chunk(rows[0]["chunk"]))) == list(map(plain, outcomes))


def test_what_could_not_be_read_is_a_chunk_without_runs(tmp_path):
    task = task_of(tmp_path)
    outcomes = [Failure(task.spec.file.path, "Permission denied")]
    (row,) = run_rows(task, outcomes, "logs").to_pylist()
    assert (row["row"], row["topic"], row["partition"], row["first_position"]) == ("chunk", "orders", 3, 0)
    assert row["producer_id"] is row["first_offset"] is None
    assert list(unpack_chunk(row["chunk"])) == outcomes
