"""KA510: offsets that are neither on a disk nor in remote storage."""

import pytest

from tests.checks.sidefiles.tiered import account_of, of_remote_segments, recorded, scanned, shown
from tests.remote_log import DELETED, STARTED, TieredLog


@pytest.mark.parametrize("name", ["tiered-holes", "tiered-holes-4.3"])
def test_brokers_that_lost_segments_before_they_were_copied(name, tmp_path):
    """A consumer of the recorded brokers gets nothing at offsets 50 to 64."""
    for moment in ("deleted-here", "copied-on"):
        found = of_remote_segments(scanned(recorded(name, moment, tmp_path / moment)))
        (hole,) = [each for each in found if each.code == "KA510"]
        assert (hole.severity.value, hole.offset, hole.last_offset) == ("error", 50, 64)
        assert (hole.impact.records_lost_at_least, hole.impact.records_lost_at_most) == (15, 15)


def test_a_log_that_meets_its_remote_segments_is_healthy(tmp_path):
    directory = TieredLog(20, 30).copied(1, 0, 9).copied(2, 10, 24).write(tmp_path)
    assert shown(directory) == []
    account = account_of(directory)
    assert (account.all_accounted, account.offsets) == (True, {"data": 10, "remote": 20})
    assert account.remote is not None
    assert (account.remote.first_offset, account.remote.last_offset, account.remote.also_local) == (0, 24, 5)


def test_what_lies_between_two_copies_is_lost(tmp_path):
    directory = TieredLog(20, 30).copied(1, 0, 9).copied(2, 15, 19).write(tmp_path)
    assert shown(directory) == [("KA510", "error", 10, 14)]
    assert account_of(directory).offsets == {"data": 10, "remote": 15, "missing": 5}


def test_at_the_log_on_the_disk_it_may_have_been_copied_since_unless_the_broker_had_stopped(tmp_path):
    live = TieredLog(20, 30).copied(1, 0, 9).copied(2, 10, 19, None, STARTED)
    assert shown(live.write(tmp_path / "live")) == [("KA510", "warning", 10, 19)]
    stopped = TieredLog(20, 30, stopped=True).copied(1, 0, 9).copied(2, 10, 19, None, STARTED)
    assert shown(stopped.write(tmp_path / "stopped")) == [("KA510", "error", 10, 19)]


def test_a_failed_copy_that_was_cleaned_up_is_no_deleted_segment(tmp_path):
    """From 4.0 on a broker deletes at once what a failed copy has left."""
    directory = TieredLog(20, 30, stopped=True).copied(1, 0, 9).copied(2, 10, 19, None, DELETED)
    assert shown(directory.write(tmp_path)) == [("KA510", "error", 10, 19)]


def test_a_segment_of_another_leader_epoch_does_not_have_the_offsets(tmp_path):
    """Epoch 1 began at 10, where the copied segment has records of epoch 0 up to 19."""
    tiered = TieredLog(20, 30, epochs=((0, 0), (1, 10)), stopped=True).copied(1, 0, 19, {0: 0})
    assert shown(tiered.write(tmp_path)) == [("KA510", "error", 10, 19)]


def test_another_replica_still_has_the_offsets(tmp_path):
    TieredLog(20, 30).copied(1, 0, 9).copied(2, 15, 19).write(tmp_path / "b1")
    TieredLog(5, 30, records=[]).write(tmp_path / "b2")
    (found,) = of_remote_segments(scanned(tmp_path / "b1", tmp_path / "b2"))
    assert (found.code, found.severity.value, found.impact.records_lost_at_most) == ("KA510", "warning", 0)
    assert found.message.endswith("; b2 still has them")


def test_without_a_checkpoint_the_remote_segments_say_where_the_log_begins(tmp_path):
    directory = TieredLog(20, 30, log_start=None).copied(1, 5, 9).copied(2, 10, 19).write(tmp_path)
    assert shown(directory) == []
    account = account_of(directory)
    assert (account.log_start_offset, account.log_start_source) == (5, "__remote_log_metadata")
    assert account.offsets == {"data": 10, "remote": 15, "retention": 5}
