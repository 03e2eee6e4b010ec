"""KA008: a segment that is missing between others, in a recorded log."""

from kaudit.checks.log.missing_offsets import missing_segment
from tests.checks.findings import recorded_findings


def test_missing_segment_is_found_where_it_was_recorded():
    assert recorded_findings(missing_segment, "samples/damaged/empty-log") == [("error", "explosion", None, 662)]


def test_missing_segment_is_not_found_in_a_healthy_log():
    assert recorded_findings(missing_segment, "samples/clean") == []
