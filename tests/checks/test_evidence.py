"""The batches that findings show as evidence are what a second reader finds at that place of the log."""

import struct
from pathlib import Path
from typing import Any

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.finding import Finding
from kaudit.scanning.options import ScanOptions
from tests.formats.segment_rows import batch_rows

SAMPLES = Path(__file__).parents[2] / "samples"
OF_ANOTHER_PRODUCER = {"KA701", "KA702", "KA703", "KA704"}
"""Copies under another producer id, or under none: the batch before is any."""
NO_NEXT = {"KA303"}
BATCH_FIELDS = {"offset": "base_offset", "timestamp": "max_timestamp"}


def rows_of(partition: Path) -> dict[int, dict[str, Any]]:
    """By base offset: the fields of each batch or marker that its segments hold up to the first damage."""
    found: dict[int, dict[str, Any]] = {}
    for segment in sorted(partition.glob("*.log")):
        for row, raw in batch_rows(segment.read_bytes()):
            if row["magic"] < 2:
                continue
            if row["is_control"]:
                row["type"] = {0: "ABORT", 1: "COMMIT"}[struct.unpack_from(">h", raw, 61 + 7)[0]]
                row["coordinator_epoch"] = struct.unpack_from(">i", raw, len(raw) - 5)[0]
            found[row["base_offset"]] = row
    return found


def in_file(sample: Path, finding: Finding) -> Path:
    assert finding.file is not None
    (file,) = [path for path in [sample / finding.file, *sample.glob(f"**/{finding.file}")] if path.exists()][:1]
    return file.parent


def findings_of(name: str) -> list[tuple[Finding, dict[int, dict[str, Any]]]]:
    sample = SAMPLES / name
    found = scan(ScanOptions([str(sample)], jobs=1), SilentProgress()).findings
    return [(each, rows_of(in_file(sample, each))) for each in found if "offending" in each.evidence]


CHECKED = (
    "coordinator",
    "crafted",
    "duplicates",
    "hanging-transaction",
    "open-transaction",
    "producer-ids",
    "retries",
    "zombie",
)


@pytest.mark.parametrize("sample", CHECKED)
def test_each_batch_shown_is_as_it_lies_there(sample):
    for finding, rows in findings_of(sample):
        for name in ("offending", "previous", "next"):
            shown: Any = finding.evidence.get(name)
            if shown is None:
                continue
            row = rows[shown["offset"]]
            there = {field: row[BATCH_FIELDS.get(field, field)] for field in shown}
            if name == "previous" and shown.get("producer_epoch", 0) is None:
                there["producer_epoch"] = None  # a marker has raised the epoch since
            assert dict(shown) == there, (finding.code, name)


@pytest.mark.parametrize("sample", CHECKED)
def test_the_producers_batches_before_and_after_are_its_neighbours(sample):
    for finding, rows in findings_of(sample):
        evidence: Any = finding.evidence
        offset = evidence["offending"]["offset"]
        own = [row for row in rows.values() if row["producer_id"] == finding.producer_id and not row["is_control"]]
        after = [row["base_offset"] for row in own if row["base_offset"] > offset]
        if finding.code not in OF_ANOTHER_PRODUCER | NO_NEXT and "type" not in evidence["offending"]:
            assert evidence.get("next", {}).get("offset") == min(after, default=None), finding.code
        if finding.code not in OF_ANOTHER_PRODUCER and "previous" in evidence:
            assert evidence["previous"]["offset"] in {row["base_offset"] for row in own if row["base_offset"] < offset}
        if "remembered" in evidence:
            window = evidence["remembered"]["window"]
            assert window == [
                {"offset": each["offset"]}
                | {name: rows[each["offset"]][name] for name in ("base_sequence", "last_sequence")}
                for each in window
            ]
            assert len(window) <= 5
            if window:
                assert window[-1]["last_sequence"] == evidence["remembered"]["last_sequence"]


@pytest.mark.parametrize("sample", CHECKED)
def test_a_finding_lies_where_its_batch_does(sample):
    """KA104 lies at the offsets that are missing, where there are any."""
    for finding, rows in findings_of(sample):
        evidence: Any = finding.evidence
        row = rows[evidence["offending"]["offset"]]
        missing = evidence.get("missing_offsets", 0) if finding.code == "KA104" else 0
        place = (
            (row["base_offset"] - missing, row["base_offset"] - 1)
            if missing
            else (row["base_offset"], row["last_offset"])
        )
        several = finding.code in OF_ANOTHER_PRODUCER  # copies of one batch or more
        assert (finding.offset, finding.last_offset if not several else place[1]) == place, finding.code
        if "expected_sequence" in evidence:
            before = evidence["previous"]
            assert evidence["expected_sequence"] == (before["last_sequence"] + 1) % 2**31
            assert evidence["missing_sequences"] == row["base_sequence"] - before["last_sequence"] - 1


def test_the_samples_show_most_checks_of_sequences_and_epochs():
    seen = {finding.code for sample in CHECKED for finding, _ in findings_of(sample)}
    assert seen >= {f"KA10{digit}" for digit in "1234567"} | {f"KA20{digit}" for digit in "123456"}
