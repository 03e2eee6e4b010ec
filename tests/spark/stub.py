"""kaudit/spark/__init__.pyi: what type checkers see of the functions that take options.

    uv run python -m tests.spark.stub

writes it from the functions' signatures, which have the declared options and their types.
"""

import re
import subprocess
import sys
from inspect import signature
from pathlib import Path

import kaudit.spark as ks
from kaudit.spark import frames

FILE = Path(ks.__file__).with_suffix(".pyi")
_MODULES = re.compile(r"\b(collections\.abc|datetime|os|kaudit\.scanning\.options)\.|'")
_HEAD = """
from collections.abc import Sequence
from datetime import datetime
from os import PathLike

from pyspark.sql import DataFrame, SparkSession

from kaudit.scanning.options import Depth, IsolationLevel

def require_pyspark(what: str) -> None: ...
"""


def made() -> str:
    """Return the stub, formatted."""
    functions = (f"def {name}{signature(getattr(frames, name))}: ...\n" for name in ks.__all__)
    text = f"{_HEAD}{_MODULES.sub('', ''.join(functions))}\n__all__ = {ks.__all__}\n"
    command = [sys.executable, "-m", "ruff", "format", "-", "--stdin-filename", str(FILE)]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return done.stdout.decode()


if __name__ == "__main__":
    FILE.write_text(made())
