"""How many processes run the tests: one more than there are cores for many files, none but pytest's own for a few; and what forks of it report."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import pytest_cmdline_main

ROOT = Path(__file__).parents[1]
CORES = len(os.sched_getaffinity(0))


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
    """Forks of this process; workers of xdist where coverage is measured."""
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setattr(pytestconfig, "args", arguments)
    for covered, forks in (([], CORES + 1 if workers else 0), (["kaudit"], 0)):
        options = {"tx": [], "collectonly": False, "usepdb": False, "cov_source": covered, "forks": None}
        for name, value in {"numprocesses": None, **options}.items():
            monkeypatch.setattr(pytestconfig.option, name, value, raising=False)
        pytest_cmdline_main(pytestconfig)
        assert (pytestconfig.option.numprocesses, pytestconfig.option.forks) == (0 if forks else workers, forks)


def test_a_number_on_the_command_line_wins(pytestconfig, monkeypatch):
    monkeypatch.setattr(pytestconfig.option, "numprocesses", 3)
    monkeypatch.setattr(pytestconfig.option, "forks", 0, raising=False)
    pytest_cmdline_main(pytestconfig)
    assert (pytestconfig.option.numprocesses, pytestconfig.option.forks) == (3, 0)


CONFIGURATION = """
from tests.forked import pytest_runtestloop

def pytest_configure(config):
    config.option.forks = 2
"""
TESTS = """
import os, signal
import pytest

@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    yield made
    assert [*made.iterdir()]

@pytest.mark.parametrize("number", range(20))
def test_passes(number, directory, tmp_path):
    assert directory.parent == tmp_path.parent
    (directory / str(number)).touch(exist_ok=False)
    print("number", number, end=";")

def test_fails():
    print("printed before it failed")
    assert os.getpid() == 0

@pytest.mark.skip(reason="why not")
def test_skipped(): pass

def test_dies():
    if "DIES" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def forked(directory, *arguments, **variables):
    """What pytest prints of two equal files of tests, and its exit code."""
    (directory / "conftest.py").write_text(CONFIGURATION)
    (directory / "pytest.ini").touch()
    for name in ("test_one.py", "test_two.py"):
        (directory / name).write_text(TESTS)
    environment = {name: text for name, text in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *arguments],
        cwd=directory, capture_output=True, text=True, check=False,
        env={**environment, "PYTHONPATH": str(ROOT), **variables},
    )  # fmt: skip
    return done.stdout, done.returncode


def test_forks_report_every_test_once(tmp_path):
    out, code = forked(tmp_path, "--junitxml=results.xml", "-rs")
    assert code == 1
    assert "2 failed, 42 passed, 2 skipped" in out
    assert out.count("why not") == 2
    assert len(re.findall(r"Captured stdout call -+\nprinted before it failed\n", out)) == 2
    names = re.findall(r'<testcase classname="(\w+)" name="([^"]+)"', (tmp_path / "results.xml").read_text())
    assert len(names) == len({*names}) == 46


def test_a_fork_that_dies_is_named(tmp_path):
    out, code = forked(tmp_path, DIES="1")
    assert code == 2
    assert re.search(r"the process of test_(one|two)\.py::test_dies ended with -9", out)


def test_the_first_failure_ends_the_forks(tmp_path):
    out, code = forked(tmp_path, "-x")
    assert code == 1
    assert "stopping after 1 failures" in out
    assert "2 failed" not in out
