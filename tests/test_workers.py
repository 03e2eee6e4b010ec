"""How many processes run the tests: all cores for many files, none but pytest's own for a few."""

from pathlib import Path

import pytest

from tests.conftest import pytest_cmdline_main

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("arguments", "workers"),
    [
        (["tests"], "auto"),
        (["tests/cli"], "auto"),
        (["tests/policy"], 0),
        (["tests/policy/test_policy.py"], 0),
        (["tests/policy/test_policy.py::test_name", "tests/test_workers.py"], 0),
        (["tests/policy", "tests/cli"], "auto"),
    ],
)
def test_many_files_are_run_by_workers(pytestconfig, monkeypatch, arguments, workers):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setattr(pytestconfig, "args", arguments)
    monkeypatch.setattr(pytestconfig.option, "numprocesses", None)
    monkeypatch.setattr(pytestconfig.option, "tx", [])
    monkeypatch.setattr(pytestconfig.option, "collectonly", False)
    pytest_cmdline_main(pytestconfig)
    assert pytestconfig.option.numprocesses == workers


def test_a_number_on_the_command_line_wins(pytestconfig, monkeypatch):
    monkeypatch.setattr(pytestconfig.option, "numprocesses", 3)
    pytest_cmdline_main(pytestconfig)
    assert pytestconfig.option.numprocesses == 3
