"""KA205: a marker with an older coordinator epoch, in a recorded log."""

from kaudit.checks.epochs.stale_epochs import coordinator_epoch_regression
from tests.checks.findings import recorded_findings


def test_coordinator_epoch_regression_is_found_where_it_was_recorded():
    assert recorded_findings(coordinator_epoch_regression, "samples/crafted/coordinator-regression-0") == [
        ("warning", "coordinator-regression", 4, 5)
    ]


def test_coordinator_epoch_regression_is_not_found_in_a_healthy_log():
    assert recorded_findings(coordinator_epoch_regression, "samples/clean") == []
