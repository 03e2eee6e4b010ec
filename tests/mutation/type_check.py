"""Mutants that mypy refuses: `.ci/run` checks types, so that nobody could commit them."""

import subprocess
import sys
from tempfile import NamedTemporaryFile

from tests.mutation.mutants import ROOT, Mutant
from tests.mutation.reach import CACHE


def type_error(mutant: Mutant) -> str:
    """Return the first error of mypy in the module with this change; empty where it has none."""
    with NamedTemporaryFile(suffix=".py") as changed:
        changed.write(mutant.source)
        changed.flush()
        command = [sys.executable, "-m", "mypy", "--cache-dir", str(CACHE / "mypy"), "--no-error-summary"]
        command += ["--shadow-file", mutant.path, changed.name, mutant.path]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"mypy failed: {done.stdout}{done.stderr}")
    own = (line for line in done.stdout.splitlines() if line.startswith(f"{mutant.path}:") and ": error: " in line)
    return next(own, "")
