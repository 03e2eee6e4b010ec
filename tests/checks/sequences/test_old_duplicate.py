"""KA102: a batch that repeats one which the broker no longer remembers, in a recorded log."""

from kaudit.checks.sequences.duplicates import old_duplicate
from tests.checks.findings import recorded_findings


def test_old_duplicate_is_found_where_it_was_recorded():
    assert recorded_findings(old_duplicate, "samples/crafted/old-duplicate-0") == [("error", "old-duplicate", 1, 8)]


def test_old_duplicate_is_not_found_in_a_healthy_log():
    assert recorded_findings(old_duplicate, "samples/clean") == []
