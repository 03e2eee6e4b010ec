"""KA402: producer ids granted twice, in a recorded log."""

from kaudit.checks.producer_ids.blocks import block_overlap
from tests.checks.findings import recorded_findings


def test_block_overlap_is_found_where_it_was_recorded():
    assert recorded_findings(block_overlap, "samples/producer-ids", blocks="samples/producer-ids/blocks.jsonl") == [
        ("error", None, None, None)
    ]


def test_block_overlap_is_not_found_in_a_healthy_log():
    assert recorded_findings(block_overlap, "samples/clean") == []
