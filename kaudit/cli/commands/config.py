"""`kaudit config show`: every setting, its value, and where the value comes from."""

import typer

from kaudit.cli import options
from kaudit.cli.settings.command import ConfiguredCommand
from kaudit.cli.settings.settings import Settings
from kaudit.cli.typed import typed
from kaudit.report.console import ColorChoice

config = typer.Typer(name="config", rich_markup_mode=None, pretty_exceptions_enable=False)


@config.callback()
def _group() -> None:
    """Look at the configuration."""


@config.command(cls=ConfiguredCommand, short_help="Show every setting with its origin.")
@typed
def show(
    settings: Settings,
    *,
    output_format: options.TextOrJson = options.TextFormat.TEXT,
    color: options.Color = ColorChoice.AUTO,
    no_color: options.NoColor = False,
    config: options.Config = None,  # noqa: ARG001 - read before the other options
    isolated: options.Isolated = False,  # noqa: ARG001 - read before the other options
) -> None:
    """Show every setting, its value, and where it comes from: a file, the environment, or the default."""
    from kaudit.cli.settings.command import all_options
    from kaudit.cli.settings.listing import settings_document, settings_text
    from kaudit.cli.stdout import stdout_console, write_stdout

    known = all_options()
    if output_format is options.TextFormat.JSON:
        write_stdout(settings_document(known, settings))
    else:
        write_stdout(settings_text(known, settings, stdout_console(ColorChoice.NEVER if no_color else color)))


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    app.add_typer(config, short_help="Look at the configuration.")
