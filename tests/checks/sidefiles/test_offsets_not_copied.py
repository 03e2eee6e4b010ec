"""KA512: offsets that were passed over by copies."""

from tests.checks.sidefiles.tiered import shown
from tests.remote_log import TieredLog


def test_what_is_on_the_disk_only_below_a_copied_segment(tmp_path):
    tiered = TieredLog(5, 40).copied(1, 0, 9).copied(2, 20, 29)
    assert shown(tiered.write(tmp_path)) == [("KA512", "warning", 10, 19)]


def test_what_is_still_to_be_copied_is_not_meant(tmp_path):
    assert shown(TieredLog(5, 40).copied(1, 0, 9).copied(2, 10, 19).write(tmp_path)) == []
