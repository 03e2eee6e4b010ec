"""KA107: a client that counts batches, in a recorded log."""

from kaudit.checks.sequences.sequence_step_mismatch import sequence_step_mismatch
from tests.checks.findings import recorded_findings


def test_sequence_step_mismatch_is_found_where_it_was_recorded():
    assert recorded_findings(sequence_step_mismatch, "samples/crafted/step-mismatch-0") == [
        ("error", "step-mismatch", 3, 2)
    ]


def test_sequence_step_mismatch_is_not_found_in_a_healthy_log():
    assert recorded_findings(sequence_step_mismatch, "samples/clean") == []
