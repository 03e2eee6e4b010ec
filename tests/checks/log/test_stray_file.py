"""KA011: a file that an interrupted clean-up left, in a recorded log."""

from kaudit.checks.log.stray_file import stray_file
from tests.checks.findings import recorded_findings


def test_stray_file_is_found_where_it_was_recorded():
    assert recorded_findings(stray_file, "samples/damaged/cleaned-leftover") == [("note", "explosion", None, None)]


def test_stray_file_is_not_found_in_a_healthy_log():
    assert recorded_findings(stray_file, "samples/clean") == []
