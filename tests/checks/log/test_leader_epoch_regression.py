"""KA009: a leader epoch that falls, in a recorded log."""

from kaudit.checks.log.leader_epoch_regression import leader_epoch_regression
from tests.checks.findings import recorded_findings


def test_leader_epoch_regression_is_found_where_it_was_recorded():
    assert recorded_findings(leader_epoch_regression, "samples/damaged/flip-leader-epoch") == [
        ("error", "explosion", None, 990)
    ]


def test_leader_epoch_regression_is_not_found_in_a_healthy_log():
    assert recorded_findings(leader_epoch_regression, "samples/clean") == []
