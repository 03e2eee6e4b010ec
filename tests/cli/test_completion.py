"""What a shell offers after TAB: codes and names of checks, output formats."""

import os
import subprocess
import sys

import pytest

from kaudit.checks.registry import CHECKS
from kaudit.report.formats import FORMATS


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("scan --select KA10", [code for code in CHECKS if code.startswith("KA10")]),
        ("timeline --ignore KA2,old-dup", ["KA2,old-duplicate"]),
        ("explain sequence-g", ["sequence-gap"]),
        ("producers --output-format s", [name for name in FORMATS if name.startswith("s")]),
    ],
)
def test_offered(typed, offered):
    words = f"kaudit {typed}"
    completing = {"_KAUDIT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "kaudit"], env={**os.environ, **completing}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == offered
