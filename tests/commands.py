"""Commands of kaudit for the generated pages: each in a fork of this process.

Python's start and the imports are most of what a short command costs, and there are hundreds of them.
"""

import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import NamedTuple

_MODULES = (
    *(f"kaudit.cli.commands.{name}" for name in ("explain", "producers", "report", "scan", "simulate", "timeline")),
    *(f"kaudit.cli.{name}" for name in ("app", "audit", "pager", "producer_list", "progress", "simulation", "targets")),
    "kaudit.engines.local",
)
"""What most commands import, some of it only when they run."""
_ROOT = Path(__file__).parents[1]
_RECORDINGS = _ROOT / "tests/data/accidents"
_FIRST = (
    ["scan", "-q", _RECORDINGS / "two-instances.tar.xz"],
    ["scan", "-q", _RECORDINGS / "restored-backup.tar.xz"],
    ["timeline", "-q", _ROOT / "samples/hanging-transaction/s29d-late-write-after-abort-0"],
    ["diff", "-q", _ROOT / "samples/replicas/b1", _ROOT / "samples/replicas/b2"],
)
"""Logs of brokers and of clients, copies that differ: what these commands import and make once is most of what others do."""


class Ran(NamedTuple):
    """What a command came to: its exit code, and what it printed."""

    code: int
    out: str
    err: str


def forked(
    arguments: Sequence[str],
    directory: Path,
    variables: Mapping[str, str],
    *,
    stdout: str | None = None,
    together: bool = False,
    before: Callable[[], object] = bool,
) -> Ran:
    """Run `kaudit ARGUMENT...` in a directory, with the given variables of the environment beside those of this process.

    `stdout`: a file that it writes to instead. `together`: stderr goes where stdout goes. `before` is called first.
    """
    _load()
    with tempfile.NamedTemporaryFile(prefix="kaudit-output-") as printed, warnings.catch_warnings():
        read, write = os.pipe()
        output = os.open(stdout or printed.name, os.O_WRONLY | os.O_APPEND)
        streams = (os.open(os.devnull, os.O_RDONLY), output, output if together else write)
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest-xdist has a thread that waits for messages
        process = os.fork()
        if process == 0:
            os._exit(_code([*map(str, arguments)], directory, variables, streams, before))
        for descriptor in {*streams, write}:
            os.close(descriptor)
        with os.fdopen(read, encoding="utf-8") as err:
            said = err.read()
        _, status = os.waitpid(process, 0)
        return Ran(os.waitstatus_to_exitcode(status), Path(printed.name).read_text(encoding="utf-8"), said)


def output_of(arguments: Sequence[str], directory: Path, variables: Mapping[str, str]) -> str:
    """Return what `kaudit ARGUMENT...` prints on both streams in a directory, without how long it took."""
    done = forked(arguments, directory, variables, together=True)
    return re.sub(r", \d+(\.\d+)? s(?=$|;)", "", done.out, flags=re.MULTILINE)


@cache
def _load() -> None:
    """Import what commands need, and run some: what they make once, such as the patterns of messages, forks have."""
    for name in _MODULES:
        import_module(name)
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        for arguments in _FIRST:
            import_module("kaudit.cli.app").run([*map(str, arguments)])


def _code(
    arguments: Sequence[str],
    directory: Path,
    variables: Mapping[str, str],
    streams: Sequence[int],
    before: Callable[[], object],
) -> int:
    """Run the command, in the fork; return its exit code."""
    from kaudit.__main__ import main

    warnings.simplefilter("ignore")
    for descriptor, target in enumerate(streams):
        os.dup2(target, descriptor)
    sys.stdout, sys.stderr = (os.fdopen(descriptor, "w", encoding="utf-8") for descriptor in (1, 2))
    tempfile.tempdir = None
    try:
        os.chdir(directory)
        os.environ.update(variables)
        sys.argv = ["kaudit", *arguments]
        before()
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - whatever it was, the fork must not go on as pytest
        traceback.print_exc()
        code = 1
    try:
        sys.stdout.flush()
    finally:
        sys.stderr.flush()
    return code
