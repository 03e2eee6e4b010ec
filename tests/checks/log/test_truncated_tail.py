"""KA002: a segment that ends inside a batch, in a recorded log."""

from kaudit.checks.log.damage import truncated_tail
from tests.checks.findings import recorded_findings


def test_truncated_tail_is_found_where_it_was_recorded():
    assert recorded_findings(truncated_tail, "samples/damaged/truncate-mid-batch-active") == [
        ("warning", "explosion", None, None)
    ]


def test_truncated_tail_is_not_found_in_a_healthy_log():
    assert recorded_findings(truncated_tail, "samples/clean") == []
