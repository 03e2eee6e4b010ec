"""Entry point: answers --version without importing anything heavy, then hands over to the CLI."""

import atexit
import contextlib
import gc
import os
import sys

_COLLECTIONS = (100_000, 2, 2)
"""New objects between two searches for garbage, and young searches before an older generation is searched too.

Python's 700 mean hundreds of searches through what imports leave; a small scan makes 63,000 objects that could be garbage. Its
10 and 10 would let the graphs of a hundred simulations wait: 230 MB instead of 120.
"""


def main() -> None:
    """Run kaudit with the process's arguments and exit with its code."""
    sys.exit(_run())


def program() -> None:
    """Do the same as all that this process is for, and end it without taking it apart."""
    code = _run()
    if not _is_watched():
        _end(code)
    sys.exit(code)


def _run() -> int:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from kaudit import __version__

        sys.stdout.write(f"kaudit {__version__}\n")
        return 0
    gc.set_threshold(*_COLLECTIONS)
    # no matrix is multiplied here, and importing numpy starts a thread a core for that
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from kaudit.cli.app import run

        code = run()
    except KeyboardInterrupt:  # during the imports; run() answers for the rest
        code = 130
    gc.freeze()  # or the interpreter looks for garbage among all modules twice before it ends: a fifth of a short run
    return code


def _is_watched() -> bool:
    """Tell whether somebody waits for the interpreter's own end: a debugger, a profiler, a prompt, another thread."""
    threading = sys.modules.get("threading")
    monitoring = getattr(sys, "monitoring", None)  # profilers and debuggers from Python 3.12 on
    return (
        sys.gettrace() is not None
        or sys.getprofile() is not None
        or bool(sys.flags.inspect)
        or (threading is not None and threading.active_count() > 1)
        or (monitoring is not None and any(monitoring.get_tool(tool) for tool in range(6)))
    )


def _end(code: int) -> None:
    """End the process as the interpreter would, but leave its objects to the system: freeing each takes 6 ms."""
    atexit._run_exitfuncs()  # noqa: SLF001 - what the interpreter calls then; it has no public name
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # run() has told of a stdout that cannot be written
                stream.flush()
    os._exit(code)


if __name__ == "__main__":
    program()
