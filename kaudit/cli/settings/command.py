"""A command whose options take their defaults from configuration."""

import os
from collections.abc import Mapping

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from kaudit.cli.settings.coercion import convert_simple_values
from kaudit.cli.settings.settings import Settings, load
from kaudit.cli.settings.values import key_of


class ConfiguredCommand(TyperCommand):
    """Reads configuration before it parses, so that flags win and everything else is as if typed."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Look for --config and --isolated first: they say where the other options' defaults are."""
        typed, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        if "help" not in typed and "version" not in typed:
            settings = load(
                ctx,
                all_options,
                os.environ,
                config=typed.get("config"),
                isolated=bool(typed.get("isolated")) or os.environ.get("KAUDIT_ISOLATED") == "1",
            )
            mine = {key_of(param): param.name for param in self.params if isinstance(param, TyperOption)}
            ctx.obj = settings
            ctx.default_map = {str(mine[key]): item.value for key, item in settings.values.items() if key in mine}
        convert_simple_values(self.get_params(ctx))
        return super().parse_args(ctx, args)


def all_options() -> Mapping[str, TyperOption]:
    """Return the options, by key, of all commands that take configuration."""
    from kaudit.cli.tree import command_tree  # which imports the commands, and they this module

    return options_of(command_tree())


def options_of(command: object) -> Mapping[str, TyperOption]:
    """Return the options, by key, of a command that takes configuration, or of all such commands of a group."""
    if isinstance(command, TyperGroup):
        found: dict[str, TyperOption] = {}
        for child in command.commands.values():
            for key, option in options_of(child).items():
                found.setdefault(key, option)
        return found
    if not isinstance(command, ConfiguredCommand):
        return {}
    return {key_of(param): param for param in command.params if isinstance(param, TyperOption)}


def settings_of(context: typer.Context) -> Settings:
    """Return the configuration the command was started with."""
    return context.obj if isinstance(context.obj, Settings) else Settings()
