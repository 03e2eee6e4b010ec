"""Markers beside decisions: a marker written twice and a deleted one together are no disagreement."""

import numpy as np
import pytest

from kaudit.audits.coordinator.transaction_state_reader import Decision
from kaudit.audits.transactions.marker_outcomes import Markers, compare_outcomes
from kaudit.audits.transactions.transaction_spans import ENDED_TRANSACTION
from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER
from kaudit.model.transactions import MismatchedMarker
from kaudit.source.layout import PartitionDirectory

COMMIT, ABORT = COMMIT_MARKER, ABORT_MARKER


def disagreeing(markers, decided):
    """Offsets of markers, each (type, epoch, first offset of its transaction), against the types decided in order."""
    rows = np.zeros(len(markers), dtype=ENDED_TRANSACTION)
    rows["producer_id"] = 7
    rows["marker_offset"] = range(len(markers))
    for name, column in zip(("type", "producer_epoch", "first_offset"), zip(*markers, strict=True), strict=True):
        rows[name] = column
    directory = PartitionDirectory("orders", 0, "", "", "orders-0", "orders-0", ())
    decisions = [Decision("t", kind, frozenset({("orders", 0)}), offset) for offset, kind in enumerate(decided)]
    (found,) = compare_outcomes([Markers(directory, rows)], {7: decisions})
    return [marker.offset for marker in found]


@pytest.mark.parametrize(
    ("markers", "decided", "expected"),
    [
        ([(COMMIT, 0, 0), (ABORT, 0, 2)], [1, 0], []),
        ([(COMMIT, 0, 0), (COMMIT, 0, 2)], [1, 0], [1]),
        # the commit of the first transaction is deleted, and the abort of the second was written twice
        ([(ABORT, 1, 5), (ABORT, 1, -1)], [1, 0], []),
        # a transaction without data in this partition is no copy, as its epoch or its end is another one
        ([(COMMIT, 0, 0), (ABORT, 0, -1)], [0, 0], [0]),
        ([(COMMIT, 0, 0), (COMMIT, 1, -1)], [1, 0], [1]),
        ([(COMMIT, 0, 0)], [1, 0], []),
    ],
)
def test_markers_are_held_against_the_decisions_only_where_each_can_have_its_own(markers, decided, expected):
    assert disagreeing(markers, decided) == expected


def partition(topic, *types):
    """A partition's markers of producer 7, each of an epoch of its own."""
    rows = np.zeros(len(types), dtype=ENDED_TRANSACTION)
    rows["producer_id"], rows["type"] = 7, types
    rows["producer_epoch"] = rows["first_offset"] = range(len(types))
    rows["marker_offset"] = np.arange(len(types)) * 10 + 5
    rows["position"], rows["segment"] = rows["marker_offset"] * 70, 2
    return Markers(PartitionDirectory(topic, 0, "", "", f"{topic}-0", f"{topic}-0", ()), rows)


def decision(kind, offset, *topics):
    return Decision("t", kind, frozenset((topic, 0) for topic in topics), offset)


def test_a_marker_is_held_against_the_decision_about_its_partition():
    decisions = [decision(1, 3, "a", "b"), decision(0, 8, "b"), decision(1, 9, "a")]
    first, second = compare_outcomes(
        [partition("a", COMMIT, ABORT), partition("b", ABORT, ABORT)], {7: decisions, 8: None}
    )
    assert first == [MismatchedMarker("t", 7, 1, 15, 1050, 2, 0, 1, 9, [])]
    assert second == [MismatchedMarker("t", 7, 0, 5, 350, 2, 0, 1, 3, ["a-0"])]


def test_markers_that_may_be_copies_count_where_all_are_as_decided():
    copies = partition("a", COMMIT, COMMIT)
    copies.rows["producer_epoch"] = 0
    copies.rows["first_offset"] = (0, -1)
    decisions = {7: [decision(1, 3, "a", "b"), decision(1, 8, "a")]}
    _, (found,) = compare_outcomes([copies, partition("b", ABORT)], decisions)
    assert found.agreeing == ["a-0"]
