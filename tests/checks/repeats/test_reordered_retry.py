"""KA703: a batch that was sent again after later ones, in a recorded log."""

from kaudit.checks.repeats.retries import reordered_retry
from tests.checks.findings import recorded_findings


def test_reordered_retry_is_found_where_it_was_recorded():
    assert recorded_findings(reordered_retry, "samples/retries/events-0") == [("warning", "events", None, 6)]


def test_reordered_retry_is_not_found_in_a_healthy_log():
    assert recorded_findings(reordered_retry, "samples/clean") == []
