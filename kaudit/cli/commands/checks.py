"""`kaudit checks`: the list of checks."""

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import TerminalOptions, TextFormat, TextOrJson, VersionOption

app = typer.Typer()


@app.command(epilog="kaudit checks --output-format json")
@with_option_groups
def checks(
    *,
    output_format: TextOrJson = TextFormat.TEXT,
    terminal: TerminalOptions,
    version: VersionOption,  # noqa: ARG001 - its callback has answered
) -> int:
    """List the checks: code, name, highest severity, what it finds."""
    return on_demand("explaining", "run_checks")(output_format, terminal)
