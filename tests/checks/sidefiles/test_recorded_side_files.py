"""Side files that brokers wrote are silent, damaged ones are named at their byte."""

import pytest

from tests.checks.sidefiles.findings import side_file_reports
from tests.conformance.test_captures import EXPECTED
from tests.conftest import ORACLE_VERSIONS


@pytest.mark.parametrize("capture", sorted({capture for capture, *_ in EXPECTED}))
def test_side_files_of_live_stopped_and_killed_brokers_are_silent(evidence, capture):
    for name, directory, *_ in EXPECTED:
        if name == capture:
            assert side_file_reports(evidence.capture(capture) / directory) == []


@pytest.mark.parametrize("version", ORACLE_VERSIONS)
def test_side_files_of_every_version_are_silent(evidence, version):
    """Aborts of every kind are among them, also those without data that brokers up to 2.7 index."""
    logs = evidence.oracle(version, "logdir")
    assert side_file_reports(logs) == []
    assert any(path.stat().st_size for path in logs.rglob("*.txnindex"))


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("snapshot-truncated", ("KA501", "warning", "00000000000000001322.snapshot", 11826)),
        ("snapshot-garbage-version", ("KA501", "warning", "00000000000000001322.snapshot", 0)),
        ("index-garbage", ("KA503", "warning", "00000000000000000662.index", 24)),
        ("missing-index", ("KA503", "note", "00000000000000000662.index", None)),
        ("missing-timeindex", ("KA504", "note", "00000000000000000662.timeindex", None)),
        ("leader-epoch-garbage", ("KA506", "error", "leader-epoch-checkpoint", 2)),
        ("txnindex-truncated", ("KA305", "error", "00000000000000000128.txnindex", 0)),
    ],
)
def test_labelled_damage_is_found_where_it_is_and_nothing_else(evidence, label, expected):
    assert side_file_reports(evidence.capture("torn-writes") / "artificial" / label) == [expected]


@pytest.mark.parametrize(
    "label", ["batch-removed", "flip-base-offset", "flip-body", "flip-length", "zero-hole-4k", "empty-log"]
)
def test_indexes_of_a_damaged_segment_are_no_finding_of_their_own(evidence, label):
    assert side_file_reports(evidence.capture("torn-writes") / "artificial" / label) == []
