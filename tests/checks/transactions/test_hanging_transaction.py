"""Transactions that no coordinator will end."""

from kaudit.checks.transactions.open_transactions import hanging_transaction
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions


def test_choosing_a_topic_does_not_hide_its_coordinator():
    everything = {
        (entry.topic, entry.offset, entry.fingerprint): entry.confidence
        for entry in scan(ScanOptions(["samples/hanging-transaction"]), SilentProgress()).findings
        if entry.code == hanging_transaction.code
    }
    topics = sorted({topic for topic, _, _ in everything if topic is not None})
    assert len(topics) > 1
    for topic in topics:
        result = scan(ScanOptions(["samples/hanging-transaction"], topics=(topic,)), SilentProgress())
        assert {summary.topic for summary in result.partitions} == {topic}
        found = {
            (e.topic, e.offset, e.fingerprint): e.confidence
            for e in result.findings
            if e.code == hanging_transaction.code
        }
        assert found == {key: sure for key, sure in everything.items() if key[0] == topic}
