"""KA904: groups that the log start has overtaken."""

import pytest

from tests.checks.groups.scanned import of_groups, scanned
from tests.commits import GroupLog
from tests.logs import Log, data


def log_from(directory, start):
    log = Log(next_offset=start)
    log.append(data(1, 0, start, 5))
    log.write(directory / "orders-0", segment_starts=(start,))
    return directory


def member(*offsets):
    return GroupLog().members("archive", 1, "m").commit("archive", *offsets)


CASES = {
    "overtaken": (member(100, 120), [("KA904", 120, 399)]),
    "at-the-start": (member(400), []),
    "within": (member(402), []),
    # nobody reads any more
    "without-members": (member(120).members("archive", 2), []),
    "standalone": (GroupLog().commit("archive", 120), []),
    "removed": (member(120).commit("archive", None), []),
}


@pytest.mark.parametrize(("commits", "expected"), CASES.values(), ids=CASES)
def test_where_the_newest_commit_lies(tmp_path, commits, expected):
    commits.write(log_from(tmp_path, 400))
    assert [(found.code, found.offset, found.last_offset) for found in of_groups(scanned(tmp_path))] == expected


def test_a_copy_that_begins_earlier_excuses_the_others(tmp_path):
    log_from(tmp_path / "b2", 100)
    member(120).write(log_from(tmp_path / "b1", 400))
    assert of_groups(scanned(tmp_path / "b1", tmp_path / "b2")) == []


def test_it_says_how_many_were_removed(tmp_path):
    (found,) = of_groups(scanned(member(120).write(log_from(tmp_path, 400))))
    assert found.message == (
        "group archive has committed up to 120, and the log begins at 400: 280 offsets were removed before it had committed them"
    )
    assert (found.topic, found.impact.records_skipped_at_most) == ("orders", 280)


def test_remote_storage_has_what_lies_below_the_first_local_segment(tmp_path):
    """The log start offset is the broker's: a member that reads remote offsets has lost nothing."""
    log_from(tmp_path, 400)
    (tmp_path / "remote-log-index-cache").mkdir()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 100\n")
    assert of_groups(scanned(member(120).write(tmp_path))) == []
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 200\n")
    (found,) = of_groups(scanned(tmp_path))
    assert (found.code, found.offset, found.last_offset) == ("KA904", 120, 199)
