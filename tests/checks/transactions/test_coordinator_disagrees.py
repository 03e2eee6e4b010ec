"""Markers against the decisions of their coordinator."""

from kaudit.checks.transactions.coordinator_disagrees import coordinator_disagrees
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
