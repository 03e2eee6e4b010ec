"""The test command leaves no files in the temporary directory: what makes some makes them below pytest's own."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import _PREFIX, _locked, _remove_those_of_killed_runs


def test_temporary_files_lie_below_pytests_own(tmp_path_factory):
    base = tmp_path_factory.getbasetemp().resolve()
    inherited = subprocess.run(
        [sys.executable, "-c", "import tempfile; print(tempfile.gettempdir())"],
        capture_output=True,
        text=True,
        check=True,
    )
    for place in (tempfile.gettempdir(), inherited.stdout.strip()):
        assert base in Path(place).resolve().parents


def test_what_a_killed_run_unpacked_is_removed_by_the_next(tmp_path):
    names = ("own", "of a running test", "of a killed run", "just made")
    own, running, killed, young = (tmp_path / f"{_PREFIX}{name}" for name in names)
    for directory in (own, running, killed, young):
        (directory / "captures").mkdir(parents=True)
        if directory != young:
            os.utime(directory, (0, 0))
    lock = _locked(running)
    assert lock is not None
    _remove_those_of_killed_runs(own)
    os.close(lock)
    assert sorted(tmp_path.iterdir()) == sorted((own, running, young))
