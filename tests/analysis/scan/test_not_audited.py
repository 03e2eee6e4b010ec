"""What a scan says it could not check."""

import shutil
from pathlib import Path

from kaudit.analysis.scan.options import ScanOptions, SilentProgress
from kaudit.engines.local import scan

SAMPLES = Path(__file__).parents[3] / "samples"
NO_COORDINATOR = "open transactions could not be compared with their coordinator: no __transaction_state "


def without_coordinator(*paths):
    result = scan(ScanOptions([str(path) for path in paths]), SilentProgress())
    return [
        (entry.path, entry.reason.removeprefix(NO_COORDINATOR))
        for entry in result.not_audited
        if entry.reason.startswith(NO_COORDINATOR)
    ]


def copied(sample, target):
    """Copy a sample without its __transaction_state."""
    return shutil.copytree(SAMPLES / sample, target, ignore=shutil.ignore_patterns("__transaction_state-*"))


def test_of_one_cluster_the_coordinators_log_is_not_among_the_inputs(tmp_path):
    one = copied("open-transaction", tmp_path / "one")
    assert without_coordinator(one) == [("tx-a-1 and 1 more", "among the inputs")]
    assert without_coordinator(SAMPLES / "open-transaction") == []


def test_of_several_clusters_it_is_said_which_one_lacks_it(tmp_path):
    """The two samples are of two clusters by their meta.properties."""
    one, two = copied("open-transaction", tmp_path / "one"), copied("hanging-transaction", tmp_path / "two")
    assert without_coordinator(one, SAMPLES / "hanging-transaction") == [("tx-a-1 and 1 more", f"in {one}")]
    assert {reason for _, reason in without_coordinator(one, two)} == {f"in {one}", f"in {two}"}
