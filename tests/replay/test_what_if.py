"""`kaudit replay --on`: what would happen if this producer retried now."""

import json

import pytest

from kaudit.cli.app import run as kaudit


@pytest.fixture
def ask(evidence, tmp_path, capsys):
    """Ask a broker of 3.9.1 that has the recorded log of one scenario."""

    def ask(topic, attempts, *options, version="3.9.1"):
        file = tmp_path / "attempts.jsonl"
        file.write_text("".join(json.dumps(attempt) + "\n" for attempt in attempts))
        on = ["--on", str(evidence.oracle(version, "logdir") / "main"), "--topic", topic, "--partition", "0"]
        code = kaudit(["replay", str(file), "--output-format", "jsonl", "--broker-version", version, *on, *options])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return [json.loads(line) for line in captured.out.splitlines()]

    return ask


def produce(topic, sequence, producer=900001, epoch=0):
    return {
        "topic": topic, "partition": 0, "op": "produce", "producer_id": producer, "producer_epoch": epoch,
        "base_sequence": sequence, "record_count": 1, "api_version": 8, "timestamp": None,
    }  # fmt: skip


def said(answers):
    return [(answer["outcome"], answer.get("base_offset", answer["error_code"])) for answer in answers]


def test_after_a_restart_only_the_last_batch_is_known(ask):
    attempts = [produce("s01-in-order", sequence) for sequence in (7, 6, 8)]
    assert said(ask("s01-in-order", attempts)) == [("duplicate", 7), ("rejected", 45), ("appended", 8)]


def test_with_full_memory_five_are_known(ask):
    attempts = [produce("s01-in-order", sequence) for sequence in (7, 6, 5, 4, 3, 2)]
    assert said(ask("s01-in-order", attempts, "--memory", "full")) == [
        ("duplicate", 7), ("duplicate", 6), ("duplicate", 5), ("duplicate", 4), ("duplicate", 3), ("rejected", 45),
    ]  # fmt: skip


@pytest.mark.parametrize("version", ["1.1.1", "3.9.1"])
def test_the_log_start_of_the_checkpoint_counts(ask, version):
    describe = {"topic": "s23-deleterecords-continue", "partition": 0, "op": "describe"}
    (described,) = ask("s23-deleterecords-continue", [describe], version=version)
    assert described["log_start_offset"] == 5


@pytest.mark.parametrize("version", ["1.1.1", "2.0.1", "2.8.2", "3.9.1", "4.2.0"])
def test_what_a_log_says_of_itself_is_what_its_broker_said_last(ask, evidence, version):
    """High watermark and last stable offset of every recorded topic, read from its files, against its last describe."""
    attempts = [json.loads(line) for line in evidence.oracle_lines(version, "main.attempts.jsonl")]
    answers = [json.loads(line) for line in evidence.oracle_lines(version, "main.answers.jsonl")]
    last = {
        attempt["topic"]: answer
        for attempt, answer in zip(attempts, answers, strict=True)
        if attempt["op"] == "describe"
    }
    for topic in ("s26-txn-commit-abort", "s26b-txn-two-open", "s27-txn-zombie", "s29-hanging", "s44-write-marker"):
        (described,) = ask(topic, [{"topic": topic, "partition": 0, "op": "describe"}], version=version)
        recorded = last[topic]
        for field in ("high_watermark", "last_stable_offset", "log_start_offset", "aborted"):
            assert described[field] == recorded[field], (topic, field)
        known = {producer["producer_id"]: producer for producer in described.get("producers", ())}
        for producer in recorded.get("producers", ()):
            assert known[producer["producer_id"]] == producer


def test_options_of_a_log_need_a_log(tmp_path):
    for options in (["--topic", "t"], ["--memory", "full"], ["--on", str(tmp_path)]):
        assert kaudit(["replay", "-", *options]) == 2
    assert kaudit(["replay", "-", "--on", str(tmp_path), "--topic", "t", "--partition", "0"]) == 2
