"""KA303: a batch without the transactional flag in a transaction, in a recorded log."""

from kaudit.checks.transactions.nontransactional_in_transaction import nontransactional_in_transaction
from tests.checks.findings import recorded_findings


def test_nontransactional_in_transaction_is_found_where_it_was_recorded():
    assert recorded_findings(nontransactional_in_transaction, "samples/crafted/outside-transaction-0") == [
        ("error", "outside-transaction", 5, 2)
    ]


def test_nontransactional_in_transaction_is_not_found_in_a_healthy_log():
    assert recorded_findings(nontransactional_in_transaction, "samples/clean") == []
