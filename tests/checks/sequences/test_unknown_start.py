"""KA106: a producer whose first sequence is not 0, in a recorded log."""

from kaudit.checks.sequences.first_sequences import unknown_start
from tests.checks.findings import recorded_findings


def test_unknown_start_is_found_where_it_was_recorded():
    assert recorded_findings(unknown_start, "samples/duplicates/s08-unknown-pid-nonzero-empty-0") == [
        ("note", "s08-unknown-pid-nonzero-empty", 900001, 0)
    ]


def test_unknown_start_is_not_found_in_a_healthy_log():
    assert recorded_findings(unknown_start, "samples/clean") == []
