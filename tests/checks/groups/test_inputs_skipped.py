"""KA916: inputs in no committed transaction. Truth: what a consumer read of the outputs (tests/data/exactly-once)."""

import pytest

from tests.checks.groups.recorded import findings


@pytest.mark.parametrize(
    ("name", "severity", "aborted"),
    [("abort-without-going-back", "error", True), ("jump-outside", "warning", False)],
    ids=["aborted", "outside"],
)
def test_inputs_10_to_19_are_skipped(name, severity, aborted):
    (found,) = findings(name, "KA916")
    evidence = found.evidence.to_dict()
    assert found.severity.value == severity
    assert evidence["inputs"] == {
        "group_id": evidence["group_id"],
        "topic": "inputs",
        "partition": 0,
        "first": 10,
        "end": 20,
    }
    assert (evidence["aborted"] is not None, evidence["passed_by"] is not None) == (aborted, aborted)
    assert found.impact.records_skipped_at_most == 10
    assert (found.producer_id is not None) == aborted


@pytest.mark.parametrize("name", ["healthy-loop-3.9", "streams-eos-3.9", "zombie-goes-back-4.1", "offsets-after"])
def test_silent_where_aborted_inputs_are_processed_again(name):
    assert findings(name, "KA916") == []
