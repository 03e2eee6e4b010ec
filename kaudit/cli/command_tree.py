"""The typer application, built from the modules of kaudit.cli.commands."""

import sys
from collections.abc import Iterable, Iterator

import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.models import CommandInfo

from kaudit.cli.command_help import GroupedCommand
from kaudit.cli.commands import COMMANDS, module_of
from kaudit.cli.exits import ExitCode
from kaudit.cli.options import Version
from kaudit.cli.settings.configure import configurable_options

_SHORT_HELP = """\
kaudit audits Apache Kafka logs: which producer's records were lost, duplicated or fenced, where, and why.

  kaudit scan /var/lib/kafka/data            audit a broker's log directory
  kaudit timeline --producer-id 42 orders-3  one producer's history in a partition

kaudit --help lists all commands, kaudit checks all checks.
"""

_EXIT_CODES = (
    "Exit codes: 0 nothing found, 1 findings, 2 usage, 3 nothing to audit, 4 unreadable files, 70 internal error."
)
_HELP_WIDTH = 100
"""Columns; longer lines are harder to read."""


def command_tree(names: Iterable[str] = COMMANDS) -> TyperGroup:
    """Build the tree of these commands. Only their modules are imported."""
    app = typer.Typer(
        name="kaudit",
        rich_markup_mode=None,  # rich's boxes cost a quarter of a second
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _HELP_WIDTH},
    )
    app.callback(invoke_without_command=True, epilog=_EXIT_CODES)(_root)
    for name in names:
        app.add_typer(module_of(name).app)
    for command in _commands(app):
        command.cls = GroupedCommand
    tree = get_command(app)
    assert isinstance(tree, TyperGroup)
    return tree


def _commands(app: typer.Typer) -> Iterator[CommandInfo]:
    yield from app.registered_commands
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from _commands(group.typer_instance)


def _root(context: typer.Context, version: Version = False) -> None:  # noqa: ARG001 - its callback has answered
    """Audit Apache Kafka logs: which producer's records were lost, duplicated or fenced, where, and why."""
    context.obj = lambda: configurable_options(command_tree())  # of all commands: what --config asks for
    if context.invoked_subcommand is None:
        sys.stderr.write(_SHORT_HELP)
        raise typer.Exit(ExitCode.USAGE)
