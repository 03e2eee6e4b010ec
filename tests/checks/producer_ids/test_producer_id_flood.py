"""KA405: many producer ids in one partition, in a recorded log."""

from kaudit.checks.producer_ids.producer_id_flood import producer_id_flood
from tests.checks.findings import recorded_findings


def test_producer_id_flood_is_found_where_it_was_recorded():
    assert recorded_findings(producer_id_flood, "samples/producer-ids") == [("note", "flood", None, None)]


def test_producer_id_flood_is_not_found_in_a_healthy_log():
    assert recorded_findings(producer_id_flood, "samples/clean") == []
