"""Who wrote on in sequence across a change of leader."""

import pytest

from kaudit.analysis.sequences.leader_changes import LeaderChangeCounts
from kaudit.model.log_rows import BoundaryBatch


def batch(leader_epoch):
    fields = dict.fromkeys(BoundaryBatch._fields, 0)
    return BoundaryBatch(**{**fields, "leader_epoch": leader_epoch})


@pytest.mark.parametrize(
    ("runs", "across"),
    [
        ([(1, 3)], [0, 0, 1, 1, 0]),
        ([(1, 2), (2, 3)], [0, 0, 1, 1, 0]),
        ([(1, 3), (2, 3), (3, 4)], [0, 0, 1, 2, 1]),
        ([(2, 2)], [0, 0, 0, 0, 0]),
        ([(3, 2)], [0, 0, 0, 0, 0]),
        ([(-1, 2)], [0, 0, 0, 0, 0]),  # no leader epoch: nobody knows
        ([(0, 1)], [0, 1, 0, 0, 0]),
    ],
)
def test_a_producer_counts_at_each_leader_epoch_that_began_between_its_batches(runs, across):
    counts = LeaderChangeCounts()
    for first, last in runs:
        counts.add_run(batch(first), batch(last))
    assert [counts.across(epoch) for epoch in range(5)] == across
