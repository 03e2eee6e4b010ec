"""KA304: a batch after the marker of its transaction, in a recorded log."""

import kaudit
from kaudit.checks.transactions.open_transactions import late_transactional_write
from tests.checks.findings import recorded_findings
from tests.live_brokers.accidents.judged import recorded


def test_late_transactional_write_is_found_where_it_was_recorded():
    assert recorded_findings(late_transactional_write, "samples/hanging-transaction") == [
        ("error", "s29d-late-write-after-abort", 12, 2)
    ]


def test_late_transactional_write_is_not_found_in_a_healthy_log():
    assert recorded_findings(late_transactional_write, "samples/clean") == []


def test_a_transaction_that_a_coordinator_forgot_with_its_log_is_not_late():
    hanging = recorded("lost-coordinator") / "hanging"
    assert {finding.code for finding in kaudit.scan(hanging).findings} == {"KA301"}
