"""KA003: bytes that are not a batch, in a recorded log."""

from kaudit.checks.log.damage import unparsable_bytes
from tests.checks.findings import recorded_findings


def test_unparsable_bytes_is_found_where_it_was_recorded():
    assert recorded_findings(unparsable_bytes, "samples/damaged/flip-length") == [("error", "explosion", None, 990)]


def test_unparsable_bytes_is_not_found_in_a_healthy_log():
    assert recorded_findings(unparsable_bytes, "samples/clean") == []
