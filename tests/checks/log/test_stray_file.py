"""KA011: a file that an interrupted clean-up left, in a recorded log."""

import pytest

from kaudit.checks.log.stray_file import stray_file
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.checks.findings import recorded_findings
from tests.checks.replicas.log_directories import log_directory

TOPIC = "Xq1TzHq6Qn6m2t6m8f3cNA"


def test_stray_file_is_found_where_it_was_recorded():
    assert recorded_findings(stray_file, "samples/damaged/cleaned-leftover") == [("note", "explosion", None, None)]


def test_stray_file_is_not_found_in_a_healthy_log():
    assert recorded_findings(stray_file, "samples/clean") == []


@pytest.mark.parametrize(
    ("kind", "records", "in_use", "severity", "alone"),
    [
        ("stray", 4, None, "warning", (0, 3)),
        ("stray", 4, 0, "warning", (0, 3)),
        ("stray", 4, 3, "warning", (3, 3)),
        ("stray", 4, 4, "note", None),
        ("future", 3, 4, "note", None),
        ("future", 3, None, "note", (0, 2)),
        ("future", 5, 4, "warning", (4, 4)),
        ("delete", 4, None, "note", (0, 3)),
    ],
)
def test_a_directory_set_aside_counts_what_it_alone_holds(tmp_path, kind, records, in_use, severity, alone):
    log_directory(tmp_path / "d1", f"orders-0.{'0' * 32}-{kind}", records=records, topic=TOPIC)
    log_directory(tmp_path / "d1", "users-0")
    if in_use is not None:
        log_directory(tmp_path / "d2", "orders-0", records=in_use, topic=TOPIC)
    found = only(tmp_path)
    assert (found.severity.value, found.evidence.found_nowhere_else) == (severity, alone)
    assert (found.topic, found.partition) == ("orders", 0)
    assert found.impact.records_lost_at_most == (None if severity == "note" else alone[1] - alone[0] + 1)


def test_a_copy_under_another_topic_id_has_nothing_of_it(tmp_path):
    log_directory(tmp_path, f"orders-0.{'0' * 32}-stray", topic=TOPIC)
    log_directory(tmp_path, "orders-0", topic="Zq1TzHq6Qn6m2t6m8f3cNA")
    found = only(tmp_path)
    assert found.evidence.found_nowhere_else == (0, 3)
    assert "of another topic id" in found.message


def test_a_directory_set_aside_is_audited_where_it_is_asked_for(tmp_path):
    name = f"orders-0.{'0' * 32}-stray"
    log_directory(tmp_path, name)
    result = scan(ScanOptions([str(tmp_path / name)]), SilentProgress())
    assert [(each.topic, each.partition, each.log_end_offset) for each in result.partitions] == [("orders", 0, 4)]
    assert result.findings == []


def only(directory, **options):
    """The one finding of the check."""
    result = scan(ScanOptions([str(directory)], **options), SilentProgress())
    (found,) = [each for each in result.findings if each.code == stray_file.code]
    return found


def test_a_directory_of_a_partition_that_is_not_asked_for_is_compared_with_nothing(tmp_path):
    log_directory(tmp_path / "d1", f"orders-0.{'0' * 32}-stray", topic=TOPIC)
    log_directory(tmp_path / "d2", "orders-0", topic=TOPIC)
    log_directory(tmp_path / "d2", "users-0")
    found = only(tmp_path, topics=("users",))
    assert (found.severity.value, found.evidence.found_nowhere_else) == ("note", None)
