"""The Sparks that managed services have: the main job, DataFrames and tables give there what this machine finds by itself.

Their environments are kept in ~/.cache/kaudit-sparks: a release of Spark has 320 to 460 MB.
"""

from pathlib import Path

import pytest

from tests.release.conftest import run
from tests.release.interpreters import REQUIRED, ROOT, interpreters

pytestmark = pytest.mark.release
RELEASES = ("3.5.9", "4.0.5")
"""Beside the newest, with which all other tests of Spark run."""
SAMPLES = ("duplicates", "malformed", "zombie")
ENVIRONMENTS = Path("~/.cache/kaudit-sparks").expanduser()


@pytest.fixture
def python_with(wheel, tmp_path):
    """Return the Python of an environment with a release of Spark and the kaudit of this checkout."""

    def make(release):
        python = ENVIRONMENTS / release / "bin" / "python"
        if not python.exists():
            run("uv", "venv", "-q", "--python", interpreters()[REQUIRED].path, ENVIRONMENTS / release, cwd=tmp_path)
        needed = f"{wheel}[spark]", f"pyspark=={release}"
        run("uv", "pip", "install", "-q", "--reinstall-package", "kaudit", "--python", python, *needed, cwd=tmp_path)
        return python

    return make


@pytest.mark.parametrize("release", RELEASES)
def test_findings_and_tables_are_those_of_this_machine(release, python_with, tmp_path):
    logs = [ROOT / "samples" / name for name in SAMPLES]
    done = run(python_with(release), ROOT / "tests/release/compare_engines.py", tmp_path, *logs, cwd=tmp_path)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [str(path) for path in logs]
