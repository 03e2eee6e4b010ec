"""Commands of kaudit for the generated pages: each in a fork of this process.

Python's start and the imports are most of what a short command costs, and there are hundreds of them.
"""

import multiprocessing
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

_MODULES = (
    *(f"kaudit.cli.commands.{name}" for name in ("explain", "producers", "report", "scan", "simulate", "timeline")),
    *(f"kaudit.cli.{name}" for name in ("app", "audit", "pager", "producer_list", "progress", "simulation", "targets")),
    "kaudit.engines.local",
)
"""What most commands import, some of it only when they run."""


def output_of(arguments: Sequence[str], directory: Path, variables: Mapping[str, str]) -> str:
    """Return what `kaudit ARGUMENT...` prints on both streams in a directory, without how long it took.

    It has the given variables of the environment beside those of this process.
    """
    _load()
    with tempfile.NamedTemporaryFile(prefix="kaudit-output-") as printed:
        process = multiprocessing.get_context("fork").Process(
            target=_run, args=(arguments, directory, variables, printed.name)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # pytest-xdist has a thread that waits for messages
            process.start()
        process.join()
        process.close()
        text = Path(printed.name).read_text(encoding="utf-8")
    return re.sub(r", \d+(\.\d+)? s(?=$|;)", "", text, flags=re.MULTILINE)


@cache
def _load() -> None:
    for name in _MODULES:
        import_module(name)


def _run(arguments: Sequence[str], directory: Path, variables: Mapping[str, str], printed: str) -> None:
    from kaudit.__main__ import main  # it is the fork that runs it

    os.chdir(directory)
    os.environ.update(variables)
    warnings.simplefilter("ignore")
    for descriptor, path in enumerate((os.devnull, printed, printed)):
        os.dup2(os.open(path, os.O_RDWR | os.O_APPEND), descriptor)
    sys.stdout, sys.stderr = (os.fdopen(descriptor, "w", encoding="utf-8") for descriptor in (1, 2))
    sys.argv = ["kaudit", *arguments]
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
