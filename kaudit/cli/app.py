"""The way to a command, and the one place where everything that goes wrong becomes an exit code."""

import io
import os
import sys
from collections.abc import Sequence

from kaudit.analysis.scan.options import NothingToAuditError, UsageError
from kaudit.cli.commands import module_of
from kaudit.cli.exits import ExitCode
from kaudit.report.console import visible

_MAY_BE_PLAIN = ("scan", "timeline", "producers", "diff", "report")
"""Commands that are read without typer where the command line is plain."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the process's exit code (CONTRACT.md section 1)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file name need not be text
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return ExitCode.BROKEN_PIPE


def _run(arguments: Sequence[str]) -> int:
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except NothingToAuditError as error:
        return _tell(str(error), ExitCode.NOTHING_TO_AUDIT)
    except UsageError as error:
        return _tell(str(error), ExitCode.USAGE)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: one paragraph instead of a traceback
        return _internal(error)
    return int(code or ExitCode.OK)


def _dispatch(arguments: Sequence[str]) -> int | None:
    match arguments:
        # Nothing to parse here, or nothing that needs typer: half of the time of these.
        case ["explain", code] if not code.startswith("-"):
            from kaudit.cli.commands.explain import explain

            explain(code)
            return None
        case ["checks"]:
            from kaudit.cli.commands.checks import checks

            checks()
            return None
        case [name, *rest] if name in _MAY_BE_PLAIN:
            from kaudit.cli.plain_way import read_plainly

            command = getattr(module_of(name), name)
            typed = read_plainly(command, rest, os.environ)
            if typed is not None:
                told: int = command(**typed)
                return told
    from kaudit.cli.tree import run_tree

    return run_tree(arguments)


def _tell(text: str, code: ExitCode) -> int:
    sys.stderr.write(f"kaudit: {visible(text)}\n")
    return code


def _internal(error: Exception) -> int:
    if os.environ.get("KAUDIT_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    return _tell(
        f"internal error: {type(error).__name__}: {error}. This is a defect of kaudit, not of the log: nothing it "
        "may have printed is complete. KAUDIT_DEBUG=1 shows the traceback for a report.",
        ExitCode.INTERNAL,
    )


def _forget_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not complain."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
