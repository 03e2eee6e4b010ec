"""Every attempt of every recording answered as the real broker answered it."""

import json
from pathlib import Path

import pytest

from kaudit.broker.attempts import produce
from kaudit.broker.broker import Broker
from kaudit.broker.partition.record_set import split
from kaudit.replay.session import Session
from tests.conformance.agreement import recordings, write_table
from tests.conformance.comparison import differences, sent_timestamps
from tests.conformance.exclusions import EXCLUSIONS

AGREEING = [recorded for recorded in recordings() if not recorded.differs]


@pytest.mark.parametrize("recorded", AGREEING, ids=lambda recorded: f"{recorded.version}-{recorded.name}")
def test_answers_are_those_of_the_real_broker(recorded, record_property, monkeypatch):
    attempts = recorded.attempts()
    version, name = recorded.version, recorded.name
    lines = [json.dumps(attempt) for attempt in attempts]
    answers = {answer["index"]: answer for answer in recorded.lines("answers")}
    assert len(answers) == len(attempts)
    sent = sent_timestamps(attempts)
    wrong = []
    fast = [answer for _, answer in Session(map(str.encode, lines), Broker()).answered()]
    monkeypatch.setattr(produce, "valid_batch", lambda *_: None)
    checked = [answer for _, answer in Session(map(str.encode, lines), Broker()).answered()]
    for attempt, answer, same in zip(attempts, fast, checked, strict=True):
        # the fast path answers as all the checks do
        assert (answer.fields, answer.why, answer.producer) == (same.fields, same.why, same.producer)
        found = list(differences(attempt, answer.fields, answers[attempt["index"]], sent))
        if found:
            wrong.append((attempt["index"], attempt.get("topic"), attempt["op"], found, answer.why))
    record_property("conformance", f"{version} {name}: {len(attempts) - len(wrong)} of {len(attempts)}")
    print(f"{version} {name}: {len(attempts) - len(wrong)} of {len(attempts)}")  # noqa: T201
    assert wrong == []


def test_the_table_of_agreement_is_as_generated(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "broker-rules.md"
    copy = tmp_path / page.name
    copy.write_text(page.read_text())
    write_table(copy)
    assert copy.read_text() == page.read_text(), "run: python -m tests.conformance.agreement docs/broker-rules.md"


def test_there_are_at_most_ten_exclusions_each_with_a_reason():
    assert len(EXCLUSIONS) + 1 <= 10  # one more for the broker's clock
    assert all(exclusion.reason for exclusion in EXCLUSIONS)


@pytest.mark.parametrize("version", ["1.1.1", "3.9.1", "4.2.0"])
def test_the_acks_0_batch_lies_in_the_log_and_its_retry_does_not(evidence, version):
    """Why the recorded answer to that retry, `appended`, is excluded: the bytes on disk are those sent before."""
    attempts = [json.loads(line) for line in evidence.oracle_lines(version, "main.attempts.jsonl")]
    second = [a for a in attempts if a.get("topic") == "s55-acks-0" and a.get("base_sequence") == 1]
    crcs = {attempt["acks"]: split(bytes.fromhex(attempt["records_hex"])).batches[0].crc for attempt in second}
    log = evidence.oracle(version, "logdir") / "main" / "s55-acks-0-0" / "00000000000000000000.log"
    on_disk = [batch.crc for batch in split(log.read_bytes()).batches]
    assert crcs[0] in on_disk
    assert crcs[-1] not in on_disk
