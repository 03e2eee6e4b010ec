"""KA101: a batch that repeats one which the broker remembers, in a recorded log."""

from kaudit.checks.sequences.duplicates import duplicate_batch
from tests.checks.findings import recorded_findings


def test_duplicate_batch_is_found_where_it_was_recorded():
    assert recorded_findings(duplicate_batch, "samples/crafted/evicted-0") == [("error", "evicted", 7, 4)]


def test_duplicate_batch_is_not_found_in_a_healthy_log():
    assert recorded_findings(duplicate_batch, "samples/clean") == []
