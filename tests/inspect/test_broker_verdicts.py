"""What inspect says a broker does with damage, against what a live 2.8.2 broker did with it (broker-verdict/)."""

import json
import re

import pytest

from kaudit.pipeline.inspect.walk import InspectOptions, inspect_rows

TRUNCATED = (
    "flip-length",
    "garbage-512-tail",
    "truncate-mid-batch-active",
    "zero-hole-4k",
    "flip-magic",
    "zero-tail-active",
)


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
    told = re.search(r"deletes (\d+) later", row["broker"])
    assert (int(told[1]) if told else 0) == deleted


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
    assert verdict in said[0]
