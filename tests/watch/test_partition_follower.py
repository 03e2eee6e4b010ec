"""One partition visited again and again: when it is read on, when from the beginning, and what cannot be read."""

import shutil

import pytest
from msgspec.structs import replace

from kaudit.partition import replay
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.source.schemes import open_segment
from kaudit.watch.partition_follower import PartitionFollower
from tests.crafted_sample import snapshot
from tests.logs import data

BATCHES = [data(7, 0, number, base_offset=number, payload=b"%d" % (number % 10)) for number in range(12)]
SIZE = len(BATCHES[0].encode())


class Partition:
    """A log of segments of two batches each, its follower, and files that refuse to be opened, each with the error."""

    def __init__(self, directory, batches=4):
        self.directory = directory
        self.refused: dict[str, OSError] = {}
        directory.mkdir(parents=True)
        self.name(0).touch()
        self.write(0, batches)
        self.follower = PartitionFollower(self.job(), self.open)

    def name(self, base):
        return self.directory / f"{base:020d}.log"

    def write(self, first, stop):
        for number in range(first, stop):
            with self.name(number // 2 * 2).open("ab") as file:
                file.write(BATCHES[number].encode())

    def job(self):
        options = ScanOptions([str(self.directory.parent)])
        (job,) = plan_jobs(options, find_input(options), all_needs)
        return job

    def open(self, segment):
        error = self.refused.get(segment.name)
        if error is not None:
            raise error
        return open_segment(segment)

    def visit(self, stopping=lambda: False):
        """Visit; return the bytes that were read by it, and how often it was begun anew so far."""
        before = self.follower.read_bytes
        self.follower.visit(self.job(), stopping)
        return self.follower.read_bytes - before, self.follower.restarts

    def found(self):
        """What is known of the partition now."""
        audit = self.follower.close()
        unread = [entry.path.rpartition("/")[2] for entry in audit.unreadable]
        return audit.counts.batches, audit.log_end_offset, unread


@pytest.fixture
def log(tmp_path):
    return Partition(tmp_path / "logs" / "orders-0")


def test_what_was_appended_is_read_once(log):
    assert log.visit() == (4 * SIZE, 0)
    assert log.visit() == (0, 0)
    log.write(4, 7)
    assert log.follower.needs_reading is False
    assert log.visit() == (3 * SIZE, 0)
    assert log.found() == (7, 7, [])


DENIED = PermissionError(13, "Permission denied")


def test_a_segment_in_the_middle_that_cannot_be_read_is_left_out(log):
    log.refused[log.name(2).name] = DENIED
    log.write(4, 6)
    assert log.visit() == (4 * SIZE, 0)
    assert log.follower.failed
    assert log.found() == (4, 6, [log.name(2).name])
    assert not log.follower.replay.continuity.missing  # what was left out is no gap
    # what lies before the mark is not tried again
    log.refused.clear()
    log.write(6, 7)
    assert log.visit() == (SIZE, 0)
    assert log.found() == (5, 7, [log.name(2).name])


def test_the_last_segment_is_tried_again(log):
    log.refused[log.name(2).name] = DENIED
    assert log.visit() == (2 * SIZE, 0)
    assert (log.follower.failed, log.found()) == (True, (2, 2, [log.name(2).name]))
    assert log.follower.needs_reading
    log.refused.clear()
    assert log.visit() == (2 * SIZE, 0)
    assert not log.follower.needs_reading
    assert (log.follower.failed, log.found()) == (False, (4, 4, []))


def test_a_segment_that_is_gone_before_it_is_opened_is_begun_anew_at_the_next_visit(log):
    log.visit()
    log.write(4, 6)
    log.refused[log.name(4).name] = FileNotFoundError(2, "No such file or directory")
    log.visit()
    log.refused.clear()
    assert log.visit() == (6 * SIZE, 0)
    assert log.found() == (6, 6, [])


def test_a_visit_that_fails_in_the_middle_is_made_again_from_the_beginning(log, monkeypatch):
    log.visit()
    log.write(4, 6)

    def fail(_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(replay, "list_snapshots", fail)
        log.visit()
    assert log.follower.failed
    assert log.visit() == (6 * SIZE, 1)
    assert (log.follower.failed, log.found()) == (False, (6, 6, []))


def test_a_visit_that_is_stopped_is_gone_on_with(log):
    log.write(4, 12)
    answers = iter([False, False, False, True, True])
    assert log.visit(lambda: next(answers))[0] < 12 * SIZE
    assert log.follower.needs_reading
    log.visit()
    assert (log.follower.read_bytes, log.follower.restarts) == (12 * SIZE, 0)
    assert log.found() == (12, 12, [])


def test_a_visit_that_is_stopped_between_segments_has_more_to_read(log):
    answers = iter([False, False, True, True])
    assert log.visit(lambda: next(answers))[0] == 2 * SIZE
    assert log.follower.needs_reading


@pytest.mark.parametrize(("missing", "begun_anew"), [(False, 0), (True, 1)])
def test_what_holes_mean_is_decided_anew_when_a_cleaner_was_at_work(log, missing, begun_anew):
    log.write(5 if missing else 4, 8)
    log.visit()
    (log.directory.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    assert log.visit()[1] == begun_anew


def delete(*bases):
    return lambda log: [log.name(base).unlink() for base in bases]


def shorten(log):
    content = log.name(4).read_bytes()
    log.name(4).write_bytes(content[:SIZE])


def rewrite_end(log):
    log.name(4).write_bytes(BATCHES[4].encode() + data(7, 0, 5, base_offset=5, payload=b"x").encode())


def rewrite_middle(log):
    log.name(2).write_bytes(BATCHES[2].encode())


def roll_within(log):
    log.name(3).write_bytes(b"")


def replace_by_later(log):
    delete(0, 2, 4)(log)
    log.write(8, 10)


def replace_by_next(log):
    delete(0, 2, 4)(log)
    log.write(6, 8)


@pytest.mark.parametrize(
    ("change", "begun_anew", "batches"),
    [
        (lambda log: log.write(6, 8), False, 8),
        # retention deletes from the front
        (delete(0), False, 6),
        (delete(0, 2), False, 6),
        (delete(2), True, 4),
        (delete(4), True, 4),
        (shorten, True, 5),
        (rewrite_end, True, 6),
        (rewrite_middle, True, 5),
        (roll_within, True, 6),
        # all it had was deleted: it goes on where the log ended, or is another log
        (replace_by_next, False, 8),
        (replace_by_later, True, 2),
    ],
)
def test_when_a_partition_is_begun_anew(log, change, begun_anew, batches):
    """After six batches in three segments were read."""
    log.write(4, 6)
    log.visit()
    change(log)
    assert log.visit()[1] == begun_anew
    assert log.found()[0] == batches


def test_a_partition_that_was_empty_goes_on_from_there(tmp_path):
    log = Partition(tmp_path / "logs" / "orders-0", batches=0)
    assert log.visit() == (0, 0)
    assert log.found() == (0, None, [])
    log.write(0, 3)
    assert log.visit() == (3 * SIZE, 0)
    assert log.found() == (3, 3, [])


def test_a_partition_that_had_no_segment_goes_on_from_there(log):
    content = log.name(0).read_bytes()
    log.name(0).unlink()
    log.name(2).unlink()
    (log.directory / "leader-epoch-checkpoint").write_text("0\n0\n")
    options = ScanOptions([str(log.directory.parent)])
    log.name(0).touch()
    found = find_input(options)
    log.name(0).write_bytes(content)
    (job,) = plan_jobs(options, replace(found, partitions=[replace(found.partitions[0], segments=())]), all_needs)
    log.follower = PartitionFollower(job, log.open)
    assert log.visit() == (2 * SIZE, 0)


def test_a_partition_whose_segments_are_all_gone_is_begun_anew(log):
    log.visit()
    shutil.move(log.directory, log.directory.parent.parent / "elsewhere")
    log.directory.mkdir()
    log.write(8, 10)
    assert log.visit() == (2 * SIZE, 1)
    assert log.found() == (2, 10, [])


def test_what_lies_before_the_mark_of_the_last_segment_is_settled(log):
    log.visit()
    last = log.name(2).name
    assert [log.follower.is_settled(last, at) for at in (0, 2 * SIZE - 1, 2 * SIZE, 9 * SIZE)] == [
        True, True, False, False,
    ]  # fmt: skip
    assert log.follower.is_settled(log.name(0).name, 9 * SIZE)
    assert log.follower.is_settled(last, None)
    assert log.follower.is_settled(None, 9 * SIZE)


def test_a_snapshot_that_is_written_meanwhile_is_compared_with_the_log(log):
    """One says of producer 7 what the log does, one another sequence."""
    log.visit()
    log.write(4, 6)
    for offset, sequence in ((5, 4), (6, 3)):
        name = log.directory / f"{offset:020d}.snapshot"
        name.write_bytes(snapshot([(7, 0, sequence, offset - 1, 0, BATCHES[0].timestamp, -1, -1)]))
    assert log.visit() == (2 * SIZE, 0)
    assert [found.file.base_offset for found in log.follower.close().suspects] == [6]
