"""KA515: offsets that two remote segments have."""

from tests.checks.sidefiles.tiered import of_remote_segments, scanned, shown
from tests.remote_log import TieredLog


def test_a_new_leader_whose_segments_begin_elsewhere(tmp_path):
    tiered = TieredLog(20, 40, epochs=((0, 0), (1, 10))).copied(1, 0, 9).copied(2, 5, 19, {0: 5, 1: 10})
    (found,) = of_remote_segments(scanned(tiered.write(tmp_path)))
    assert (found.code, found.severity.value, found.offset, found.last_offset) == ("KA515", "note", 5, 9)
    assert found.message.startswith("5 offsets of 5..9 are in two segments")


def test_the_part_of_another_lineage_is_not_read(tmp_path):
    """The first leader copied to 14, and was cut off at 10."""
    tiered = TieredLog(20, 40, epochs=((0, 0), (1, 10))).copied(1, 0, 14).copied(2, 10, 19, {1: 10})
    assert shown(tiered.write(tmp_path)) == []


def test_segments_of_two_leaders_as_reported(tmp_path):
    """KAFKA-16511: the log has epochs 5 from 10, 7 from 15 and 9 from 100; broker 0 copied 10 to 50, broker 1 went on with 14 to 150."""
    tiered = TieredLog(140, 160, log_start=10, epochs=((5, 10), (7, 15), (9, 100)))
    tiered.copied(1, 10, 50, {5: 10, 7: 15}).copied(2, 14, 150, {5: 14, 7: 15, 9: 100})
    assert shown(tiered.write(tmp_path)) == [("KA515", "note", 14, 50)]
