"""KA702: a batch without a producer id that was sent again, in a recorded log."""

from kaudit.checks.repeats.retries import retry_duplicate
from tests.checks.findings import recorded_findings


def test_retry_duplicate_is_found_where_it_was_recorded():
    assert recorded_findings(retry_duplicate, "samples/retries/events-0") == [("warning", "events", None, 5)]


def test_retry_duplicate_is_not_found_in_a_healthy_log():
    assert recorded_findings(retry_duplicate, "samples/clean") == []
