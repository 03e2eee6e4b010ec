"""`kaudit bugs`: the list of known bugs."""

from typing import Annotated

import typer

from kaudit.bugs.bug import Program, parse_release
from kaudit.bugs.registry import of_version
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import TerminalOptions, TextFormat, TextOrJson, VersionOption
from kaudit.cli.streams import stdout_console, write_stdout
from kaudit.errors import UsageError
from kaudit.report.text.explain_pages import bug_list, bug_list_document

app = typer.Typer()


@app.command()
@with_option_groups
def bugs(
    *,
    affects: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Only bugs of this version: of the broker, or of what --client names."),
    ] = None,
    client: Annotated[
        Program | None, typer.Option(metavar="PROGRAM", help="Only bugs of java, librdkafka, franz-go, kafkajs, ...")
    ] = None,
    output_format: TextOrJson = TextFormat.TEXT,
    terminal: TerminalOptions,
    version: VersionOption,  # noqa: ARG001 - its callback has answered
) -> None:
    """List the known bugs: ticket, title, affected and fixed versions."""
    release = None
    if affects is not None:
        try:
            release = parse_release(affects)
        except ValueError as error:
            raise UsageError(f"--affects {affects}: {error}; write 2.8.1") from None
    program = Program.BROKER if release is not None and client is None else client
    found = of_version(release, program)
    if output_format is TextFormat.JSON:
        write_stdout(bug_list_document(found))
    else:
        write_stdout(bug_list(found, stdout_console(terminal.color_choice)))
