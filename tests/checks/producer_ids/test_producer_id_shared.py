"""KA404: two producers with one id, in a recorded log."""

from kaudit.checks.producer_ids.producer_id_shared import producer_id_shared
from tests.checks.findings import recorded_findings


def test_producer_id_shared_is_found_where_it_was_recorded():
    assert recorded_findings(producer_id_shared, "samples/producer-ids") == [("error", "shared", 7, 1)]


def test_producer_id_shared_is_not_found_in_a_healthy_log():
    assert recorded_findings(producer_id_shared, "samples/clean") == []
