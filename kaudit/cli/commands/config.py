"""`kaudit config show`: every setting, its value, and where the value comes from."""

import typer

from kaudit.cli import options
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.settings.configure import all_options, settings_of

app = typer.Typer(name="config", short_help="Show the configuration.")


@app.callback()
def _group() -> None:
    """Show the configuration."""


@app.command(short_help="Show every setting with its origin.")
@with_option_groups
def show(
    context: typer.Context,
    *,
    output_format: options.TextOrJson = options.TextFormat.TEXT,
    terminal: options.TerminalOptions,
    configuration: options.ConfigurationOptions,  # noqa: ARG001 - its callbacks have read it
) -> None:
    """Show every setting, its value, and where it comes from: a file, the environment, or the default."""
    from kaudit.cli.settings.listing import settings_document, settings_text
    from kaudit.cli.stdout import stdout_console, write_stdout

    known, settings = all_options(context), settings_of(context)
    if output_format is options.TextFormat.JSON:
        write_stdout(settings_document(known, settings))
    else:
        write_stdout(settings_text(known, settings, stdout_console(terminal.color_choice)))
