"""Runs a command; the one place where everything that goes wrong becomes a message and an exit code."""

import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence

import typer

from kaudit.cli.command_tree import root
from kaudit.cli.exits import ExitCode
from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError
from kaudit.report.console import visible

_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
"""Errors that are not defects of kaudit: no space, no permission, a name that is too long."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the process's exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file name need not be text
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return ExitCode.BROKEN_PIPE


def _run(arguments: Sequence[str]) -> int:
    try:
        code = _run_command(arguments)
        sys.stdout.flush()
    except NothingToAuditError as error:
        unreadable = isinstance(error, UnreadableInputError)
        return _report_error(str(error), ExitCode.UNREADABLE if unreadable else ExitCode.NOTHING_TO_AUDIT)
    except UsageError as error:
        return _report_error(str(error), ExitCode.USAGE)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except OSError as error:
        if error.errno not in _REFUSALS:
            return _internal(error)
        _discard_stdout()
        where = "" if error.filename is None else f"{error.filename}: "
        return _report_error(f"{where}{error.strerror}", ExitCode.USAGE)
    except Exception as error:  # noqa: BLE001 - the last resort: one paragraph instead of a traceback
        return _internal(error)
    return int(code or ExitCode.OK)


def _run_command(arguments: Sequence[str]) -> int | None:
    """Let typer parse the arguments and run the command; return its exit code, None for 0.

    Raises:
        UsageError: typer cannot make a command of the arguments.

    """
    try:
        result: int | None = root()(arguments, prog_name="kaudit", standalone_mode=False)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see '{context.command_path} --help')" if context is not None else ""
        raise UsageError(error.format_message() + hint) from error
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # typer turns it into exit 1
            raise error.__context__ from None
        raise
    return result


def _report_error(text: str, code: ExitCode) -> int:
    sys.stderr.write(f"kaudit: {visible(text)}\n")
    return code


def _internal(error: Exception) -> int:
    if os.environ.get("KAUDIT_DEBUG") == "1":
        traceback.print_exception(error)
    return _report_error(
        f"internal error: {type(error).__name__}: {error}. This is a defect of kaudit, not of the log: nothing it "
        "may have printed is complete. KAUDIT_DEBUG=1 shows the traceback for a report.",
        ExitCode.INTERNAL,
    )


def _discard_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not complain."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
