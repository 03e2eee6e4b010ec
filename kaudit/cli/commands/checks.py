"""`kaudit checks`: the list of checks."""

from typing import TYPE_CHECKING

from kaudit.cli import options
from kaudit.report.console import ColorChoice

if TYPE_CHECKING:  # a plain command line does without
    import typer


def checks(
    output_format: options.TextOrJson = options.TextFormat.TEXT,
    color: options.Color = ColorChoice.AUTO,
    no_color: options.NoColor = False,
    version: options.Version = False,  # noqa: ARG001 - its callback has answered
) -> None:
    """List the checks: code, name, gravest severity, what it finds."""
    from kaudit.checks.registry import CHECKS
    from kaudit.cli.stdout import stdout_console, write_stdout
    from kaudit.report.checks import list_document, list_text

    if output_format is options.TextFormat.JSON:
        write_stdout(list_document(CHECKS.values()))
    else:
        write_stdout(list_text(CHECKS.values(), stdout_console(ColorChoice.NEVER if no_color else color)))


def register(app: "typer.Typer") -> None:
    """Add the command."""
    from kaudit.cli.typed import typed

    app.command(short_help="List the checks.")(typed(checks))
