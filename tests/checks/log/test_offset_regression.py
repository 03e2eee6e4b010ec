"""KA006: a batch with an offset that had been written, in a recorded log."""

from kaudit.checks.log.damage import offset_regression
from tests.checks.findings import recorded_findings


def test_offset_regression_is_found_where_it_was_recorded():
    assert recorded_findings(offset_regression, "samples/damaged/flip-base-offset") == [
        ("error", "explosion", None, 986)
    ]


def test_offset_regression_is_not_found_in_a_healthy_log():
    assert recorded_findings(offset_regression, "samples/clean") == []
