"""The Sparks that managed services have: the main job, DataFrames and tables give there what this machine finds by itself.

Their environments are kept in ~/.cache/kaudit-sparks: a release of Spark has 320 to 460 MB.
"""

import pytest

from tests.release.conftest import run
from tests.release.interpreters import ROOT

pytestmark = pytest.mark.release
RELEASES = ("3.5.9", "4.0.5")
"""Beside the newest, with which all other tests of Spark run."""
SAMPLES = ("duplicates", "malformed", "zombie")


@pytest.mark.parametrize("release", RELEASES)
def test_findings_and_tables_are_those_of_this_machine(release, python_with, tmp_path):
    logs = [ROOT / "samples" / name for name in SAMPLES]
    done = run(python_with(release), ROOT / "tests/release/compare_engines.py", tmp_path, *logs, cwd=tmp_path)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [str(path) for path in logs]
