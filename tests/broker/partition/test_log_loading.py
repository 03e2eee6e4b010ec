"""What is said a broker will do, against what a live 2.8.2 broker did with the same damage (broker-verdict/)."""

import json
import re

import pytest

from kaudit.analysis.scan.options import ScanOptions, SilentProgress
from kaudit.engines.local import scan
from kaudit.model.impact import Impact
from kaudit.model.total_impact import total_impact

LOG_DAMAGE = (
    "batch-removed",
    "empty-log",
    "flip-base-offset",
    "flip-base-sequence",
    "flip-body",
    "flip-crc-field",
    "flip-leader-epoch",
    "flip-length",
    "flip-magic",
    "garbage-512-tail",
    "truncate-batch-boundary-closed",
    "truncate-mid-batch-active",
    "zero-hole-4k",
    "zero-tail-active",
)


def recovered(root, label):
    """What the live broker made of this damage, and the sizes of the segments after that."""
    verdict = json.loads((root / "broker-verdict" / "verdict.json").read_text())[label]
    files = (entry.rsplit(":", 1) for entry in verdict["files_after"])
    return verdict, {name: int(size) for name, size in files if name.endswith(".log")}


@pytest.mark.parametrize("label", LOG_DAMAGE)
def test_the_broker_did_what_is_said(evidence, label):
    root = evidence.capture("torn-writes")
    verdict, sizes = recovered(root, label)
    deleted = sum(entry.split(":")[0].endswith(".log.deleted") for entry in verdict["files_after"])
    result = scan(ScanOptions([str(root / "artificial" / label)]), SilentProgress())
    (found,) = [entry for entry in result.findings if entry.code.startswith("KA0") and entry.code != "KA011"]
    said = found.evidence["broker"]
    assert isinstance(said, str)
    segment = root / "artificial" / label / "explosion-0" / found.segment
    if "not notice" in said:
        assert sizes[found.segment] == segment.stat().st_size
        assert deleted == 0
        return
    assert sizes[found.segment] == found.position
    told = re.search(r"deletes (\d+) later", said)
    assert (int(told[1]) if told else 0) == deleted


@pytest.mark.parametrize("label", [label for label in LOG_DAMAGE if label != "zero-tail-active"])
def test_the_broker_cut_off_as_many_bytes_as_are_said(evidence, label):
    root = evidence.capture("torn-writes")
    _, after = recovered(root, label)
    before = sum(path.stat().st_size for path in (root / "artificial" / label / "explosion-0").glob("*.log"))
    result = scan(ScanOptions([str(root / "artificial" / label)]), SilentProgress())
    assert (total_impact(result.findings).bytes_truncated or 0) == before - sum(after.values())


def test_zeros_of_a_preallocated_segment_cost_nothing(evidence):
    result = scan(ScanOptions([str(evidence.capture("torn-writes") / "artificial/zero-tail-active")]), SilentProgress())
    (zeros,) = [found for found in result.findings if found.code == "KA004"]
    assert zeros.impact == Impact()
