"""What is said a broker will do, against what a live 2.8.2 broker did with the same damage (broker-verdict/)."""

import json
import re

import pytest

from kaudit.analysis.scan.options import ScanOptions, SilentProgress
from kaudit.engines.local import scan

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


@pytest.mark.parametrize("label", LOG_DAMAGE)
def test_the_broker_did_what_is_said(evidence, label):
    root = evidence.capture("torn-writes")
    verdict = json.loads((root / "broker-verdict" / "verdict.json").read_text())[label]
    sizes = {
        name: int(size)
        for name, size in (entry.rsplit(":", 1) for entry in verdict["files_after"])
        if name.endswith(".log")
    }
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
