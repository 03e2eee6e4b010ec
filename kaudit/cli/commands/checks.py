"""`kaudit checks`: the list of checks."""

import typer

from kaudit.checks.registry import CHECKS
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import TerminalOptions, TextFormat, TextOrJson, VersionOption
from kaudit.cli.streams import stdout_console, write_stdout
from kaudit.report.text.explain_pages import check_list, check_list_document

app = typer.Typer()


@app.command()
@with_option_groups
def checks(
    *,
    output_format: TextOrJson = TextFormat.TEXT,
    terminal: TerminalOptions,
    version: VersionOption,  # noqa: ARG001 - its callback has answered
) -> None:
    """List the checks: code, name, highest severity, what it finds."""
    if output_format is TextFormat.JSON:
        write_stdout(check_list_document(CHECKS.values()))
    else:
        write_stdout(check_list(CHECKS.values(), stdout_console(terminal.color_choice)))
