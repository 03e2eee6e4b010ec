"""KA911: records that stay acquired, by the time that another log of the copy shows."""

from tests.checks.groups.scanned import of_groups, scanned
from tests.checks.groups.test_share_records_archived import share_state
from tests.commits import GroupLog, share_log

HOUR = 3_600_000


def test_an_hour_later_they_should_be_available_again(tmp_path):
    share_state(tmp_path, share_log((1, 0, [(40, 49, 1, 1)])))
    GroupLog().commit("other", 1).wait(2 * HOUR).commit("other", 2).write(tmp_path)
    (found,) = of_groups(scanned(tmp_path))
    assert (found.code, found.severity.value) == ("KA911", "warning")
    assert (
        "has offsets 40..49 of topic AAECAwQFBgcICQoLDA0ODw-0 acquired since 2023-11-14 22:13:20 UTC" in found.message
    )


def test_within_the_hour_nothing_is_said(tmp_path):
    share_state(tmp_path, share_log((1, 0, [(40, 49, 1, 1)])))
    GroupLog().commit("other", 1).wait(HOUR // 2).commit("other", 2).write(tmp_path)
    assert of_groups(scanned(tmp_path)) == []
