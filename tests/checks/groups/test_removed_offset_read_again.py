"""KA903: an offset that expired, and the group that then began again."""

from kaudit.model.impact import Impact
from tests.checks.groups.scanned import of_groups, scanned
from tests.commits import GroupLog

DAY = 24 * 3_600_000


def test_it_says_when_the_offset_was_removed(tmp_path):
    log = GroupLog().members("g", 1, "m").commit("g", 900).members("g", 2).wait(8 * DAY).commit("g", None).ended("g")
    log.wait(DAY).members("g", 1, "n").commit("g", 50)
    (found,) = of_groups(scanned(log.write(tmp_path)))
    assert found.message == (
        "the committed offset of g on orders-0 began again lower, after it was removed on 2023-11-22 22:13:20 UTC, "
        "8 days after its last commit; from 900 to 50"
    )
    assert (found.severity.value, found.impact) == ("warning", Impact(records_delivered_again=0))
