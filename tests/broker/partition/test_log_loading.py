"""What is said a broker will do, against what a live 2.8.2 broker did with the same damage (broker-verdict/)."""

import json
import re

import pytest

from kaudit.broker.partition.log_loading import file_effect, loading_effect, truncates
from kaudit.broker.releases.version import Version
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.damage import DamageKind, LogDamage
from kaudit.model.impact import Impact
from kaudit.model.total_impact import total_impact
from kaudit.scanning.options import ScanOptions

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
    beside = ("KA011", "KA014")  # of files beside the segments
    (found,) = [entry for entry in result.findings if entry.code.startswith("KA0") and entry.code not in beside]
    said = found.evidence["broker"]
    assert isinstance(said, str)
    segment = root / "artificial" / label / "explosion-0" / found.segment
    if "not notice" in said:
        assert sizes[found.segment] == segment.stat().st_size
        assert deleted == 0
        return
    assert sizes[found.segment] == found.position
    deletion = re.search(r"deletes (\d+) later", said)
    assert (int(deletion[1]) if deletion else 0) == deleted


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


TRUNCATES = "after an unclean stop, from the recovery point on, truncates the log at byte 100"
GOES_ON = "does not notice when it loads the log, and goes on from the last batch's offset"


def damage(kind, detail="", *, resynchronised=True):
    return LogDamage(kind, 100, 200, resynchronised, detail)


@pytest.mark.parametrize(
    ("found", "later", "version", "said"),
    [
        (damage(DamageKind.CRC_MISMATCH), 0, None, f"{TRUNCATES}; after a clean stop it does not look"),
        (damage(DamageKind.CRC_MISMATCH), 1, None, f"{TRUNCATES} and deletes 1 later segment; after"),
        (damage(DamageKind.TORN, resynchronised=False), 2, None, f"{TRUNCATES} and deletes 2 later segments; after"),
        (damage(DamageKind.ZEROS, resynchronised=False), 0, None, "cuts the zeros off"),
        (damage(DamageKind.ZEROS, resynchronised=False), 1, None, f"{TRUNCATES} and deletes 1 later segment; after"),
        (damage(DamageKind.ZEROS), 0, None, TRUNCATES),
        (damage(DamageKind.OUT_OF_ORDER), 1, None, GOES_ON),
        (damage(DamageKind.UNPARSABLE, "unknown magic 5"), 0, None, "up to 2.8 does not notice"),
        (damage(DamageKind.UNPARSABLE, "unknown magic 5"), 0, "3.9.2", "does not notice"),
        (damage(DamageKind.UNPARSABLE, "unknown magic 5"), 0, "4.0.0", "up to 3.9 does not notice"),
        (damage(DamageKind.UNPARSABLE, "unknown magic 5", resynchronised=False), 0, None, TRUNCATES),
        (damage(DamageKind.UNPARSABLE, "a length of -5"), 0, None, TRUNCATES),
    ],
)
def test_what_is_said_of_damage(found, later, version, said):
    """As in broker-verdict/: LogSegment.recover stops at the first batch that is not valid."""
    asked = None if version is None else Version.parse(version)
    verdict = loading_effect(found, later, was_batch=True, version=asked)
    assert verdict.startswith(said)
    assert truncates(found, was_batch=True) == (verdict.startswith((TRUNCATES, "cuts")))


@pytest.mark.parametrize(
    ("version", "recovery"),
    [
        (None, "empties the segment and deletes later ones (up to 2.2 does not start)"),
        ("2.0.1", "does not start"),
        ("2.5.1", "empties the segment and deletes later ones"),
        ("2.8.2", "empties the segment and deletes later ones"),
        ("4.4.0", "empties the segment and deletes later ones"),
    ],
)
def test_what_is_said_of_offsets_that_go_back(version, recovery):
    """As live brokers did after kill -9 with 9 of 20 batches of 670 bytes appended again (KAFKA-3919)."""
    asked = None if version is None else Version.parse(version)
    said = loading_effect(damage(DamageKind.OUT_OF_ORDER), 0, was_batch=True, version=asked)
    assert said.startswith(GOES_ON)
    assert said.endswith(f"recovery after an unclean stop {recovery}")


def test_an_unknown_magic_is_a_batch_only_where_offsets_are_missing():
    found = damage(DamageKind.UNPARSABLE, "unknown magic 5")
    assert truncates(found, was_batch=False)
    assert loading_effect(found, 0, was_batch=False).startswith(TRUNCATES)


@pytest.mark.parametrize(
    ("name", "version", "said"),
    [
        ("00000000000000000000.index", "2.2.2", "checks it at every start"),
        ("00000000000000000000.timeindex", "2.2.2", "checks it at every start"),
        ("00000000000000000000.index", "2.3.0", "after an unclean stop, from the recovery point on, rebuilds it"),
        ("00000000000000000000.index", None, "after an unclean stop, from the recovery point on, rebuilds it"),
        ("leader-epoch-checkpoint", "0.11.0.3", "does not start"),
        ("leader-epoch-checkpoint", "1.0.0", "fails the whole log directory"),
        ("leader-epoch-checkpoint", None, "fails the whole log directory"),
        ("replication-offset-checkpoint", "0.11.0.3", "does not start"),
        ("replication-offset-checkpoint", "1.0.0", "takes the log directory offline"),
        ("recovery-point-offset-checkpoint", "0.11.0.3", "warns and recovers every segment"),
        ("00000000000000000007.snapshot", "3.9.1", "drops it"),
        ("00000000000000000007.txnindex", "3.9.1", "rebuilds it when it recovers the segment"),
    ],
)
def test_what_is_said_of_files_beside_the_log(name, version, said):
    """KAFKA-7283: from 2.3 on indexes are not checked at start. KIP-112: from 1.0 on a directory fails by itself."""
    verdict = file_effect(name, None if version is None else Version.parse(version))
    assert verdict is not None
    assert verdict.startswith(said)
    assert ("after a clean stop" in verdict) == (name.endswith("index") and "txn" not in name and version != "2.2.2")


def test_of_other_files_nothing_is_said():
    assert file_effect("meta.properties") is None
