"""Bad input is normal input: a finding or one clear line, never a traceback, a hang, unbounded memory or a write."""

import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.logs import Log, data


def run(*paths: Path, **options: object):
    return scan(ScanOptions([str(path) for path in paths], **options), SilentProgress())  # type: ignore[arg-type]


def healthy(count: int = 20) -> Log:
    log = Log()
    for sequence in range(count):
        log.append(data(7, 0, sequence, payload=b"payload %03d" % sequence))
    return log


def codes(result) -> list[tuple[str, str]]:
    return [(found.code, found.severity.value) for found in result.findings]


def test_an_empty_segment_alone_is_silent(tmp_path):
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").touch()
    result = run(tmp_path)
    assert codes(result) == []
    assert result.summary.segments == 1


@pytest.mark.parametrize("name", ["", "t-0"])
def test_a_directory_without_a_log_is_nothing_to_audit(tmp_path, name):
    (tmp_path / name).mkdir(exist_ok=True)
    with pytest.raises(NothingToAuditError, match="no segment"):
        run(tmp_path)


def test_a_path_that_is_not_there_is_usage(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        run(tmp_path / "absent")


def test_a_file_that_is_no_segment_is_said(tmp_path):
    (tmp_path / "notes.txt").write_text("hello, this is no batch at all")
    with pytest.raises(NothingToAuditError, match="no segment file"):
        run(tmp_path / "notes.txt")


def test_random_bytes_named_as_a_segment_are_one_finding(tmp_path):
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(random.Random(3).randbytes(100_000))
    assert codes(run(tmp_path)) == [("KA003", "error")]


@pytest.mark.parametrize("length", [2**31 - 1, -1, -(2**31), 0, 13, 48])
def test_an_impossible_length_loses_one_batch_only(tmp_path, length):
    log = healthy()
    content = bytearray(log.encode())
    at = len(log.batches[0].encode()) * 5
    struct.pack_into(">i", content, at + 8, length)
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(content)
    (finding,) = run(tmp_path).findings
    assert (finding.code, finding.position, finding.offset, finding.last_offset) == ("KA003", at, 5, 5)
    assert [entry["producer_id"] for entry in finding.evidence["consequences"]] == [7]


def test_a_symbolic_link_loop_ends(tmp_path):
    healthy().write(tmp_path / "data" / "t-0")
    (tmp_path / "data" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "data" / "self").symlink_to("self")
    result = run(tmp_path)
    assert result.summary.partitions == 1


def test_an_unreadable_segment_is_named_and_the_rest_audited(tmp_path, monkeypatch):
    healthy().write(tmp_path / "a-0")
    healthy().write(tmp_path / "b-0")
    refused = str(tmp_path / "a-0" / f"{0:020d}.log")
    real = os.open

    def guarded(path, *rest, **more):
        if str(path) == refused:
            raise PermissionError(13, "Permission denied", refused)
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", guarded)
    result = run(tmp_path, jobs=1)
    assert result.incomplete
    assert [(entry.path, entry.unreadable) for entry in result.not_audited if entry.unreadable] == [(refused, True)]
    assert [(found.code, found.severity.value) for found in result.findings] == [("KA012", "warning")]
    assert [entry.batches for entry in result.partitions] == [0, 20]


def test_an_empty_segment_inside_the_one_before_it_ends_no_reading_in_order(tmp_path):
    log = healthy()
    directory = log.write(tmp_path / "t-0")
    path = directory / f"{0:020d}.log"
    whole, size = path.read_bytes(), len(log.batches[0].encode())
    path.write_bytes(whole[size : 2 * size] + whole[:size] + whole[2 * size :])
    (directory / f"{8:020d}.log").touch()
    assert codes(run(tmp_path)) == [("KA006", "error")]
    assert run(tmp_path).summary.batches == 20


def test_a_tail_being_written_is_not_torn(tmp_path, monkeypatch):
    log = healthy()
    directory = log.write(tmp_path / "t-0")
    segment = directory / f"{0:020d}.log"
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-20])
    from kaudit.source import bytes as source

    planned = source.LocalFile.size

    def grown(self):
        return planned(self) + 20

    monkeypatch.setattr(source.LocalFile, "size", grown)
    result = run(tmp_path, jobs=1)
    assert codes(result) == []
    assert any("being written" in entry.reason for entry in result.not_audited)


@pytest.mark.parametrize("cut", [1, 9, 30, 65])
def test_a_torn_tail_is_a_warning_in_the_last_segment_and_an_error_in_a_closed_one(tmp_path, cut):
    log = healthy()
    size = len(log.batches[0].encode())
    directory = log.write(tmp_path / "t-0", segment_starts=(10,))
    for name, severity in ((10, "warning"), (0, "error")):
        segment = directory / f"{name:020d}.log"
        whole = segment.read_bytes()
        segment.write_bytes(whole[: -size + cut])
        (finding,) = run(tmp_path).findings
        assert (finding.code, finding.severity.value, finding.position) == ("KA002", severity, len(whole) - size)
        segment.write_bytes(whole)
    assert run(tmp_path).findings == []


def test_an_audit_writes_nothing(tmp_path):
    directory = healthy().write(tmp_path / "t-0")
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.rglob("*")}
    run(tmp_path)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.rglob("*")} == before
    assert directory.exists()


def test_many_partitions_are_found_and_audited(tmp_path):
    content = healthy(2).encode()
    for number in range(600):
        directory = tmp_path / f"t-{number}"
        directory.mkdir()
        (directory / f"{0:020d}.log").write_bytes(content)
    result = run(tmp_path, jobs=2)
    assert result.summary.partitions == 600
    assert result.summary.batches == 1200


def test_a_batch_larger_than_the_window_is_checked_in_pieces(tmp_path):
    log = Log()
    log.append(data(7, 0, 0, payload=b"small"))
    log.append(data(7, 0, 1, payload=b"x" * (9 << 20)))
    log.append(data(7, 0, 2, payload=b"small"))
    directory = log.write(tmp_path / "t-0")
    assert run(tmp_path).findings == []
    segment = directory / f"{0:020d}.log"
    content = bytearray(segment.read_bytes())
    content[5 << 20] ^= 1
    segment.write_bytes(content)
    (finding,) = run(tmp_path).findings
    assert (finding.code, finding.offset, finding.position) == ("KA001", 1, len(log.batches[0].encode()))


def test_zeros_of_every_kind(tmp_path):
    log = healthy()
    size = len(log.batches[0].encode())
    directory = log.write(tmp_path / "t-0", segment_starts=(10,))
    first, last = directory / f"{0:020d}.log", directory / f"{10:020d}.log"
    whole_first, whole_last = first.read_bytes(), last.read_bytes()
    last.write_bytes(whole_last + bytes(5000))
    assert codes(run(tmp_path)) == [("KA004", "note")]
    last.write_bytes(whole_last)
    first.write_bytes(whole_first + bytes(5000))
    assert codes(run(tmp_path)) == [("KA004", "error")]
    hole = bytearray(whole_first)
    hole[2 * size + 30 : 4 * size + 11] = bytes(2 * size - 19)
    first.write_bytes(hole)
    (finding,) = run(tmp_path).findings
    assert (finding.code, finding.offset, finding.last_offset) == ("KA004", 2, 4)
    assert 2 * size + 30 - 8 <= finding.position <= 2 * size + 30
    assert finding.severity is Severity.ERROR


def test_the_command_line_never_shows_a_traceback(tmp_path):
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(random.Random(4).randbytes(5000))
    done = subprocess.run(
        [sys.executable, "-m", "kaudit", "scan", str(tmp_path), "--output-format", "json", "--reproducible"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["findings"][0]["code"] == "KA003"
