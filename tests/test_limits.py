"""What docs/guide.md says of limits is what the code does, and beyond each of them is a finding or one clear line."""

import json
import struct
from pathlib import Path

import crc32c
import pytest
from msgspec.structs import replace

from kaudit.audits.sequences import transition_audit
from kaudit.audits.sidefiles import log_facts
from kaudit.cli import replaying
from kaudit.cli.app import run
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model import limits
from kaudit.model.severity import Status
from kaudit.reading import batch_content
from kaudit.reading.batch_stream import stream_batches
from kaudit.replay import session
from kaudit.report.machine import sarif
from kaudit.report.render_options import RenderOptions
from kaudit.results.selection import first_of_checks
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.source import layout, local
from tests import scan_results
from tests.logs import Log, data
from tests.rendered import scan_text

GUIDE = Path(__file__).parents[1] / "docs" / "guide.md"


def in_words(name):
    number = getattr(limits, name)
    if not name.endswith("_BYTES"):
        return f"{number:,}"
    return f"{number >> 30} GiB" if number % (1 << 30) == 0 else f"{number >> 20} MiB"


def test_the_table_in_the_guide_lists_every_limit_in_their_order():
    section = GUIDE.read_text().partition("## Limits\n")[2].partition("\n## ")[0]
    listed = [row.split("|")[2].strip() for row in section.splitlines() if row.startswith("| ")][1:]
    assert listed == [in_words(name) for name in vars(limits) if name.isupper()]


@pytest.fixture
def directory(tmp_path):
    log = Log()
    for number in range(6):
        log.append(data(7, 0, 3 * number, payload=b"x" * 50))
    return log.write(tmp_path / "orders-0")


def audited(path, **more):
    return scan(ScanOptions([str(path)], jobs=1, **more), SilentProgress())


def test_a_batch_too_long_to_decode(directory, monkeypatch):
    monkeypatch.setattr(batch_content, "MAX_BATCH_BYTES", 100)
    codes = [finding.code for finding in audited(directory, depth=Depth.RECORDS).findings]
    assert codes.count("KA010") == 6
    assert "KA010" not in [finding.code for finding in audited(directory).findings]


def test_a_side_file_too_long_to_compare(directory, monkeypatch):
    (directory / f"{0:020d}.index").write_bytes(bytes(8))
    monkeypatch.setattr(log_facts, "MAX_SIDE_FILE", 7)
    result = audited(directory)
    assert [entry.reason for entry in result.not_audited if entry.unreadable] == [
        "side file of 8 bytes, more than is read"
    ]


def test_a_directory_of_too_many_files(directory, monkeypatch, capsys):
    monkeypatch.setattr(local, "DIRECTORY_ENTRIES", 3)
    for number in range(3):
        (directory / f"other-{number}").touch()
    assert run(["scan", str(directory)]) == 4
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "more than 3 files in one directory" in err


def test_directories_inside_one_another(directory, tmp_path):
    deep = tmp_path / "deep"
    inner = deep.joinpath(*"abcdefghijklmnopqrst")
    inner.parent.mkdir(parents=True)
    directory.rename(inner)
    Log([data(7, 0, 0)]).write(deep / "t-0")
    assert "deeper than 16 directories" in [entry.reason for entry in audited(deep).not_audited]


def test_a_line_of_attempts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(replaying, "ATTEMPT_LINE_BYTES", 1 << 20)
    monkeypatch.setattr(session, "ATTEMPT_LINE_BYTES", 1 << 20)
    path = tmp_path / "attempts.jsonl"
    path.write_text('{"op": "broker", "broker_version": "2.8.2"}\n{"op": "' + "x" * (3 << 20))
    assert run(["replay", str(path)]) == 2
    assert capsys.readouterr().err == f"kaudit: {path}: line 2: expected at most 1 MiB in a line\n"


def test_a_saved_report_and_a_baseline(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(local, "DOCUMENT_BYTES", 1 << 20)
    path = tmp_path / "saved.json"
    path.write_text(json.dumps({"schema": "kaudit.scan/1", "findings": ["x" * (1 << 20)]}))
    assert run(["report", str(path)]) == 2
    assert capsys.readouterr().err == f"kaudit: {path}: cannot be read: more than 1 MiB\n"
    assert run(["scan", str(tmp_path), "--baseline", str(path)]) == 2
    assert capsys.readouterr().err.endswith("cannot be read: more than 1 MiB\n")


def test_more_observations_than_are_kept(directory, monkeypatch):
    monkeypatch.setattr(transition_audit, "MAX_OBSERVATIONS", 2)
    result = audited(directory)
    assert [finding.code for finding in result.findings] == ["KA104", "KA104"]
    assert any("3 more" in entry.reason for entry in result.not_audited), result.not_audited


def test_more_findings_than_a_sarif_log_may_have(monkeypatch):
    monkeypatch.setattr(sarif, "RESULTS_SHOWN", 2)
    result = scan_results.many()
    document = json.loads(scan_text("sarif", result, RenderOptions()))["runs"][0]
    notices = [entry["message"]["text"] for entry in document["invocations"][0]["toolExecutionNotifications"]]
    assert len(document["results"]) == 2
    assert f"{len(result.findings) - 2} more findings, not listed here" in notices


def test_more_findings_of_a_check_than_machines_are_given(tmp_path, monkeypatch, capsys):
    written = Log()
    for sequence in (0, 5, 7, 13, 20, 22):
        written.append(data(7, 0, sequence))
    directory = written.write(tmp_path / "orders-0")
    monkeypatch.setattr("kaudit.cli.request.FINDINGS_OF_CHECK", 2)

    def listed(form, *options):
        assert run(["scan", str(directory), "--output-format", form, *options]) == 1
        return capsys.readouterr().out

    for options, shown in (((), 2), (("--max-findings", "4"), 4)):
        document = json.loads(listed("json", *options))
        summary = document["summary"]
        assert [finding["code"] for finding in document["findings"]] == ["KA104"] * shown
        assert (sum(summary["findings"].values()), summary["omitted"]) == (5, 5 - shown)
        lines = [json.loads(line) for line in listed("jsonl", *options).splitlines()]
        assert [line["fingerprint"] for line in lines if line["type"] == "finding"] == [
            finding["fingerprint"] for finding in document["findings"]
        ]
        assert lines[-1]["summary"] == summary
        assert len(json.loads(listed("sarif", *options))["runs"][0]["results"]) == shown
    assert listed("concise").count("KA104") == 5


def test_every_topic_partition_has_its_own_share_of_listed_findings():
    findings = [
        replace(scan_results.old_duplicate(), partition=partition, offset=offset, status=status)
        for partition in (0, 1)
        for offset, status in ((5, Status.KNOWN), (6, Status.NEW), (7, Status.KNOWN), (8, Status.NEW))
    ]
    kept = first_of_checks(scan_results.scan_result(*findings), 1)
    assert [(finding.partition, finding.offset) for finding in kept.findings] == [(0, 5), (0, 6), (1, 5), (1, 6)]
    assert kept.summary.omitted == 4


def wrong_snapshots(directory, *offsets):
    for offset in offsets:
        body = struct.pack(">iqhiqiqiq", 1, 7, 0, 99, offset - 1, 0, 1_700_000_000_000, -1, -1)
        (directory / f"{offset:020d}.snapshot").write_bytes(struct.pack(">hI", 1, crc32c.crc32c(body)) + body)


def test_more_snapshots_than_are_compared(tmp_path, monkeypatch):
    written = Log()
    for sequence in range(6):
        written.append(data(7, 0, sequence))
    directory = written.write(tmp_path / "orders-0")
    wrong_snapshots(directory, 2, 3, 5, 6)
    codes = [(found.code, found.offset) for found in audited(directory).findings]
    assert codes == [("KA502", offset) for offset in (2, 3, 5, 6)]
    monkeypatch.setattr(layout, "SNAPSHOTS", 3)
    result = audited(directory)
    assert [found.offset for found in result.findings] == [3, 5, 6]
    assert any(
        entry.reason == "older producer snapshots were not compared with the log: 1" for entry in result.not_audited
    )


def test_snapshots_that_differ_take_one_reading_of_the_log(tmp_path, monkeypatch):
    """Each at its own offset, of the producers it names: what is read is the log once, whatever their number."""
    written = Log()
    for number in range(40):
        written.append(data(7 + number % 4, 0, number // 4))
    directory = written.write(tmp_path / "orders-0")
    wrong_snapshots(directory, *range(4, 40, 4))
    read = []

    def stream(*where, **how):
        read.append(where)
        return stream_batches(*where, **how)

    monkeypatch.setattr("kaudit.reading.small_segments.stream_batches", stream)
    findings = audited(directory).findings
    assert [found.offset for found in findings if found.producer_id == 7] == [*range(4, 40, 4)]
    assert len(read) == 1
    replayed = [found.evidence["replayed"] for found in findings if found.producer_id == 7]
    assert [entry["last_sequence"] for entry in replayed] == [*range(9)]
