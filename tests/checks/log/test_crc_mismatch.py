"""KA001: a batch whose CRC fails, in a recorded log."""

from kaudit.checks.log.damage import crc_mismatch
from tests.checks.findings import recorded_findings


def test_crc_mismatch_is_found_where_it_was_recorded():
    assert recorded_findings(crc_mismatch, "samples/damaged/flip-body") == [("error", "explosion", None, 990)]


def test_crc_mismatch_is_not_found_in_a_healthy_log():
    assert recorded_findings(crc_mismatch, "samples/clean") == []
