"""KA902: an offset that was set while the group had no members."""

from tests.checks.groups.scanned import of_groups, scanned
from tests.commits import GroupLog


def test_a_planned_reset_is_named_as_such(tmp_path):
    log = GroupLog().members("g", 1, "m").commit("g", 500).members("g", 2).commit("g", 0, epoch=-1)
    (found,) = of_groups(scanned(log.write(tmp_path)))
    assert found.message == "the committed offset of g on orders-0 was set while it had no members; from 500 to 0"
    assert (found.code, found.severity.value) == ("KA902", "note")
    assert found.explanations[0].innocent
    assert found.impact.to_dict() == {}
