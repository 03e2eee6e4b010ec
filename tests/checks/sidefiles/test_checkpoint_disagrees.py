"""KA505: offset checkpoints against the ends of the logs."""

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
