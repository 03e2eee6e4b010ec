"""The typer application, built from the modules of kaudit.cli.commands."""

import sys
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command
from typer.models import CommandInfo

from kaudit.cli.command_help import GroupedCommand
from kaudit.cli.commands import COMMANDS, module_of
from kaudit.cli.exits import ExitCode
from kaudit.cli.settings.configure import Version, configurable_options

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
_SETTINGS: dict[str, Any] = {
    "rich_markup_mode": None,  # rich's boxes cost a quarter of a second
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": _HELP_WIDTH},
}


class _Root(TyperGroup):
    """The root command. It lists its commands by name and summary; only the one that is run is imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401 - not exported
        """Return the name, the command and its arguments."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else _command(name), rest


def root() -> TyperGroup:
    """Return kaudit's root command, with commands that are imported when they are run."""
    app = typer.Typer(name="kaudit", cls=_Root, **_SETTINGS)
    app.callback(invoke_without_command=True, epilog=_EXIT_CODES)(_root)
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    group.commands = {name: TyperCommand(name, short_help=summary) for name, summary in COMMANDS.items()}
    return group


def command_tree() -> TyperGroup:
    """Return kaudit's root command with every command imported."""
    group = root()
    group.commands = {name: _command(name) for name in COMMANDS}
    return group


def _command(name: str) -> TyperCommand | TyperGroup:
    """Import and build a command."""
    app = typer.Typer(add_completion=False, **_SETTINGS)
    app.callback()(_root)  # typer makes a group of an application with a callback, even for one command
    app.add_typer(module_of(name).app)
    for command in _commands(app):
        command.cls = GroupedCommand
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    found = group.commands[name]
    assert isinstance(found, TyperCommand | TyperGroup)
    found.short_help = COMMANDS[name]
    return found


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
