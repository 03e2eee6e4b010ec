"""The command tree, and the one place where everything that goes wrong becomes an exit code."""

import io
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module

import typer
from typer.core import TyperGroup
from typer.main import get_command

from kaudit.cli.exits import ExitCode
from kaudit.cli.options import Version
from kaudit.cli.settings.coercion import PlainGroup
from kaudit.pipeline.options import NothingToAuditError, UsageError
from kaudit.report.console import visible

_SHORT_HELP = """\
kaudit audits Apache Kafka logs: which producer's records were lost, duplicated or fenced, where, and why.

  kaudit scan /var/lib/kafka/data            audit a broker's log directory
  kaudit timeline --producer-id 42 orders-3  one producer's history in a partition

kaudit --help lists all commands, kaudit checks all checks.
"""

_EXIT_CODES = (
    "Exit codes: 0 nothing found, 1 findings, 2 usage, 3 nothing to audit, 4 unreadable files, 70 internal error."
)

_COMMANDS = (
    *("scan", "timeline", "producers", "inspect", "replay", "diff", "simulate", "report"),
    *("explain", "checks", "spark-bundle", "baseline", "config"),
)
"""In the order of --help; each is a module of kaudit.cli.commands with a function `register`."""


def command_tree(names: Iterable[str] = _COMMANDS) -> TyperGroup:
    """Build the tree of these commands; all of them take typer longer than a small log takes to read."""
    # Plain help: rich's boxes cost a quarter of a second.
    app = typer.Typer(name="kaudit", cls=PlainGroup, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True, epilog=_EXIT_CODES)(_root)
    for name in names:
        import_module(f"kaudit.cli.commands.{name.replace('-', '_')}").register(app)
    tree = get_command(app)
    assert isinstance(tree, TyperGroup)
    return tree


def _root(context: typer.Context, version: Version = False) -> None:  # noqa: ARG001 - its callback has answered
    """Audit Apache Kafka logs: which producer's records were lost, duplicated or fenced, where, and why."""
    if context.invoked_subcommand is None:
        sys.stderr.write(_SHORT_HELP)
        raise typer.Exit(ExitCode.USAGE)


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
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see '{context.command_path} --help')" if context is not None else ""
        return _tell(error.format_message() + hint, ExitCode.USAGE)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # typer turns it into exit 1
            raise error.__context__ from None
        raise
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: one paragraph instead of a traceback
        return _internal(error)
    return int(code or ExitCode.OK)


def _dispatch(arguments: Sequence[str]) -> int | None:
    match arguments:
        # Nothing to parse here, and typer's parser imports pydantic: half of the time of these two.
        case ["explain", code] if not code.startswith("-"):
            from kaudit.cli.commands.explain import explain

            explain(code)
            return None
        case ["checks"]:
            from kaudit.cli.commands.checks import checks

            checks()
            return None
    named = arguments[:1] if arguments and arguments[0] in _COMMANDS else _COMMANDS
    # Not through Typer.__call__, which installs its own exception hook.
    result: int | None = command_tree(named)(arguments, prog_name="kaudit", standalone_mode=False)
    return result


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
