"""KA511: segments that were deleted in remote storage although the log needs them."""

import pytest

from tests.checks.sidefiles.tiered import account_of, of_remote_segments, recorded, scanned, shown
from tests.remote_log import DELETED, DELETING, FINISHED, TieredLog


@pytest.mark.parametrize("name", ["tiered-holes", "tiered-holes-4.3"])
@pytest.mark.parametrize("moment", ["deleted-remotely", "deleted-here", "copied-on"])
def test_brokers_whose_segment_was_deleted(name, moment):
    """A consumer of the recorded brokers gets nothing at offsets 10 to 14."""
    found = of_remote_segments(scanned(recorded(name, moment)))
    (hole,) = [each for each in found if each.code == "KA511"]
    assert (hole.severity.value, hole.offset, hole.last_offset) == ("error", 10, 14)
    assert (hole.impact.records_lost_at_least, hole.impact.records_lost_at_most) == (5, 5)


@pytest.mark.parametrize("states", [(FINISHED, DELETING), (FINISHED, DELETING, DELETED)])
def test_a_deleted_segment_in_the_middle(states, tmp_path):
    tiered = TieredLog(20, 30).copied(1, 0, 9).copied(2, 10, 14, None, *states).copied(3, 15, 19)
    assert [each[0] for each in shown(tiered.write(tmp_path))] == ["KA511"]


def test_retention_deletes_from_the_beginning_before_the_checkpoint_says_so(tmp_path):
    """A broker writes log-start-offset-checkpoint once a minute, and when it is stopped."""
    tiered = TieredLog(20, 30).copied(1, 0, 9, None, FINISHED, DELETING, DELETED).copied(2, 10, 19)
    directory = tiered.write(tmp_path / "live")
    assert shown(directory) == []
    account = account_of(directory)
    assert (account.log_start_offset, account.offsets) == (10, {"data": 10, "remote": 10, "retention": 10})
    tiered.stopped = True
    assert shown(tiered.write(tmp_path / "stopped")) == [("KA511", "error", 0, 9)]


def test_a_segment_that_was_copied_again_is_not_missed(tmp_path):
    tiered = TieredLog(20, 30).copied(1, 0, 9).copied(2, 10, 19, None, FINISHED, DELETING, DELETED).copied(3, 10, 19)
    assert shown(tiered.write(tmp_path)) == []
