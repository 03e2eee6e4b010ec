"""The command tree, as typer builds it from the modules of kaudit.cli.commands."""

import sys
from collections.abc import Iterable, Sequence

import typer
from typer.core import TyperGroup
from typer.main import get_command

from kaudit.analysis.scan.options import UsageError
from kaudit.cli.commands import COMMANDS, module_of
from kaudit.cli.exits import ExitCode
from kaudit.cli.options import Version
from kaudit.cli.settings.coercion import PlainGroup
from kaudit.cli.typed import typed

_SHORT_HELP = """\
kaudit audits Apache Kafka logs: which producer's records were lost, duplicated or fenced, where, and why.

  kaudit scan /var/lib/kafka/data            audit a broker's log directory
  kaudit timeline --producer-id 42 orders-3  one producer's history in a partition

kaudit --help lists all commands, kaudit checks all checks.
"""

_EXIT_CODES = (
    "Exit codes: 0 nothing found, 1 findings, 2 usage, 3 nothing to audit, 4 unreadable files, 70 internal error."
)


def command_tree(names: Iterable[str] = COMMANDS) -> TyperGroup:
    """Build the tree of these commands; all of them take typer longer than a small log takes to read."""
    # Plain help: rich's boxes cost a quarter of a second.
    app = typer.Typer(name="kaudit", cls=PlainGroup, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True, epilog=_EXIT_CODES)(typed(_root))
    for name in names:
        module_of(name).register(app)
    tree = get_command(app)
    assert isinstance(tree, TyperGroup)
    return tree


def run_tree(arguments: Sequence[str]) -> int | None:
    """Let typer parse the arguments and run the command; return the exit code, None for 0.

    Raises:
        UsageError: typer cannot make a command of the arguments.

    """
    named = arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS
    try:
        # Not through Typer.__call__, which installs its own exception hook.
        result: int | None = command_tree(named)(arguments, prog_name="kaudit", standalone_mode=False)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see '{context.command_path} --help')" if context is not None else ""
        raise UsageError(error.format_message() + hint) from error
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # typer turns it into exit 1
            raise error.__context__ from None
        raise
    return result


def _root(context: typer.Context, version: Version = False) -> None:  # noqa: ARG001 - its callback has answered
    """Audit Apache Kafka logs: which producer's records were lost, duplicated or fenced, where, and why."""
    if context.invoked_subcommand is None:
        sys.stderr.write(_SHORT_HELP)
        raise typer.Exit(ExitCode.USAGE)
