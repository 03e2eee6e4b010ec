"""KA510: offsets that are neither on a disk nor in remote storage."""

import pytest

from tests.checks.sidefiles.tiered import account_of, of_remote_segments, recorded, scanned, shown
from tests.remote_log import DELETED, FINISHED, STARTED, TieredLog, begun, segment_id, updated


@pytest.mark.parametrize("name", ["tiered-holes", "tiered-holes-4.3"])
def test_brokers_that_lost_segments_before_they_were_copied(name):
    """A consumer of the recorded brokers gets nothing at offsets 50 to 64."""
    for moment in ("deleted-here", "copied-on"):
        found = of_remote_segments(scanned(recorded(name, moment)))
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


@pytest.mark.parametrize("damaged", [b"", b"\1\0", b"\1\0\1" + bytes(80), b"\1\7\0", b"\1\1\0\7orders", b"\x09" * 40])
def test_a_record_that_cannot_be_read_is_named_and_makes_a_hole_uncertain(damaged, tmp_path):
    tiered = TieredLog(20, 30).copied(1, 0, 9).copied(2, 15, 19)
    tiered.records.append(damaged)
    directory = tiered.write(tmp_path)
    assert shown(directory) == [("KA510", "warning", 10, 14)]
    notes = [each for each in scanned(directory).not_audited if "__remote_log_metadata-0 at offset 4" in each.reason]
    assert len(notes) == 1


def test_numbers_that_no_broker_writes_end_no_scan(tmp_path):
    """Offsets beyond all limits, epochs that fall, an update of a segment that nobody began, a state of a release to come."""
    huge = (1 << 63) - 1
    tiered = TieredLog(20, 30)
    tiered.records += [
        begun(segment_id(1), (huge, -huge), {0: 0}),
        begun(segment_id(2), (0, huge), {3: 19, 0: 5, -7: -1}),
        begun(segment_id(3), (-huge, 9), {}),
        *(updated(segment_id(number), FINISHED) for number in range(1, 5)),
        updated(segment_id(3), 77),
    ]
    result = scanned(tiered.write(tmp_path))
    assert {each.code for each in of_remote_segments(result)} <= {"KA510", "KA512", "KA514", "KA515"}
    (account,) = [each for each in result.coverage if each.topic == "orders"]
    assert sum(account.offsets.values()) == account.log_end_offset


def test_a_shorter_copy_hides_the_end_of_a_longer_one(tmp_path):
    """KAFKA-15168: brokers look the offsets of an epoch up in the copy that begins last, and was copied last of those that begin alike."""
    tiered = TieredLog(20, 30).copied(1, 0, 19).copied(2, 0, 9)
    (found,) = [each for each in of_remote_segments(scanned(tiered.write(tmp_path))) if each.code == "KA510"]
    assert (found.offset, found.last_offset) == (10, 19)
    assert "a shorter copy finished after the one that has them" in found.message


def test_a_longer_copy_takes_the_place_of_a_shorter_one(tmp_path):
    """The same two the other way round, as a new leader copies what the old one had begun: nothing is missing."""
    tiered = TieredLog(20, 30).copied(1, 0, 9).copied(2, 0, 19)
    assert [each.code for each in of_remote_segments(scanned(tiered.write(tmp_path)))] == ["KA515"]
