"""`kaudit replay` as people and scripts call it."""

import io
import json
import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from kaudit.cli.app import run as kaudit

BROKER = {"index": 0, "op": "broker", "broker_version": "2.0.1", "config": {}}


def produce(index, sequence, **fields):
    attempt = {
        "index": index, "topic": "orders", "partition": 3, "op": "produce", "producer_id": 7, "producer_epoch": 0,
        "base_sequence": sequence, "record_count": 1, "is_transactional": False, "transactional_id": None,
        "acks": -1, "api_version": 6, "timestamp": 1000 + index, "at": 1000 + index,
    }  # fmt: skip
    return attempt | fields


class Result(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(attempts, *options, stdin=None):
        file = tmp_path / "attempts.jsonl"
        lines = attempts if isinstance(attempts, str) else "".join(json.dumps(attempt) + "\n" for attempt in attempts)
        file.write_text(lines)
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = kaudit(["replay", str(file) if stdin is None else "-", *options])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


def answers(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


STORY = [BROKER, produce(1, 0), produce(2, 2), produce(3, 0)]


def test_a_page_is_written_beside_other_formats_and_names_the_command(run, tmp_path):
    page = tmp_path / "replay page.html"
    result = run(STORY, "--broker-version", "1.1.1", "--output-format", f"html:{page}", "--output-format", "jsonl")
    assert result.exit_code == 0
    assert len(answers(result)) == len(STORY)
    text = page.read_text()
    assert "<title>Replay of attempts.jsonl</title>" in text
    assert f"kaudit replay {tmp_path}/attempts.jsonl --broker-version 1.1.1 " in text
    assert "45 OUT_OF_ORDER_SEQUENCE_NUMBER" in text


def test_of_a_bad_file_no_page_is_written(run, tmp_path):
    page = tmp_path / "replay.html"
    result = run([*STORY, {"op": "unknown"}], "--output-format", f"html:{page}")
    assert result.exit_code == 2
    assert not page.exists()


def test_only_a_page_needs_what_writes_pages(tmp_path):
    file = tmp_path / "attempts.jsonl"
    file.write_text("".join(json.dumps(attempt) + "\n" for attempt in STORY))
    code = (
        "import sys; from kaudit.cli.app import run; run(['replay', sys.argv[1]]); "
        "print([name for name in ('jinja2', 'kaudit.simulate.trace', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_jsonl_answers_each_attempt_by_index_with_a_reason(run):
    result = run(STORY, "--output-format", "jsonl")
    assert result.exit_code == 0
    assert [(answer["index"], answer.get("outcome"), answer.get("error_code")) for answer in answers(result)] == [
        (0, None, None),
        (1, "appended", 0),
        (2, "rejected", 45),
        (3, "duplicate", 0),
    ]
    assert answers(result)[2]["why"] == (
        "producer 7 at offset 1 in orders-3: incoming epoch 0, sequence 2, remembered epoch 0, last sequence 0; "
        "it is neither the next sequence nor a remembered batch"
    )


def test_keys_are_sorted(run):
    for line in run(STORY, "--output-format", "jsonl").stdout.splitlines():
        keys = list(json.loads(line))
        assert keys == sorted(keys)


def test_one_json_document(run):
    document = json.loads(run(STORY, "--output-format", "json").stdout)
    assert document["schema"] == "kaudit.replay/1"
    assert [answer["index"] for answer in document["answers"]] == [0, 1, 2, 3]


def test_no_attempts_are_a_valid_document_too(run):
    assert json.loads(run("", "--output-format", "json").stdout) == {"answers": [], "schema": "kaudit.replay/1"}


def test_the_table_explains_what_is_rejected_and_nothing_else(run):
    lines = run(STORY).stdout.splitlines()
    assert len(lines) == 1 + 4 + 1
    assert "45 OUT_OF_ORDER_SEQUENCE_NUMBER" in lines[3]
    assert "remembered epoch 0, last sequence 0" in lines[4]


def test_verbose_json_has_the_state_before_and_after(run):
    state = answers(run(STORY[:2], "--output-format", "jsonl", "-v"))[1]["state"]
    assert state["before"]["batches"] == []
    assert state["after"]["batches"] == [
        {"first_offset": 0, "first_sequence": 0, "last_offset": 0, "last_sequence": 0, "timestamp": 1001}
    ]


def test_another_version_can_be_asked(run):
    attempts = [BROKER, produce(1, 5)]
    assert answers(run(attempts, "--output-format", "jsonl"))[1]["error_code"] == 59
    newer = answers(run(attempts, "--output-format", "jsonl", "--broker-version", "2.5.0"))[1]
    assert newer["outcome"] == "appended"


def test_the_broker_line_may_be_left_out_when_the_version_is_given(run):
    assert answers(run([produce(0, 0)], "--output-format", "jsonl", "--broker-version", "4.2"))[0]["base_offset"] == 0


def test_explain_shows_before_rule_after_and_the_other_versions(run):
    explanation = run([BROKER, produce(1, 5)], "--explain", "1").stdout
    assert "Remembered before, of producer id 7:\n  nothing" in explanation
    assert "Answer: rejected with 59 UNKNOWN_PRODUCER_ID" in explanation
    assert "Remembered afterwards: the same." in explanation
    assert "0.11.0.0 to 0.11.0.3  rejected with 45 OUT_OF_ORDER_SEQUENCE_NUMBER" in explanation
    assert "1.0.0 to 2.4.1        rejected with 59 UNKNOWN_PRODUCER_ID" in explanation
    assert "2.5.0 and later       appended at offset 0" in explanation


def test_explain_without_such_an_attempt(run):
    result = run(STORY, "--explain", "99")
    assert result.exit_code == 2
    assert "no attempt has index 99" in result.stderr


def test_profiles_are_listed_with_the_source_of_each_difference(run):
    listed = run("", "--list-profiles").stdout
    assert "window: 1 -> 5 (KAFKA-5494; recorded on 1.0.0)" in listed
    assert "forgets_on_log_start_advance: yes -> no (KAFKA-7190; recorded on 2.4.0)" in listed


def test_the_same_answers_in_two_formats_and_a_file(run, tmp_path):
    file = tmp_path / "answers.jsonl"
    result = run(STORY, "--output-format", f"jsonl:{file}", "--output-format", "table")
    assert result.exit_code == 0
    assert len(file.read_text().splitlines()) == 4
    assert result.stdout.startswith("  INDEX")


def test_output_names_the_file_of_the_format_without_one(run, tmp_path):
    file = tmp_path / "answers.json"
    assert run(STORY, "--output-format", "json", "-o", str(file)).stdout == ""
    assert len(json.loads(file.read_text())["answers"]) == 4


@pytest.mark.parametrize("place", ["logs/answers.txt", "logs/orders-3/answers.txt", "attempts.jsonl", "logs", "none/a"])
def test_output_goes_nowhere_that_is_read_and_only_where_it_can(run, tmp_path, place):
    (tmp_path / "logs" / "orders-3").mkdir(parents=True)
    (tmp_path / "logs" / "orders-3" / f"{0:020d}.log").write_bytes(b"")
    on = ("--on", tmp_path / "logs", "--topic", "orders", "--partition", "3")
    before = sorted(tmp_path.rglob("*"))
    for output in (("--output", tmp_path / place), ("--output-format", f"jsonl:{tmp_path / place}")):
        result = run([BROKER, produce(1, 0)], *map(str, (*on, *output)))
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert sorted(set(tmp_path.rglob("*")) - {tmp_path / "attempts.jsonl"}) == before


def test_a_device_is_written_to_and_stays_one(run, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run([BROKER, produce(1, 0)], "--output-format", "jsonl", "--output", str(pipe)).exit_code == 0
        assert [json.loads(line)["index"] for line in os.read(reader, 1 << 16).splitlines()] == [0, 1]
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_stdin(run):
    lines = "".join(json.dumps(attempt) + "\n" for attempt in STORY)
    assert len(answers(run("", "--output-format", "jsonl", stdin=lines))) == 4


BAD = {
    "not JSON": ("{", "line 2: expected one JSON object, which breaks at column 2"),
    "no object": ("[]", "line 2: expected a JSON object"),
    "unknown op": ('{"op": "fetch"}', "line 2: expected op to be one of broker, topic, produce"),
    "no op": ("{}", "line 2: expected op to be one of"),
    "missing field": (json.dumps({k: v for k, v in produce(1, 0).items() if k != "producer_id"}), "the field producer_id"),
    "epoch out of range": (json.dumps(produce(1, 0, producer_epoch=32768)), "an integer from -32768 to 32767"),
    "sequence out of range": (json.dumps(produce(1, 2**31)), "base_sequence to be an integer from -2147483648"),
    "boolean for a number": (json.dumps(produce(1, 0, producer_id=True)), "producer_id to be an integer"),
    "fraction": (json.dumps(produce(1, 0.5)), "base_sequence to be an integer"),
    "string for a boolean": (json.dumps(produce(1, 0, is_transactional="no")), "is_transactional to be true or false"),
    "odd hex": (json.dumps(produce(1, 0, records_hex="abc")), "records_hex to be hexadecimal digits"),
    "null": (json.dumps(produce(1, 0, producer_epoch=None)), "the field producer_epoch, or records_hex"),
    "negative partition": (json.dumps(produce(1, 0, partition=-1)), "partition to be an integer from 0"),
    "unknown how": (
        '{"op": "leader_change", "topic": "t", "partition": 0, "how": "gently"}',
        "how to be one of clean, kill9, paused, unclean",
    ),
    "nested": (
        '{"op": "restart", "topic": "t", "partition": 0, "clean": true, "found_on_disk": [{"base_offset": 0}]}',
        "found_on_disk[0].producer_id to be an integer from -9223372036854775808",
    ),
    "deep": ("[" * 100_000, "line 2: expected one JSON object"),
    "configuration": ('{"op": "topic", "topic": "t", "partition": 0, "config": {"max.message.bytes": "much"}}', "max.message.bytes to be a number"),
    "unknown version": ('{"op": "broker", "broker_version": "7.6.0"}', "a known broker version, 4.3.1, 4.4.0, not '7.6.0'"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("output_format", ["table", "jsonl", "json"])
def test_a_bad_line_is_named_and_nothing_is_written(run, tmp_path, line, expected, output_format):
    attempts = json.dumps(BROKER) + "\n" + line + "\n" + json.dumps(produce(2, 0)) + "\n"
    result = run(attempts, "--output-format", output_format)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert expected in result.stderr
    file = tmp_path / "out"
    assert run(attempts, "--output-format", output_format, "-o", str(file)).exit_code == 2
    assert not file.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["attempts.jsonl"]


@pytest.mark.parametrize("line", [produce(0, 0), {"op": "topic", "topic": "t", "partition": 0, "config": {}}])
def test_attempts_before_any_broker(run, line):
    result = run([line])
    assert result.exit_code == 2
    assert "line 1: expected a broker line first, or --broker-version" in result.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--broker-version", "2.0.7"], "nearest known: 2.0.0, 2.0.1, 2.1.0"),
        (["--output-format", "xml"], "expected one of table, jsonl, json"),
        (["--output-format", "json", "--output-format", "jsonl"], "only one can go to stdout"),
        (["--output-format", "json:a", "-o", "b"], "--output needs an --output-format without a file"),
    ],
)
def test_options_that_make_no_sense(run, options, expected):
    result = run(STORY, *options)
    assert result.exit_code == 2
    assert expected in result.stderr


def test_a_file_that_does_not_exist(capsys):
    assert kaudit(["replay", "/nowhere/attempts.jsonl"]) == 2
    assert "/nowhere/attempts.jsonl" in capsys.readouterr().err


def test_a_version_is_compared_with_its_neighbours(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert kaudit(["explain", "--broker-version", "2.0.1"]) == 0
    explanation = capsys.readouterr().out
    before, after = explanation.split("Changed again in 2.1.0:")
    assert "Different from 1.1.0 to 2.0.0 before:" in before
    assert (
        "  marker_only_nonzero_error: 45 OUT_OF_ORDER_SEQUENCE_NUMBER -> 59 UNKNOWN_PRODUCER_ID (KAFKA-7298; recorded on 2.0.1)\n"
        "    the error for a sequence other than 0 when only a marker of the current epoch is remembered\n"
    ) in before
    assert "empty_control_batch_is_fatal: yes -> no (KAFKA-7467; from a ticket, not recorded)" in before
    assert "needs_transactional_id: no -> yes" in after


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--broker-version", "9.0"], "nearest known: 4.3.1, 4.4.0"),
        ([], "say what to explain: a check, a bug, an error, a term, a line of a log, or --broker-version"),
        (
            ["KA101", "--broker-version", "2.0.1"],
            "say what to explain: a check, a bug, an error, a term, a line of a log, or --broker-version",
        ),
    ],
)
def test_what_cannot_be_explained(capsys, arguments, expected):
    assert kaudit(["explain", *arguments]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("columns", [80, 140])
def test_a_terminal_is_not_overrun(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for options in ([], ["--explain", "2"]):
        assert max(map(len, run(STORY, *options).stdout.splitlines())) <= columns


def test_names_from_attempts_are_neither_markup_nor_control_characters(run):
    nasty = produce(1, 1, topic="[red]x[/red]\x1b[2J\u202e")
    for output in (run([BROKER, nasty]).stdout, run([BROKER, nasty], "--explain", "1").stdout):
        assert "[red]x[/red]" in output
        assert "\x1b" not in output
        assert "\u202e" not in output
    in_json = run([BROKER, nasty], "--output-format", "jsonl").stdout
    assert "\x1b" not in in_json
    assert "\\u001b" in in_json


def test_lines_may_be_empty_and_fields_unknown(run):
    lines = json.dumps(BROKER) + "\n\n  \n" + json.dumps(produce(1, 0, note="kept")) + "\n"
    assert [answer["index"] for answer in answers(run(lines, "--output-format", "jsonl"))] == [0, 1]


def test_attempts_without_index_are_numbered(run):
    without = [{k: v for k, v in attempt.items() if k != "index"} for attempt in STORY]
    assert [answer["index"] for answer in answers(run(without, "--output-format", "jsonl"))] == [0, 1, 2, 3]


def test_an_unknown_key_of_tamper_ends_the_run_with_its_line(run):
    restart = {"op": "restart", "topic": "orders", "partition": 3, "clean": False, "tamper": {"torn_offset": 1}}
    result = run([*STORY[:2], restart])
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        "line 3: expected a known key in place of tamper.torn_offset, torn_batch_offset is one; known are"
        in result.stderr
    )


def test_configuration_nobody_reads_is_reported_once_with_the_name_that_may_have_been_meant(run):
    broker = BROKER | {"config": {"producer.id.expiration.msec": "1", "num.io.threads": "8"}}
    topic = {
        "op": "topic",
        "topic": "orders",
        "partition": 3,
        "config": {"cleanup.polcy": "compact", "segment.ms": "1"},
    }
    result = run([broker, topic, topic, produce(1, 0)])
    assert result.exit_code == 0
    lines = [line.partition("configuration ")[2] for line in result.stderr.splitlines()]
    assert lines == [
        "producer.id.expiration.msec is not used by replay; producer.id.expiration.ms is",
        "num.io.threads is not used by replay",
        "cleanup.polcy is not used by replay; cleanup.policy is",
        "segment.ms is not used by replay",
    ]
