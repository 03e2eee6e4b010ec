"""KA905: groups that wait for the end of a transaction."""

import pytest

from tests.checks.groups.scanned import of_groups, scanned
from tests.commits import GroupLog

MINUTE = 60_000


def pending():
    return GroupLog().commit("totals", 10, producer=(7, 0), outcome=None)


CASES = {
    "open": (pending().wait(20 * MINUTE).commit("other", 1), [("KA905", 7, 0)]),
    "within-the-timeout": (pending().wait(5 * MINUTE).commit("other", 1), []),
    "committed": (pending().wait(20 * MINUTE).end(7, 0).commit("other", 1), []),
    "aborted": (pending().wait(20 * MINUTE).end(7, 0, commit=False).commit("other", 1), []),
}


@pytest.mark.parametrize(("log", "expected"), CASES.values(), ids=CASES)
def test_whose_commits_wait(tmp_path, log, expected):
    found = of_groups(scanned(log.write(tmp_path)))
    assert [(each.code, each.producer_id, each.offset) for each in found] == expected
    assert all("the commits of totals in the transaction of producer 7 wait" in each.message for each in found)
