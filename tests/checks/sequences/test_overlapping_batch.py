"""KA103: a batch that begins inside the one before it, in a recorded log."""

from kaudit.checks.sequences.duplicates import overlapping_batch
from tests.checks.findings import recorded_findings


def test_overlapping_batch_is_found_where_it_was_recorded():
    assert recorded_findings(overlapping_batch, "samples/crafted/overlap-0") == [("error", "overlap", 2, 4)]


def test_overlapping_batch_is_not_found_in_a_healthy_log():
    assert recorded_findings(overlapping_batch, "samples/clean") == []
