"""KA704: records that the producer had written in its epoch before, in a recorded log."""

from kaudit.checks.repeats.sessions import repeated_across_epochs
from tests.checks.findings import recorded_findings


def test_repeated_across_epochs_is_found_where_it_was_recorded():
    assert recorded_findings(repeated_across_epochs, "samples/retries/shipments-0") == [("error", "shipments", 4002, 6)]


def test_repeated_across_epochs_is_not_found_in_a_healthy_log():
    assert recorded_findings(repeated_across_epochs, "samples/clean") == []
