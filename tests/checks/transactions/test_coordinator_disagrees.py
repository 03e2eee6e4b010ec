"""Markers against the decisions of their coordinator."""

import pytest

from kaudit.audits.transactions import transaction_spans
from kaudit.checks.transactions.marker_outcomes import coordinator_disagrees
from tests.checks.transactions.coordinator_log import BOTH, EMPTY, cycle, reported, state, write_partition, write_states


def test_markers_as_decided_are_silent(tmp_path):
    write_states(tmp_path, [state("t", EMPTY), *cycle(True, BOTH), *cycle(False, BOTH), *cycle(True, [("a", 0)])])
    write_partition(tmp_path, "a", (True, False, True))
    write_partition(tmp_path, "b", (True, False))
    assert reported(tmp_path) == []


def test_with_no_partition_as_decided_the_coordinator_disagrees(tmp_path):
    write_states(tmp_path, cycle(True, [("a", 0)]))
    write_partition(tmp_path, "a", (False,))
    assert reported(tmp_path) == [(coordinator_disagrees.code, "a", 1)]


def test_what_cannot_be_paired_is_not_compared(tmp_path):
    write_states(tmp_path, cycle(True, [("a", 0)]))
    write_partition(tmp_path, "a", (False, False))
    assert reported(tmp_path) == []


def test_a_decision_not_carried_out_yet_is_not_compared(tmp_path):
    write_states(tmp_path, [*cycle(True, [("a", 0)]), *cycle(False, [("a", 0)])[:2]])
    write_partition(tmp_path, "a", (True, True))
    assert reported(tmp_path) == []


@pytest.mark.parametrize(("limit", "compared"), [("MAX_COMMITS", 2), ("MAX_ABORTS", 2)])
@pytest.mark.parametrize("number", [2, 3])
def test_up_to_a_limit_all_markers_are_compared(limit, compared, number, tmp_path, monkeypatch):
    """Beyond it none are: a part of them cannot be paired with decisions."""
    monkeypatch.setattr(transaction_spans, limit, compared)
    commit = limit == "MAX_COMMITS"
    write_states(tmp_path, cycle(not commit, [("a", 0)]) * number)
    write_partition(tmp_path, "a", (commit,) * number)
    found = [offset for _, _, offset in reported(tmp_path)]
    assert found == ([1 + 2 * each for each in range(number)] if number <= compared else [])
