"""KA602: replicas that end before the others."""

import pytest

from kaudit.checks.replicas.replica_behind import replica_behind
from kaudit.model.impact import Impact
from kaudit.model.replicas import Relation
from tests.checks.replicas.facts import compared, reported

BEHIND, SAME = Relation.BEHIND, Relation.IDENTICAL


def test_all_that_are_behind_are_one_note_about_the_last_of_them():
    ends = {"b1": 100, "b2": 90, "b3": 60, "b4": 10, "b5": 100}
    relations = {"b2": BEHIND, "b3": BEHIND, "b4": BEHIND, "b5": SAME}
    (found,) = reported(replica_behind, compared(ends, relations=relations), torn=("b4",))
    assert found.message == "b2 and b3 lag b1 by up to 40 offsets"
    assert (found.severity.value, found.replica, found.offset, found.last_offset) == ("note", "b3", 60, 99)
    assert found.evidence["lags"] == {"b2": 10, "b3": 40}
    assert (found.evidence["count"], found.evidence["class"], found.evidence["reference"]) == (2, "behind", "b1")
    assert found.evidence["broker"] == "lets it fetch from offset 60 on"
    assert found.evidence["end_offsets"] == ends
    assert found.impact == Impact(records_lost_at_most=0)
    assert [each.innocent for each in found.explanations] == [True, True]


def test_one_alone_is_named_with_its_end():
    (found,) = reported(replica_behind, compared({"b1": 1235, "b2": 1}, relations={"b2": BEHIND}))
    assert found.message == "b2 ends at offset 1, 1,234 offsets before b1"
    (found,) = reported(replica_behind, compared({"b1": 100, "b2": 99}, relations={"b2": BEHIND}))
    assert found.message == "b2 ends at offset 99, 1 offset before b1"
    assert (found.offset, found.last_offset) == (99, 99)


@pytest.mark.parametrize("torn", [(), ("b2",)])
def test_who_is_not_behind_or_ends_in_damage_is_no_note(torn):
    relation = BEHIND if torn else SAME
    assert reported(replica_behind, compared({"b1": 100, "b2": 99}, relations={"b2": relation}), torn=torn) == []
