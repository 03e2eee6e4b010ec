"""KA401: a producer id in no block, in a recorded log."""

from kaudit.checks.producer_ids.blocks import unallocated_producer_id
from tests.checks.findings import recorded_findings


def test_unallocated_producer_id_is_found_where_it_was_recorded():
    assert recorded_findings(
        unallocated_producer_id, "samples/producer-ids", blocks="samples/producer-ids/blocks.jsonl"
    ) == [("error", "orders", 900001, 6)]


def test_unallocated_producer_id_is_not_found_in_a_healthy_log():
    assert recorded_findings(unallocated_producer_id, "samples/clean") == []
