"""The test command leaves no files in the temporary directory: what makes some makes them below pytest's own."""

import subprocess
import sys
import tempfile
from pathlib import Path


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
