"""What inspect says a broker does with damage, against what a live 2.8.2 broker did with it (broker-verdict/)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kaudit.broker.releases.version import Version
from kaudit.inspect.walk import InspectOptions, inspect_rows
from tests.cli.conftest import kaudit, plain_environment  # noqa: F401 - fixtures

TRUNCATED = (
    "flip-length",
    "garbage-512-tail",
    "truncate-mid-batch-active",
    "zero-hole-4k",
    "flip-magic",
    "zero-tail-active",
)


def read_rows(path: Path) -> list[dict[str, Any]]:
    return list(inspect_rows(InspectOptions([str(path)]), batches=True))


def damages(directory):
    rows = inspect_rows(InspectOptions([str(directory)], records=True), batches=True)
    return [row for row in rows if row["row"] == "damage"]


@pytest.mark.parametrize("label", TRUNCATED)
def test_segments(evidence, label):
    root = evidence.capture("torn-writes")
    verdict = json.loads((root / "broker-verdict" / "verdict.json").read_text())[label]
    sizes = dict(entry.rsplit(":", 1) for entry in verdict["files_after"])
    deleted = sum(name.endswith(".log.deleted") for name in sizes)
    (row,) = damages(root / "artificial" / label)
    if "not notice" in row["broker"]:
        assert label == "flip-magic"
        assert deleted == 0
        return
    assert int(sizes[row["segment"]]) == row["position"]
    deletion = re.search(r"deletes (\d+) later", row["broker"])
    assert (int(deletion[1]) if deletion else 0) == deleted


@pytest.mark.parametrize(
    ("label", "verdict"),
    [("snapshot-garbage-version", "drops it"), ("leader-epoch-garbage", "fails the whole log directory")],
)
def test_side_files(evidence, label, verdict):
    root = evidence.capture("torn-writes")
    said = [
        row["broker"]
        for path in sorted((root / "artificial" / label / "explosion-0").iterdir())
        for row in inspect_rows(InspectOptions([str(path)]), batches=False)
        if row["row"] == "damage" and path.stat().st_size
    ]
    assert len(said) == 1
    assert verdict in str(said[0])


@pytest.mark.parametrize(
    ("name", "version", "verdict"),
    [
        ("00000000000000000000.index", "2.2.2", "checks it at every start"),
        ("00000000000000000000.timeindex", "2.2.2", "checks it at every start"),
        ("00000000000000000000.index", "2.3.0", "after a clean stop reads it as it is"),
        ("00000000000000000000.index", "4.3.1", "after a clean stop reads it as it is"),
        ("00000000000000000000.index", None, "up to 2.2"),
        ("leader-epoch-checkpoint", "0.11.0.3", "does not start"),
        ("leader-epoch-checkpoint", "1.0.0", "fails the whole log directory"),
        ("leader-epoch-checkpoint", None, "fails the whole log directory"),
        ("00000000000000000000.snapshot", "2.0.1", "drops it"),
    ],
)
def test_a_file_that_cannot_be_read_by_version(tmp_path, name, version, verdict):
    """What differs: LogSegment.sanityCheck of 2.2.2 and 2.3.1 (KAFKA-7283), and a failing directory before KIP-112."""
    path = tmp_path / "orders-0" / name
    path.parent.mkdir()
    path.write_bytes(b"\x00\x09\xffgarbage\n!?")
    version = None if version is None else Version.parse(version)
    rows = list(inspect_rows(InspectOptions([str(path)], version=version), batches=False))
    assert [verdict in str(row["broker"]) for row in rows if row["row"] == "damage"] == [True]


def test_a_magic_from_the_future_by_version(evidence):
    directory = evidence.capture("torn-writes") / "artificial" / "flip-magic"

    def said(version):
        (row,) = [
            row
            for row in inspect_rows(InspectOptions([str(directory)], version=version), batches=True)
            if row["row"] == "damage"
        ]
        return row["broker"]

    assert said(Version.parse("2.8.2")).startswith("does not notice")
    assert said(None).startswith("up to 2.8 does not notice")
    assert said(Version.parse("4.2.0")).startswith("up to 3.9 does not notice")


def test_the_option(kaudit, tmp_path):  # noqa: F811
    path = tmp_path / "orders-0" / "00000000000000000000.index"
    path.parent.mkdir()
    path.write_bytes(bytes(13))
    shown = kaudit("inspect", path, "--output-format", "jsonl", "--broker-version", "2.0.1")
    assert shown.code == 0
    assert "checks it at every start" in json.loads(shown.out.splitlines()[-1])["broker"]
    wrong = kaudit("inspect", path, "--broker-version", "0.8")
    assert (wrong.code, wrong.out) == (2, "")
    assert "--broker-version 0.8" in wrong.err


@pytest.mark.parametrize("label", ["flip-length", "flip-magic", "zero-hole-4k", "truncate-mid-batch-active"])
def test_the_offsets_lost_are_those_the_undamaged_segment_has_there(evidence, label):
    """Of the source each damage was made from: the batches that lie where it is now."""
    (row,) = damages(evidence.capture("torn-writes") / "artificial" / label)
    whole = evidence.capture("cross-session") / "logdirs" / "b1" / "explosion-0" / row["segment"]
    there = [
        batch
        for batch in read_rows(whole)
        if batch["position"] + batch["size"] > row["position"] and batch["position"] < row["end"]
    ]
    assert row["first_missing_offset"] == there[0]["base_offset"]
    assert row["last_missing_offset"] == (there[-1]["last_offset"] if row["resynchronised"] else None)


@pytest.mark.parametrize("label", ["garbage-512-tail", "zero-tail-active"])
def test_no_offset_is_lost_behind_the_last_batch(evidence, label):
    (row,) = damages(evidence.capture("torn-writes") / "artificial" / label)
    assert (row["first_missing_offset"], row["last_missing_offset"]) == (None, None)
