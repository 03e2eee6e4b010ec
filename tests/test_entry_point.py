"""The entry point without a process of its own: what it prints, returns and sets."""

import gc
import os
import sys
from pathlib import Path

import pytest

from kaudit import __main__ as entry_point
from kaudit.cli import app
from kaudit.installation import version_text


@pytest.fixture
def ran(monkeypatch):
    """What was done to the garbage collector, and the code that the command line returns."""
    done: list[object] = []
    monkeypatch.setattr(gc, "set_threshold", lambda *counts: done.append(counts))
    monkeypatch.setattr(gc, "freeze", lambda: done.append("frozen"))

    def run() -> int:
        done.append("ran")
        return 3

    monkeypatch.setattr(app, "run", run)
    monkeypatch.setattr(sys, "argv", ["kaudit", "checks"])
    return done


def exit_code() -> object:
    with pytest.raises(SystemExit) as ended:
        entry_point.main()
    return ended.value.code


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_printed_and_nothing_else_done(option, ran, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kaudit", option])
    assert exit_code() == 0
    assert capsys.readouterr() == (f"{version_text()}\n", "")
    assert ran == []


def test_a_version_that_cannot_be_written_is_code_2(ran, monkeypatch, capsys):
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(sys, "argv", ["kaudit", "-V"])
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        entry_point._run()
        monkeypatch.undo()
        with pytest.raises(OSError, match="No space"):
            full.close()
    assert codes == [2]
    assert capsys.readouterr().err == "kaudit: stdout cannot be written: No space left on device\n"


@pytest.mark.parametrize("arguments", [["checks"], ["--version", "-v"], ["checks", "--version"], []])
def test_else_the_command_line_runs_and_its_code_is_the_exit_code(arguments, ran, monkeypatch):
    """numpy starts no threads, unless somebody wants them."""
    monkeypatch.setattr(sys, "argv", ["kaudit", *arguments])
    for given, expected in ((None, "1"), ("4", "4")):
        monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
        if given is not None:
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
        ran.clear()
        assert exit_code() == 3
        assert os.environ["OPENBLAS_NUM_THREADS"] == expected
        assert ran[1:] == ["ran", "frozen"]


def test_ctrl_c_while_kaudit_is_imported_is_code_130(ran, monkeypatch):
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "run", interrupted)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert exit_code() == 130
    assert ran[1:] == ["frozen"]
