"""KA104: sequences that are missing, in a recorded log."""

from kaudit.checks.sequences.sequence_gap import sequence_gap
from tests.checks.findings import recorded_findings


def test_sequence_gap_is_found_where_it_was_recorded():
    assert recorded_findings(sequence_gap, "samples/duplicates/s50-inject-seq-gap-0") == [
        ("error", "s50-inject-seq-gap", 900001, 2)
    ]


def test_sequence_gap_is_not_found_in_a_healthy_log():
    assert recorded_findings(sequence_gap, "samples/clean") == []
