"""--config and --isolated: typer runs their callback before it looks at other options, whose defaults it sets."""

import os
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from kaudit.cli.settings.settings import Settings, files_of, is_configurable, key_of, load
from kaudit.installation import version_text


def _show_version(value: bool) -> None:
    if value:
        typer.echo(version_text())
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Print the version and exit."),
]


def configure(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:  # noqa: ANN401 - text or flag
    """Read the configuration as soon as both options are known; flags win over it, everything else is as if typed."""
    given = {**context.params, str(parameter.name): value}
    if {"config", "isolated"} <= given.keys() and not context.resilient_parsing:
        # `config show` lists the settings of the other commands: its own options are not configured
        own = {} if context.command.name == "show" else configurable_options(context.command)
        settings = load(
            context,
            own,
            lambda: all_options(context),
            os.environ,
            files_of(
                os.environ,
                config=given["config"],
                isolated=given["isolated"] or os.environ.get("KAUDIT_ISOLATED") == "1",
            ),
        )
        context.default_map = {
            str(own[key].name): setting.value for key, setting in settings.values.items() if key in own
        }
        context.obj = settings
    return value


def all_options(context: typer.Context) -> Mapping[str, TyperOption]:
    """Return the options that configuration may set, of all commands, by key: the root's callback knows them."""
    options: Mapping[str, TyperOption] = context.find_root().obj()
    return options


def settings_of(context: typer.Context) -> Settings:
    """Return the configuration the command was started with."""
    assert isinstance(context.obj, Settings)
    return context.obj


def configurable_options(command: object) -> Mapping[str, TyperOption]:
    """Return the options, by key, that configuration may set: of a command with --config, or of all those of a group."""
    if isinstance(command, TyperGroup):
        found: dict[str, TyperOption] = {}
        for child in command.commands.values():
            found = {**configurable_options(child), **found}
        return found
    options = options_of(command)
    return {key: option for key, option in options.items() if is_configurable(key)} if "config" in options else {}


def options_of(command: object) -> Mapping[str, TyperOption]:
    """Return the options of a command by key."""
    assert isinstance(command, TyperCommand)
    return {key_of(param): param for param in command.params if isinstance(param, TyperOption)}
