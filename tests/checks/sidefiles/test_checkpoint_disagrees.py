"""KA505: offset checkpoints against the ends of the logs."""

import os

import pytest

from tests.checks.sidefiles.findings import side_findings, two_epochs


@pytest.mark.parametrize(
    ("name", "offset", "codes"),
    [
        ("recovery-point-offset-checkpoint", 10, []),
        ("recovery-point-offset-checkpoint", 0, []),
        ("recovery-point-offset-checkpoint", 11, ["KA505"]),
        ("replication-offset-checkpoint", 25, ["KA505"]),
        ("cleaner-offset-checkpoint", 11, ["KA505"]),
    ],
)
def test_checkpoints_may_lag_but_not_lead(tmp_path, name, offset, codes):
    two_epochs(tmp_path)
    (tmp_path / "b" / name).write_text(f"0\n2\nt 0 {offset}\nother 3 99\n")
    found = side_findings(tmp_path / "b")
    assert [entry.code for entry in found] == codes
    for entry in found:
        assert (entry.file, entry.offset, entry.last_offset) == (name, 10, offset - 1)


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"])
@pytest.mark.parametrize(
    ("apart", "stopped", "severity", "shown"),
    [
        (0, False, "warning", None),
        (59, False, "warning", None),  # tools that keep no times write files in any order
        (-3600, False, "warning", None),  # copied from a live broker, the checkpoint last
        (3600, False, "error", "the last segment was written 3,600 s after it"),
        (0, True, "error", ".kafka_cleanshutdown shows that the broker had been shut down"),
        (-3600, True, "error", ".kafka_cleanshutdown shows that the broker had been shut down"),
    ],
)
def test_a_checkpoint_that_is_not_younger_than_the_log_proves_a_loss(tmp_path, name, apart, stopped, severity, shown):
    """Checkpoints are never beyond the end of the log when they are written (ReplicaManager, LogManager)."""
    two_epochs(tmp_path)
    file = tmp_path / "b" / name
    file.write_text("0\n1\nt 0 15\n")
    if stopped:
        (tmp_path / "b" / ".kafka_cleanshutdown").touch()
    written = 1_700_000_000
    os.utime(file, (written, written))
    for segment in (tmp_path / "b").glob("t-0/*.log"):
        os.utime(segment, (written + apart, written + apart))
    (found,) = side_findings(tmp_path / "b")
    assert (found.code, found.severity.value, found.offset, found.last_offset) == ("KA505", severity, 10, 14)
    assert found.evidence["not_copied_later"] == shown
    assert [each.innocent for each in found.explanations] == [False, shown is None]


def test_an_unparsable_checkpoint_is_one_finding_of_its_log_directory(tmp_path):
    two_epochs(tmp_path)
    (tmp_path / "b" / "replication-offset-checkpoint").write_text("0\n7\nt 0 5\n")
    (found,) = side_findings(tmp_path / "b")
    assert (found.code, found.topic, found.file) == ("KA505", None, "replication-offset-checkpoint")
    assert "offline" in found.evidence["broker"]


@pytest.mark.parametrize(("start", "expected"), [(9, []), (10, []), (25, [("KA505", "error", 10, 24, 10)])])
def test_a_log_start_beyond_the_end_empties_the_log(tmp_path, start, expected):
    """UnifiedLog removes all segments and begins at the checkpoint's offset (LogLoader.load)."""
    two_epochs(tmp_path)
    (tmp_path / "b" / "log-start-offset-checkpoint").write_text(f"0\n1\nt 0 {start}\n")
    assert [
        (found.code, found.severity.value, found.offset, found.last_offset, found.impact.records_lost_at_most)
        for found in side_findings(tmp_path / "b")
    ] == expected
