"""What was listed and is not there, or is shorter, when it is read: never a clean verdict over bytes nobody read."""

import os
import sys
from pathlib import Path

import pytest

from kaudit.cli.exits import FailOn, exit_code
from kaudit.errors import UnreadableInputError
from tests.logs import Log, data

STARTS = (0, 10, 20)


def write(directory, batches=30):
    log = Log()
    for sequence in range(batches):
        log.append(data(7, 0, sequence, payload=b"payload %03d" % sequence))
    return log.write(directory, segment_starts=STARTS[1:])


def segment(directory, number):
    return directory / f"{STARTS[number]:020d}.log"


@pytest.fixture
def after_listing(engine, monkeypatch):
    """Run something once the input is listed, before anything of it is read."""

    def set_action(action):
        where = sys.modules["kaudit.spark.plan"] if "spark" in engine.module.__name__ else engine.module
        listed = where.find_evidence

        def find_evidence(options):
            found = listed(options)
            action()
            return found

        monkeypatch.setattr(where, "find_evidence", find_evidence)

    return set_action


def statuses(result):
    return [row.status for row in result.segments]


def unread(result):
    return [(Path(entry.path).name, entry.reason) for entry in result.not_audited if entry.unreadable]


def code(result):
    return exit_code(result, FailOn.ERROR, exit_zero=False)


def test_a_log_directory_that_is_moved_leaves_the_audit_incomplete(engine, tmp_path, after_listing):
    write(tmp_path / "logs" / "a-0")
    after_listing(lambda: (tmp_path / "logs").rename(tmp_path / "moved"))
    result = engine.scan(tmp_path / "logs")
    assert result.incomplete
    assert code(result) == 4
    assert statuses(result) == ["vanished"] * 3
    assert {row.reason for row in result.segments} == {"No such file or directory"}
    assert [(found.code, found.severity.value) for found in result.findings] == [("KA012", "warning")] * 3


def test_retention_of_the_head_is_noted_and_nothing_is_incomplete(engine, tmp_path, after_listing):
    directory = write(tmp_path / "a-0")
    after_listing(segment(directory, 0).unlink)
    result = engine.scan(tmp_path)
    assert not result.incomplete
    assert code(result) == 0
    assert result.findings == []
    assert statuses(result) == ["vanished", "read", "read"]
    reason = "retention removed it: the log begins with segment 00000000000000000010.log now"
    assert [entry.reason for entry in result.not_audited if entry.path == str(segment(directory, 0))] == [reason]
    assert result.partitions[0].log_start_offset == 10
    assert result.partitions[0].batches == 20


def test_a_log_of_which_nothing_is_left_was_not_audited(engine, tmp_path, after_listing):
    directory = write(tmp_path / "a-0")

    def roll_and_delete():
        (directory / f"{30:020d}.log").touch()
        for number in range(3):
            segment(directory, number).unlink()

    after_listing(roll_and_delete)
    result = engine.scan(tmp_path)
    assert result.incomplete
    assert code(result) == 4
    assert result.summary.batches == 0


@pytest.mark.parametrize("number", [1, 2])
def test_a_segment_that_is_not_the_oldest_was_not_removed_by_retention(engine, tmp_path, after_listing, number):
    directory = write(tmp_path / "a-0")
    after_listing(segment(directory, number).unlink)
    result = engine.scan(tmp_path)
    assert result.incomplete
    assert unread(result) == [(segment(directory, number).name, "No such file or directory")]
    assert statuses(result)[number] == "vanished"


def test_a_file_that_shrank_is_incomplete_and_not_damaged(engine, tmp_path, after_listing):
    directory = write(tmp_path / "a-0")
    size = segment(directory, 2).stat().st_size
    after_listing(lambda: os.truncate(segment(directory, 2), size - 100))
    result = engine.scan(tmp_path)
    reason = f"100 of its {size} bytes are gone since it was listed"
    assert unread(result) == [(segment(directory, 2).name, reason)]
    assert statuses(result) == ["read", "read", "vanished"]
    assert [found.code for found in result.findings] == ["KA012"]


@pytest.mark.parametrize("linked", ["a-0", "b-0/00000000000000000010.log"])
def test_a_link_that_leads_nowhere_leaves_the_audit_incomplete(local, tmp_path, linked):
    write(tmp_path / "b-0")
    link = tmp_path / linked
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "not-mounted")
    result = local.scan(tmp_path)
    assert result.incomplete
    assert unread(result) == [(link.name, "No such file or directory")]


@pytest.mark.jvm
def test_tasks_read_a_relative_path_from_the_drivers_directory(spark, local, tmp_path, monkeypatch):
    write(tmp_path / "a-0")
    os.truncate(segment(tmp_path / "a-0", 1), 1000)
    monkeypatch.chdir(tmp_path)
    assert spark.documents("a-0") == local.documents("a-0")
    assert spark.scan("a-0").summary.batches > 20


@pytest.mark.jvm
def test_what_only_the_driver_can_read_stops_the_audit_before_it_begins(spark, tmp_path, monkeypatch):
    from kaudit.spark import jobs as spark_jobs

    write(tmp_path / "a-0")
    opens_here = vars(spark_jobs)["open_segment"]

    def on_a_worker(file, working_directory=None):
        if working_directory is None:  # the driver's own try
            return opens_here(file)
        raise FileNotFoundError(2, "No such file or directory", file.path)

    monkeypatch.setattr(spark_jobs, "_is_here", lambda _: False)  # as on a cluster
    monkeypatch.setattr(spark_jobs, "open_segment", on_a_worker)
    with pytest.raises(UnreadableInputError, match=r"No such file or directory on a Spark worker.*--engine local"):
        spark.scan(tmp_path)
