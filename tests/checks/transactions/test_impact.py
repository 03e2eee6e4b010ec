"""What open transactions keep from consumers, as brokers answered it."""

import json

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.impact import Impact
from kaudit.scanning.options import ScanOptions
from tests.checks.findings import cautions_of, cost_of
from tests.conftest import ORACLE_VERSIONS
from tests.logs import BASE_TIMESTAMP, Log, data, marker


def findings(log, directory, **options):
    """The findings about transactions, by code and offset."""
    result = scan(ScanOptions([str(log.write(directory / "orders-0"))], **options), SilentProgress())
    return {(found.code, found.offset): found for found in result.findings if found.code.startswith("KA3")}


@pytest.mark.parametrize("version", ORACLE_VERSIONS)
def test_the_last_stable_offset_is_what_brokers_answered(version, evidence):
    attempts = [json.loads(line) for line in evidence.oracle_lines(version, "main.attempts.jsonl")]
    answers = {line["index"]: line for line in map(json.loads, evidence.oracle_lines(version, "main.answers.jsonl"))}
    last = {attempt["topic"]: attempt for attempt in attempts if "topic" in attempt}
    described = {topic: answers[attempt["index"]] for topic, attempt in last.items() if attempt["op"] == "describe"}
    held_back = {
        topic: (answer["last_stable_offset"], answer["high_watermark"] - answer["last_stable_offset"])
        for topic, answer in described.items()
        if answer["last_stable_offset"] < answer["high_watermark"]
    }
    verifies = version in ("3.9.1", "4.2.0")  # KIP-890: these refuse the late writes that the others were sent
    assert bool(held_back) is not verifies
    result = scan(ScanOptions([str(evidence.oracle(version, "logdir") / "main")]), SilentProgress())
    found = {
        entry.topic: (entry.impact.last_stable_offset, entry.impact.offsets_invisible)
        for entry in result.findings
        if entry.topic in described and entry.impact.last_stable_offset is not None
    }
    assert found == held_back


def test_only_the_oldest_open_transaction_holds_consumers_back(tmp_path):
    log = Log()
    log.append(data(1, 0, 0, 5))
    log.append(data(2, 0, 0, 3, transactional=True))
    log.append(marker(2, 0))
    first = log.append(data(7, 0, 0, 4, transactional=True))
    second = log.append(data(8, 0, 0, 2, transactional=True))
    log.append(data(1, 0, 5, 6))
    assert (first.base_offset, second.base_offset, log.next_offset) == (9, 13, 21)
    found = findings(log, tmp_path)
    assert cost_of(found["KA302", 9]) == Impact(
        last_stable_offset=9, offsets_invisible=12, invisible_since_timestamp=first.timestamp
    )
    assert cost_of(found["KA302", 13]) == Impact()
    assert cautions_of(found["KA302", 9]) == [("abort", "the transaction of producer 7 epoch 0")]
    assert found["KA302", 13].evidence["broker"] == (
        "the last stable offset already stays at 9, where a transaction of producer 7 is open too"
    )


def test_every_finding_about_the_oldest_transaction_says_it(tmp_path):
    log = Log()
    log.append(data(7, 0, 0, 2, transactional=True))
    log.append(marker(7, 0))
    late = log.append(data(7, 0, 2, 1, transactional=True))
    log.append(data(7, 0, 3, 1))
    cost = Impact(last_stable_offset=3, offsets_invisible=2, invisible_since_timestamp=late.timestamp)
    found = findings(log, tmp_path, now_ms=BASE_TIMESTAMP + 3_600_000)
    assert {place: cost_of(entry) for place, entry in found.items()} == {
        ("KA301", 3): cost,
        ("KA303", 4): cost,
        ("KA304", 3): cost,
    }


def test_a_write_outside_a_transaction_that_ended_later_keeps_nothing_back(tmp_path):
    log = Log()
    log.append(data(7, 0, 0, 2, transactional=True))
    log.append(data(7, 0, 2, 1))
    log.append(marker(7, 0))
    assert {place: cost_of(entry) for place, entry in findings(log, tmp_path).items()} == {("KA303", 2): Impact()}
