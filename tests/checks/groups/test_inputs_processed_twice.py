"""KA915: inputs in two committed transactions. Truth: what a consumer read of the outputs (tests/data/exactly-once)."""

import pytest

from tests.checks.groups.recorded import findings


@pytest.mark.parametrize(
    ("name", "severity", "shown_by", "first"),
    [
        ("zombie-goes-back-3.9", "error", "offsets", 10),
        ("zombie-goes-back-4.1", "error", "offsets", 10),
        ("zombie-level", "error", "outputs", 10),
        ("processed-again", "warning", "offsets", None),
    ],
    ids=["old", "new", "level", "itself"],
)
def test_inputs_10_to_19_are_doubled(name, severity, shown_by, first):
    (found,) = findings(name, "KA915")
    evidence = found.evidence.to_dict()
    assert (found.severity.value, evidence["shown_by"]) == (severity, shown_by)
    assert evidence["inputs"] == {
        "group_id": evidence["group_id"],
        "topic": "inputs",
        "partition": 0,
        "first": first,
        "end": 20,
    }
    assert found.impact.records_delivered_again_at_most == (None if first is None else 10)


def test_both_producers_and_the_outputs_are_named():
    (found,) = findings("zombie-goes-back-4.1", "KA915")
    evidence = found.evidence.to_dict()
    first, second = evidence["first_transaction"], evidence["second_transaction"]
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (first["transactional_id"], second["transactional_id"]) == ("zombie-b", "zombie-a")
    assert evidence["outputs"] == [
        {"topic": "outputs", "partition": 0, "first_offset": 11, "last_offset": 43, "records": 10}
    ]
    assert found.topic == "__consumer_offsets"


@pytest.mark.parametrize("name", ["healthy-loop-4.1", "streams-eos-4.1", "streams-alos-4.1", "jump-outside"])
def test_silent_where_each_input_is_in_one_transaction(name):
    assert findings(name, "KA915") == []
