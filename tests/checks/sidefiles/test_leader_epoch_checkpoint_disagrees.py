"""KA506: leader-epoch-checkpoint against the batches."""

import pytest

from tests.checks.sidefiles.findings import side_findings, two_epochs


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        ("3 0\n7 6\n", []),
        ("3 0\n5 6\n7 6\n", []),  # epoch 5 led and wrote nothing
        ("3 4\n7 6\n", []),  # cut with the log's start
        ("3 0\n7 6\n9 10\n", []),  # elected, nothing written yet
        ("3 0\n7 5\n", ["KA506"]),
        ("3 0\n7 7\n", ["KA506"]),
        ("3 0\n", ["KA506"]),
        ("4 0\n7 6\n", ["KA506"]),
        ("7 0\n3 6\n", ["KA506"]),
    ],
)
def test_leader_epochs_against_the_batches(tmp_path, rows, codes):
    directory = two_epochs(tmp_path)
    (directory / "leader-epoch-checkpoint").write_text(f"0\n{rows.count(chr(10))}\n{rows}")
    assert [found.code for found in side_findings(directory)] == codes
