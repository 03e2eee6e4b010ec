"""An output that cannot be written is a sentence with its path and exit 2, whatever the command and the format."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import forked

ROOT = Path(__file__).parents[2]
REPLICAS = ("samples/replicas/b1", "samples/replicas/b2")
ATTEMPTS = '{"op": "broker", "broker_version": "2.8.2"}\n{"op": "wait", "ms": 1, "topic": "t", "partition": 0}\n'
COMMANDS = [
    ("scan", "samples/duplicates", "--output-format", "json", "-o", "{}"),
    ("scan", "samples/duplicates", "--output-format", "sarif:{}"),
    ("scan", "samples/duplicates", "--output-format", "parquet", "-o", "{}"),
    ("timeline", "samples/duplicates", "--output-format", "jsonl:{}"),
    ("producers", "samples/duplicates", "-o", "{}"),
    ("diff", *REPLICAS, "-o", "{}"),
    ("inspect", "samples/duplicates", "--output-format", "jsonl", "-o", "{}"),
    ("inspect", "samples/duplicates", "--output-format", "parquet", "-o", "{}"),
    ("baseline", "create", "samples/duplicates", "--baseline", "{}"),
    ("replay", "attempts", "--output-format", "jsonl", "-o", "{}"),
    ("replay", "attempts", "--output-format", "json:{}"),
    ("simulate", "five-in-flight", "--rows", "1", "--output-format", "json:{}"),
    ("spark-bundle", "-o", "{}"),
]
PLACES = ["/nowhere/out", "/proc/out", "samples/clean/README.md/out", "/tmp/" + "n" * 300]


@pytest.fixture
def arguments(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    (tmp_path / "attempts").write_text(ATTEMPTS, encoding="utf-8")

    def to(command, place):
        words = [word.replace("{}", str(place)) for word in command]
        return [str(tmp_path / word) if word == "attempts" else word for word in words]

    return to


@pytest.mark.parametrize("place", PLACES, ids=["missing", "refused", "below-a-file", "too-long"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "-".join(command[:1] + command[-1:]))
def test_a_place_that_cannot_be(kaudit, arguments, command, place):
    outcome = kaudit(*arguments(command, place))
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert place in outcome.err
    assert "defect" not in outcome.err


@pytest.mark.parametrize("command", COMMANDS[:-1], ids=lambda command: "-".join(command[:1] + command[-1:]))
def test_a_full_disk(arguments, tmp_path, command):
    place = tmp_path / "result"

    def allow_no_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = forked(arguments(command, place), ROOT, {}, stdout=os.devnull, before=allow_no_files)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert f"{place} cannot be written" in done.err or "No usable temporary directory" in done.err
    assert [file.name for file in tmp_path.iterdir()] == ["attempts"]


@pytest.mark.parametrize(
    "command",
    [
        ("scan", "samples/clean"),
        ("--help",),
        ("--version",),
        ("checks",),
        ("replay", "attempts"),
        ("inspect", "samples"),
    ],
)
def test_a_full_stdout(arguments, command):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kaudit", *arguments(command, "")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "No space left on device" in done.stderr
    assert "defect" not in done.stderr
