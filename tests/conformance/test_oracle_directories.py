"""What `scan` finds in the directories of the oracle's brokers, with offsets and severities.

Expected is what the plain reference observes in the batches as a second reader decodes them: neither is kaudit's.
"""

import json
import struct
from pathlib import Path

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.conftest import ORACLE_VERSIONS
from tests.formats.segment_rows import batch_rows
from tests.properties.audit_reference import DAY_MS, Placed, Reference, Written

REPORTED = {
    "sequence/exact": ("KA101", "error"),
    "sequence/same-sequences": ("KA101", "warning"),  # other records: a producer forgotten, or content is lost
    "sequence/gap": ("KA104", "error"),
    "sequence/restart": ("KA105", "note"),  # these brokers may have forgotten the producer
    "sequence/unknown-start": ("KA106", "note"),
    "epoch/bump-nonzero": ("KA202", "error"),
    "epoch/client-bump": ("KA203", "note"),
    "epoch/restart": ("KA203", "note"),
    "epoch/timeout-abort": ("KA203", "note"),
    "epoch/nearly-exhausted": ("KA204", "warning"),
    "state/went-on": ("KA801", "note"),
}
FAMILIES = tuple({code for code, _ in REPORTED.values()} | {"KA102", "KA103", "KA201", "KA205", "KA303"})


def placed_batches(segments: list[Path]) -> list[Written]:
    """The batches of a partition, decoded by the second reader."""
    found, offsets = [], 0
    for segment in segments:
        for row, raw in batch_rows(segment.read_bytes()):
            control = None
            if row["is_control"]:
                # the record's key: version and type; its value ends with the coordinator epoch and no headers
                control = struct.unpack_from(">h", raw, 61 + 7)[0], struct.unpack_from(">i", raw, len(raw) - 5)[0]
            placed = Placed(
                row["base_offset"],
                row["last_offset"],
                row["base_sequence"],
                row["last_sequence"],
                row["record_count"],
                row["crc"],
                row["max_timestamp"],
                offsets,
                row["position"],
                row["size"],
                row["leader_epoch"],
            )
            found.append(Written(row["producer_id"], row["producer_epoch"], row["is_transactional"], control, placed))
            offsets += placed.last_offset - placed.offset + 1
    return found


def expected_of(partition: Path, log_start: int, *, commits_raise_epochs: bool) -> set[tuple[object, ...]]:
    """Code, severity, topic, offset, producer id and epoch; notes of a kind and producer are one, at its first."""
    topic = partition.name.rpartition("-")[0]
    batches = [each for each in placed_batches(sorted(partition.glob("*.log"))) if each.placed.last_offset >= log_start]
    times = {each.placed.offset: each.placed.timestamp for each in batches}
    healthy = {"epoch/restart", "epoch/timeout-abort"} if commits_raise_epochs else set()
    if log_start > 0:
        healthy.add("sequence/unknown-start")  # what came before was deleted
    seen: set[tuple[object, ...]] = set()
    expected: set[tuple[object, ...]] = set()
    for each in Reference().audit(batches).observed:
        if each.explained or each.kind in healthy:
            continue
        found = (topic, each.offset, each.producer_id, each.epoch)
        code, severity = REPORTED[each.kind]
        if severity != "note" or (each.kind, topic, each.producer_id) not in seen:
            expected.add((code, severity, *found))
        seen.add((each.kind, topic, each.producer_id))
        if each.kind == "sequence/restart" and each.before is not None:
            # brokers forgot a producer that was silent for a day, and it shows
            expected |= (
                {("KA801", "warning", *found)} if times[each.offset] - each.before.last_timestamp >= DAY_MS else set()
            )
    return expected


def log_starts(lines: tuple[list[str], list[str]]) -> dict[str, int]:
    """By topic: the log start offset as the broker described it last."""
    attempts, answers = ({line["index"]: line for line in map(json.loads, some)} for some in lines)
    return {
        attempt["topic"]: answers[index]["log_start_offset"]
        for index, attempt in attempts.items()
        if attempt["op"] == "describe" and "log_start_offset" in answers.get(index, {})
    }


@pytest.mark.parametrize("version", ORACLE_VERSIONS)
def test_sequences_and_epochs_of_recorded_directories(evidence, version):
    main = evidence.oracle(version, "logdir") / "main"
    starts = log_starts(tuple(evidence.oracle_lines(version, f"main.{each}.jsonl") for each in ("attempts", "answers")))
    expected = set()
    for partition in sorted(path for path in main.iterdir() if path.is_dir() and not path.name.startswith("__")):
        start = starts.get(partition.name.rpartition("-")[0], 0)
        expected |= expected_of(partition, start, commits_raise_epochs=version == "4.2.0")  # transaction.version 2
    found = {
        (each.code, each.severity.value, each.topic, each.offset, each.producer_id, each.producer_epoch)
        for each in scan(ScanOptions([str(main)]), SilentProgress()).findings
        if each.code in FAMILIES
    }
    assert found == expected
    assert len({code for code, *_ in found}) >= 6


@pytest.mark.parametrize("version", ORACLE_VERSIONS)
def test_transactions_that_recorded_directories_leave_open(evidence, version):
    """An error where the broker described a producer in a transaction at the end; its first offset is the finding's."""
    lines = [evidence.oracle_lines(version, f"main.{each}.jsonl") for each in ("attempts", "answers")]
    attempts, answers = ({line["index"]: line for line in map(json.loads, some)} for some in lines)
    last = {attempt["topic"]: index for index, attempt in attempts.items() if "topic" in attempt}
    described = {
        (topic, each["current_txn_start_offset"], each["producer_id"])
        for topic, index in last.items()
        if attempts[index]["op"] == "describe"
        for each in answers[index].get("producers") or []
        if each["current_txn_start_offset"] >= 0
    }
    main = evidence.oracle(version, "logdir") / "main"
    found = {
        (each.topic, each.offset, each.producer_id): each.severity.value
        for each in scan(ScanOptions([str(main)]), SilentProgress()).findings
        if each.code == "KA301"
    }
    assert described <= found.keys()
    assert set(found.values()) <= {"error"}
    verifies = version in ("3.9.1", "4.2.0")  # KIP-890: what would leave a transaction open is refused
    assert bool(found) is not verifies
