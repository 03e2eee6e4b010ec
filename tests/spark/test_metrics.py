"""What the log says of Spark's jobs: each line whole."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kaudit.engines.ranges import read_most
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.spark.jobs import ReadMetrics, logged_job
from tests.logs import Log, data
from tests.spark.arrow_session import ArrowSession


def lines(caplog):
    return [record.getMessage() for record in caplog.records]


def test_what_was_read_is_counted(tmp_path, caplog):
    """1200 batches of one producer are one run, one batch of another is one; what is damaged is not counted."""
    log = Log()
    for number in range(1200):
        log.append(data(100, 0, number))
    size = len(log.encode())
    directory = log.write(tmp_path / "orders-0")
    other = Log()
    other.append(data(101, 0, 0))
    other.write(tmp_path / "orders-1")
    size += len(other.encode())
    with next(directory.glob("*.log")).open("ab") as segment:
        segment.write(b"\xff" * 100)
    options = ScanOptions([str(tmp_path)])
    metrics = ReadMetrics.of(cast("Any", ArrowSession()))
    for job in plan_jobs(options, find_input(options), all_needs):
        for spec in job.ranges():
            metrics.add(read_most(spec))
    caplog.set_level("INFO", "kaudit")
    metrics.log()
    assert lines(caplog) == [f"kaudit: ranges read: 2, bytes {size:,}, batches 1,201, runs 2"]


STAGES = {1: (1000, 0), 2: (234, 1), 3: (3, 2), 4: None}
JOBS = {7: [1, 2], 8: [2, 3, 4], 9: None}
"""Stage 2 belongs to two jobs; of job 9 and of stage 4 nothing is known any more."""


class Tracker:
    """What Spark says of the group kaudit-1."""

    def statusTracker(self):  # noqa: N802 - Spark's name
        return self

    def getJobIdsForGroup(self, group):  # noqa: N802
        return list(JOBS) if group == "kaudit-1" else []

    def getJobInfo(self, job):  # noqa: N802
        return None if JOBS[job] is None else SimpleNamespace(stageIds=JOBS[job])

    def getStageInfo(self, stage):  # noqa: N802
        of = STAGES[stage]
        return None if of is None else SimpleNamespace(numCompletedTasks=of[0], numFailedTasks=of[1])


@pytest.mark.parametrize(("group", "expected"), [
    ("kaudit-1", "reading logs: tasks: 1,237, 3 failed and tried again, 2.5 s"),
    ("kaudit-2", "reading logs: tasks: 0, 2.5 s"),
])  # fmt: skip
def test_a_job_is_logged_with_its_tasks_and_its_seconds(monkeypatch, caplog, group, expected):
    clock = iter([1000.0, 1002.5])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    caplog.set_level("INFO", "kaudit")
    with logged_job(cast("Any", Tracker()), group, "reading logs"):
        assert lines(caplog) == []
    assert lines(caplog) == [expected]


def test_spark_is_not_asked_where_nobody_reads_the_line(caplog):
    caplog.set_level("WARNING", "kaudit")
    with logged_job(cast("Any", None), "kaudit-1", "reading logs"):
        pass
    assert lines(caplog) == []
