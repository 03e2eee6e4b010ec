"""KA406: a block near the end of all producer ids, in a recorded log."""

from kaudit.checks.producer_ids.blocks import block_range_near_end
from tests.checks.findings import recorded_findings


def test_block_range_near_end_is_found_where_it_was_recorded():
    assert recorded_findings(
        block_range_near_end, "samples/producer-ids", blocks="samples/producer-ids/blocks-near-end.jsonl"
    ) == [("warning", None, None, None)]


def test_block_range_near_end_is_not_found_in_a_healthy_log():
    assert recorded_findings(block_range_near_end, "samples/clean") == []
