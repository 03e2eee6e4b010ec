"""KA105: a producer that begins again at sequence 0, in a recorded log."""

from kaudit.checks.sequences.first_sequences import sequence_restart
from tests.checks.findings import recorded_findings


def test_sequence_restart_is_found_where_it_was_recorded():
    assert recorded_findings(sequence_restart, "samples/crafted/expired-0") == [("note", "expired", 6, 3)]


def test_sequence_restart_is_not_found_in_a_healthy_log():
    assert recorded_findings(sequence_restart, "samples/clean") == []
