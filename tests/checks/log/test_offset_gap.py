"""KA007: offsets that are missing in a log that is not compacted, in a recorded log."""

from kaudit.checks.log.missing_offsets import offset_gap
from tests.checks.findings import recorded_findings


def test_offset_gap_is_found_where_it_was_recorded():
    assert recorded_findings(offset_gap, "samples/damaged/batch-removed") == [("error", "explosion", None, 990)]


def test_offset_gap_is_not_found_in_a_healthy_log():
    assert recorded_findings(offset_gap, "samples/clean") == []
