"""KA302: transactions that are open, in a recorded log."""

from kaudit.checks.transactions.open_transactions import open_transaction
from tests.checks.findings import recorded_findings


def test_open_transaction_is_found_where_it_was_recorded():
    assert recorded_findings(open_transaction, "samples/open-transaction") == [
        ("note", "tx-a", 15, 155),
        ("note", "tx-open", 15, 0),
    ]


def test_open_transaction_is_not_found_in_a_healthy_log():
    assert recorded_findings(open_transaction, "samples/clean") == []
