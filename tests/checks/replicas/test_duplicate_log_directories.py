"""KA605: one partition on two disks of one broker."""

from kaudit.checks.replicas.identities import duplicate_log_directories
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.checks.findings import recorded_findings
from tests.checks.replicas.log_directories import log_directory


def test_duplicate_log_directories_are_found_and_the_newest_leader_is_named(tmp_path):
    log_directory(tmp_path / "d1", cluster="A", disk="one", records=9)
    log_directory(tmp_path / "d2", cluster="A", disk="two", records=3, leader_epoch=5)
    result = scan(ScanOptions([str(tmp_path)]), SilentProgress())
    (found,) = [each for each in result.findings if each.code == duplicate_log_directories.code]
    assert (found.severity.value, found.topic, found.partition, found.replica) == ("error", "orders", 0, "d2")
    assert "d2 (offsets 0..2, leader epoch 5) and d1 (offsets 0..8, leader epoch 0)" in found.message
    assert found.message.endswith("though d1 has more records: keep both until other replicas are compared")
    assert found.evidence.to_dict()["end_offsets"] == {"d2": 3, "d1": 9}


def test_a_text_that_quotes_the_brokers_words_is_no_other_finding(tmp_path):
    for number, disk in enumerate(("one", "two", "three")):
        log_directory(tmp_path / f"d{number}", f"orders-{number % 2}", cluster="A", disk=disk)
    text = tmp_path / "README"
    text.write_text(
        'The broker says: "Duplicate log directories for orders-0 are found in both /d0 and /d2. It is likely because ..."\n'
    )
    result = scan(ScanOptions([str(tmp_path)], server_logs=[str(text)]), SilentProgress())
    assert [each.code for each in result.findings if each.severity.value == "error"] == ["KA605"]
    # of another partition nothing else is known
    text.write_text(text.read_text().replace("orders-0", "orders-1"))
    result = scan(ScanOptions([str(tmp_path)], server_logs=[str(text)]), SilentProgress())
    assert sorted(each.code for each in result.findings if each.severity.value == "error") == ["KA605", "KA815"]


def test_duplicate_log_directories_are_not_found_where_one_is_set_aside_or_another_brokers(tmp_path):
    log_directory(tmp_path / "d1", cluster="A", disk="one")
    log_directory(tmp_path / "d2", f"orders-0.{'0' * 32}-future", cluster="A", disk="two", records=2)
    log_directory(tmp_path / "d3", cluster="A", disk="three", broker=2)
    assert recorded_findings(duplicate_log_directories, str(tmp_path)) == []
