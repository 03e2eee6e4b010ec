"""KA011: a file that an interrupted clean-up left, in a recorded log."""

import pytest

import kaudit
from kaudit.checks.log.stray_file import stray_file
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.checks.findings import recorded_findings
from tests.checks.replicas.log_directories import log_directory
from tests.live_brokers.accidents.judged import recorded

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


def test_what_two_brokers_set_aside_of_one_topic_is_lost_once(tmp_path):
    for disk in ("d1", "d2"):
        log_directory(tmp_path / disk, f"orders-0.{'0' * 32}-stray", records=4, topic=TOPIC)
        log_directory(tmp_path / disk, "users-0")
    result = scan(ScanOptions([str(tmp_path)]), SilentProgress())
    found = [each for each in result.findings if each.code == stray_file.code]
    assert [each.impact.records_lost_at_most for each in found] == [4, None]
    assert all(each.impact.cautions for each in found)
    assert f"with d1/orders-0.{'0' * 32}-stray it alone holds offsets 0..3" in found[1].message


def test_records_of_a_topic_that_the_controllers_never_had_are_lost_to_consumers():
    """By its producer's acknowledgements and a consumer 80 (truth.json); without the controllers' log nothing shows whether it was deleted."""
    place = recorded("metadata-restored") / "restored"
    found = [each for each in kaudit.scan(place).findings if each.code == stray_file.code]
    assert [(each.impact.records_lost_at_least, each.impact.records_lost_at_most) for each in found] == [
        (80, 80),
        (None, None),
    ]
    assert "put back to an older copy" in found[0].explanations[0].cause


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
