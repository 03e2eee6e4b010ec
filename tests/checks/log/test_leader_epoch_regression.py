"""KA009: a leader epoch that falls, in a recorded log."""

import pytest

from kaudit.checks.log.leader_epoch_regression import leader_epoch_regression
from tests.checks.findings import recorded_findings
from tests.checks.stories import findings, log_of, plain


def test_leader_epoch_regression_is_found_where_it_was_recorded():
    assert recorded_findings(leader_epoch_regression, "samples/damaged/flip-leader-epoch") == [
        ("error", "explosion", None, 990)
    ]


def test_leader_epoch_regression_is_not_found_in_a_healthy_log():
    assert recorded_findings(leader_epoch_regression, "samples/clean") == []


@pytest.mark.parametrize(
    ("epochs", "odd"),
    [
        ((0, 0, 2, 2, 2, 0, 2), 5),
        ((0, 0, 2, 2, 2, 0, 3), 5),
        ((0, 0, 2, 0, 0, 0, 2), 2),
        ((0, 0, 5, 0, 0, 0, 0), 2),
    ],
)
def test_the_odd_batch_is_named_and_not_those_around_it(epochs, odd, tmp_path):
    log = log_of(*(plain(offset, leader_epoch=epoch) for offset, epoch in enumerate(epochs)))
    assert [found.offset for found in findings(log, tmp_path, "KA009")] == [odd]
