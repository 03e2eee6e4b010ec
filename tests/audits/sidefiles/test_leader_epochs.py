"""A leader-epoch-checkpoint against itself and against the epochs of batches."""

import pytest

from kaudit.audits.sidefiles.leader_epoch_audit import LeaderEpochRun, wrong_leader_epochs
from kaudit.model.leader_epochs import EpochEntry

RUNS = [LeaderEpochRun(2, 0, 9, 0), LeaderEpochRun(3, 10, 19, 0), LeaderEpochRun(5, 20, 20, 1)]


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([], []),
        ([(2, 0), (3, 10), (5, 20)], []),
        # an epoch in which nothing was written, and one that began where the next did
        ([(2, 0), (3, 10), (4, 20), (5, 20)], []),
        ([(2, 0), (3, 10), (5, 20), (7, 21)], []),
        ([(2, 0), (2, 10)], [(10, None, "epoch 2 from offset 10 follows epoch 2 from 0"),
                             (10, 0, "epoch 2 for offset 10, where the log has epoch 3"),
                             (20, 1, "epoch 2 for offset 20, where the log has epoch 5")]),
        ([(2, 0), (3, 10), (5, 9)], [(9, None, "epoch 5 from offset 9 follows epoch 3 from 10"),
                                     (10, 0, "epoch 5 for offset 10, where the log has epoch 3")]),
        # it begins where the log's own begin was cut off
        ([(2, 9), (3, 10), (5, 20)], []),
        ([(3, 15), (5, 20)], []),
        ([(5, 20)], []),
        ([(5, 21)], []),
        ([(4, 20)], [(20, 1, "epoch 4 for offset 20, where the log has epoch 5")]),
        ([(2, 0), (3, 9), (5, 20)], [(9, 0, "epoch 3 from offset 9, where the log has epoch 2")]),
        ([(2, 0), (3, 11), (5, 20)], [(10, 0, "epoch 2 for offset 10, where the log has epoch 3")]),
        ([(2, 0), (5, 20)], [(10, 0, "epoch 2 for offset 10, where the log has epoch 3")]),
        ([(1, 0), (3, 10), (5, 20)], [(0, 0, "epoch 1 for offset 0, where the log has epoch 2")]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_rows(rows, wrong):
    found = list(wrong_leader_epochs([EpochEntry(*row) for row in rows], RUNS))
    assert [(each.offset, each.segment, each.detail) for each in found] == wrong
    assert {each.file for each in found} <= {"leader-epoch-checkpoint"}


def test_without_the_log_rows_are_compared_with_one_another():
    rows = [EpochEntry(4, 5), EpochEntry(4, 6), EpochEntry(6, 6), EpochEntry(7, 5)]
    assert [each.offset for each in wrong_leader_epochs(rows, [])] == [6, 5]
