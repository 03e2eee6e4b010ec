"""`kaudit simulate` as it is typed."""

import json
import re
import subprocess
import sys

import pytest

from kaudit.cli.app import run
from kaudit.simulate.scenario.reading import ORDER, scenario_text

SOUND = scenario_text("five-in-flight")


def error_of(tmp_path, capsys, text):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    assert run(["simulate", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.removeprefix(f"kaudit: {path}: ").rstrip()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('version = "3.9.1"', 'version = "3.99"', "cluster.version: expected a known release"),
        ('version = "3.9.1"', "brokers = 0", "cluster.brokers: expected an integer from 1 to 9, not 0"),
        ('version = "3.9.1"', "brokers = true", "cluster.brokers: expected an integer from 1 to 9, not true"),
        (
            'version = "3.9.1"',
            "borkers = 1",
            "cluster.borkers: expected no such key, brokers is one; known are brokers,",
        ),
        ('name = "orders"', 'name = "or/ders"', "topics[0].name: expected letters, digits,"),
        ('name = "orders"', "partitions = 1", "topics[0].name: expected a string, not nothing"),
        ('[[topics]]\nname = "orders"\n', "", "topics: expected at least one table, [[topics]]"),
        ("records = 8", "records = -1", "producers[0].records: expected an integer from 1 to"),
        ("records = 8", 'topic = "none"', 'producers[0].topic: expected one of orders, not "none"'),
        ("records = 8", 'client = "java 9"', "producers[0].client: expected a client and its release"),
        ('"linger.ms" = 0', 'acks = "2"', 'producers[0].config.acks: expected one of 0, 1, all, -1, not "2"'),
        (
            '"linger.ms" = 0',
            'acks = "1", "enable.idempotence" = true',
            "producers[0].config.acks: expected all in order to use the idempotent producer",
        ),
        (
            '"linger.ms" = 0',
            '"lingerms" = 0',
            "producers[0].config.lingerms: expected no such key, linger.ms is one; known are acks,",
        ),
        ('"linger.ms" = 0', '"transactional.id" = "t"', "producers[0].transaction: expected a table"),
        ('kind = "lose-response"', 'kind = "explode"', "faults[0].kind: expected one of lose-request,"),
        ("request = 1", "request = 0", "faults[0].request: expected an integer from 1 to"),
        ('producer = "shop"', 'producer = "x"', 'faults[0].producer: expected one of shop, not "x"'),
        ("[[faults]]", "[faults]", "faults: expected at least one table, [[faults]], not"),
        ("seed = 1", "seed = 1\nstarts_at = 5", "starts_at: expected a date with time and zone"),
        ("seed = 1", "seed = 1\nrandom = { request_loss = 2 }", "random.request_loss: expected a number from 0 to 1"),
        ("seed = 1", "seed = 1\nnetwork = { delay_ms = [3, 1] }", "network.delay_ms: expected [low, high], the lower"),
        ("seed = 1", "seed = 1\n[", "expected TOML: "),
        ("seed = 1", 'seed = 1\nduration_ms = "x"', "duration_ms: expected an integer from 1 to"),
    ],
)
def test_a_mistake_is_one_line_with_the_key_and_what_was_expected(tmp_path, capsys, old, new, expected):
    assert old in SOUND
    assert error_of(tmp_path, capsys, SOUND.replace(old, new)).startswith(expected)


def test_hostile_text_in_a_scenario_is_spelled(tmp_path, capsys):
    err = error_of(tmp_path, capsys, SOUND.replace('topic = "', "") + '\n"\\u001b[31m" = 1\n')
    assert "\x1b" not in err


@pytest.mark.parametrize("form", ["terminal", "html", "mermaid", "json"])
def test_every_format_shows_the_run(form, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    assert run(["simulate", "six-in-flight", "--output-format", form]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    if form == "json":
        document = json.loads(out)
        assert document["summary"]["duplicate_copies"] == 6
        assert [record["offsets"] for record in document["records"]][:2] == [[0, 6], [1, 7]]
        return
    assert "OUT_OF_ORDER_SEQUENCE_NUMBER" in out
    assert out.count("seq 0") >= 2
    if form == "html":
        assert out.startswith("<!doctype html>")
        assert "default-src &#39;none&#39;" in out
        assert not re.search(r"https?://|src=", out.replace('"http://www.w3.org/2000/svg"', ""))
    if form == "mermaid":
        assert out.startswith("sequenceDiagram\n    participant P0 as shop\n")
        assert all(line.startswith("    ") for line in out.splitlines()[1:])
    if form == "terminal":
        assert max(map(len, out.splitlines())) <= 90


@pytest.mark.parametrize("columns", ["60", "80", "140"])
@pytest.mark.parametrize("name", ["unclean-election", "zombie-producer", "two-allocators"])
def test_the_ladder_keeps_to_the_terminal(name, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert run(["simulate", name]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= int(columns)


def test_without_a_utf8_terminal_the_ladder_is_ascii(tmp_path):
    command = [sys.executable, "-m", "kaudit", "simulate", "five-in-flight"]
    done = subprocess.run(command, capture_output=True, check=True, env={"PYTHONIOENCODING": "ascii", "PATH": ""})
    assert done.stdout.isascii()
    assert b"|---" in done.stdout
    assert b"\\u" not in done.stdout


def test_rows_are_cut_and_counted(capsys):
    assert run(["simulate", "five-in-flight", "--rows", "5"]) == 0
    assert "more messages are not shown (--rows)" in capsys.readouterr().out


def test_colour_is_only_added(capsys):
    assert run(["simulate", "unclean-election", "--color", "never"]) == 0
    plain = capsys.readouterr().out
    assert run(["simulate", "unclean-election", "--color", "always"]) == 0
    coloured = capsys.readouterr().out
    assert coloured != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_the_run_is_written_and_never_over_something(tmp_path, capsys):
    target = tmp_path / "run"
    assert run(["simulate", "cross-session", "-o", str(target), "-q"]) == 0
    assert capsys.readouterr().out == ""
    assert {path.name for path in target.iterdir()} == {
        "broker-1",
        "attempts.jsonl",
        "answers.jsonl",
        "blocks.jsonl",
        "truth.json",
    }
    assert {path.name for path in (target / "broker-1").iterdir()} == {
        "orders-0",
        "meta.properties",
        ".kafka_cleanshutdown",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
    }
    before = (target / "truth.json").read_bytes()
    assert run(["simulate", "cross-session", "-o", str(target)]) == 2
    assert "is not an empty directory" in capsys.readouterr().err
    assert (target / "truth.json").read_bytes() == before


def test_a_sweep_counts_outcomes(capsys):
    assert run(["simulate", "anything", "--sweep", "5", "--seed", "10"]) == 0
    assert "5 runs; in" in capsys.readouterr().out
    assert run(["simulate", "anything", "--sweep", "5", "--seed", "10", "--output-format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["runs"], document["first_seed"], document["outcomes"]["sent"]["runs"]) == (5, 10, 5)
    assert run(["simulate", "anything", "--sweep", "2", "-o", "x"]) == 2


def test_shipped_scenarios_are_listed_and_shown(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # a title is not wrapped
    assert run(["simulate", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(ORDER)
    assert run(["simulate", "six-in-flight", "--show"]) == 0
    assert capsys.readouterr().out == scenario_text("six-in-flight")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "SCENARIO is missing"),
        (["six-in-flihgt"], "near it: six-in-flight"),
        (["none.toml"], "none.toml: No such file or directory"),
        (["six-in-flight", "--output-format", "pdf"], "expected one of terminal, html, mermaid, json"),
    ],
)
def test_usage(arguments, expected, capsys):
    assert run(["simulate", *arguments]) == 2
    assert expected in capsys.readouterr().err
