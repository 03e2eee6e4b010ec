"""KA004: zeros in place of batches, in a recorded log."""

from kaudit.checks.log.damage import zero_filled
from tests.checks.findings import recorded_findings


def test_zero_filled_is_found_where_it_was_recorded():
    assert recorded_findings(zero_filled, "samples/damaged/zero-hole-4k") == [("error", "explosion", None, 990)]


def test_zero_filled_is_not_found_in_a_healthy_log():
    assert recorded_findings(zero_filled, "samples/clean") == []
