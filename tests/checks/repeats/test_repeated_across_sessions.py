"""KA701: records that another session had written, in a recorded log."""

from kaudit.checks.repeats.sessions import repeated_across_sessions
from tests.checks.findings import recorded_findings


def test_repeated_across_sessions_is_found_where_it_was_recorded():
    assert recorded_findings(repeated_across_sessions, "samples/retries/invoices-0") == [
        ("warning", "invoices", 4001, 7)
    ]


def test_repeated_across_sessions_is_not_found_in_a_healthy_log():
    assert recorded_findings(repeated_across_sessions, "samples/clean") == []
