"""`kaudit bugs`: the list of known bugs."""

from typing import Annotated

import typer

from kaudit.bugs.tickets import Program
from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import TerminalOptions, TextFormat, TextOrJson, VersionOption

app = typer.Typer()


@app.command(
    epilog="kaudit bugs --affects 2.8.1\nkaudit bugs --client librdkafka --affects 1.8.2\nkaudit bugs --output-format json"
)
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
) -> int:
    """List the known bugs: ticket, title, affected and fixed versions."""
    return on_demand("known_bugs", "run_bugs")(affects, client, output_format, terminal)
