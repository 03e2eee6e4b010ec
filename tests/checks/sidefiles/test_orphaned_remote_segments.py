"""KA514: segments in remote storage that nobody reads."""

import pytest

from tests.checks.sidefiles.tiered import of_remote_segments, scanned, shown
from tests.remote_log import DELETED, DELETING, FINISHED, TieredLog


def test_segments_of_a_leader_that_was_elected_uncleanly(tmp_path):
    """Epoch 1 wrote 10 to 29 and was cut off at an election: epoch 2 begins at 10."""
    tiered = (
        TieredLog(10, 40, epochs=((0, 0), (2, 10)))
        .copied(1, 0, 9)
        .copied(2, 10, 19, {1: 10})
        .copied(3, 10, 19, {2: 10})
    )
    assert shown(tiered.write(tmp_path)) == [("KA514", "warning", 10, 19)]


def test_what_lies_below_the_log_start_is_deleted_soon(tmp_path):
    tiered = TieredLog(20, 40, log_start=10).copied(1, 0, 9).copied(2, 10, 19)
    assert shown(tiered.write(tmp_path)) == [("KA514", "note", 0, 9)]


def test_a_broker_that_took_the_log_start_from_its_disk(tmp_path):
    """KAFKA-15351, KAFKA-16146: what is in remote storage only is cut off, and deleted as expired."""
    tiered = TieredLog(20, 40, log_start=20).copied(1, 0, 9).copied(2, 10, 24)
    assert shown(tiered.write(tmp_path)) == [("KA514", "warning", 0, 9)]


def test_a_topic_that_was_created_again(tmp_path):
    tiered = TieredLog(0, 10, topic_id=bytes(range(16))).copied(1, 0, 9).copied(2, 10, 19)
    (found,) = of_remote_segments(scanned(tiered.write(tmp_path)))
    assert (found.code, found.severity.value) == ("KA514", "warning")
    assert found.evidence.to_dict()["remote_segment_count"] == 2


@pytest.mark.parametrize("last_is_newer", [True, False])
def test_a_deletion_that_was_begun(last_is_newer, tmp_path):
    tiered = TieredLog(20, 40, log_start=10).copied(1, 0, 9, None, FINISHED, DELETING).copied(2, 10, 19)
    if last_is_newer:
        # the time of the event lies before custom metadata, state and tags
        last = tiered.records[-1]
        tiered.records[-1] = last[:-11] + (int.from_bytes(last[-11:-3], "big") + 1000).to_bytes(8, "big") + last[-3:]
    assert shown(tiered.write(tmp_path)) == ([("KA514", "note", 0, 9)] if last_is_newer else [])


def test_a_deletion_that_is_recorded_again_is_no_new_one(tmp_path):
    """KAFKA-15620: with several leader epochs in a segment brokers wrote its deletion for each; they drop what follows the first."""
    tiered = TieredLog(20, 40, log_start=10, epochs=((0, 0), (1, 5)))
    tiered.copied(1, 0, 9, {0: 0, 1: 5}, FINISHED, DELETING, DELETED, DELETING).copied(2, 10, 19, {1: 10})
    last = tiered.records[-1]
    tiered.records[-1] = last[:-11] + (int.from_bytes(last[-11:-3], "big") + 1000).to_bytes(8, "big") + last[-3:]
    assert shown(tiered.write(tmp_path)) == []
