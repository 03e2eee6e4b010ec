"""KA513: copies that were begun and never finished."""

from tests.checks.sidefiles.tiered import of_remote_segments, recorded, scanned, shown
from tests.remote_log import STARTED, TieredLog


def test_a_broker_whose_copies_failed_for_a_while():
    """On 3.9.1 each attempt stays as it was begun; offsets 25 to 29 were copied in the end, 50 to 54 never."""
    moments = {
        moment: [each for each in of_remote_segments(scanned(recorded("tiered-holes", moment))) if each.code == "KA513"]
        for moment in ("copies-failed", "copied-on")
    }
    found = {moment: (own.severity.value, own.offset, own.last_offset) for moment, (own,) in moments.items()}
    assert found == {"copies-failed": ("note", 25, 29), "copied-on": ("warning", 25, 54)}


def test_the_newest_copy_may_be_going_on(tmp_path):
    tiered = TieredLog(10, 40).copied(1, 0, 19).copied(2, 20, 29, None, STARTED)
    assert shown(tiered.write(tmp_path)) == []


def test_a_later_copy_shows_that_it_has_ended(tmp_path):
    tiered = TieredLog(10, 40).copied(1, 0, 9).copied(2, 10, 19, None, STARTED).copied(3, 10, 19)
    assert shown(tiered.write(tmp_path)) == [("KA513", "note", 10, 19)]


def test_attempts_that_fail_one_after_the_other_as_reported(tmp_path):
    """KAFKA-17062: three segments are copied, and each attempt to copy the fourth stays as it was begun."""
    tiered = TieredLog(30, 50).copied(1, 0, 9).copied(2, 10, 19).copied(3, 20, 29)
    for attempt in range(4, 9):
        tiered.copied(attempt, 30, 39, None, STARTED)
    (found,) = of_remote_segments(scanned(tiered.write(tmp_path)))
    assert (found.code, found.severity.value, found.offset, found.last_offset) == ("KA513", "warning", 30, 39)
    assert found.message.startswith("4 copies to remote storage of offsets 30..39 were begun and never finished")
