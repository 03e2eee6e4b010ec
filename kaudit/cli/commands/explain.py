"""`kaudit explain`: the page of a check or of a known bug, or the rules of one broker version."""

from typing import Annotated

import typer

from kaudit.cli.loading import loaded, on_demand
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import TerminalOptions, TextFormat, TextOrJson, VersionOption


def complete_codes_and_bugs(incomplete: str) -> list[tuple[str, str]]:
    """Complete codes and names of checks, and tickets of known bugs."""
    found: list[tuple[str, str]] = loaded("explaining", "complete_codes_and_bugs")(incomplete)
    return found


app = typer.Typer()


@app.command()
@with_option_groups
def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE",
            autocompletion=complete_codes_and_bugs,
            help="A code, a name or a word: KA101, duplicate-batch, duplicate; or a known bug: KAFKA-12671.",
        ),
    ] = None,
    *,
    broker_version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="What a broker version does differently from its neighbours.")
    ] = None,
    output_format: TextOrJson = TextFormat.TEXT,
    terminal: TerminalOptions,
    version: VersionOption,  # noqa: ARG001 - its callback has answered
) -> int:
    """Explain a check or a known bug: what it means, what to do. Or a broker version's rules."""
    return on_demand("explaining", "run_explain")(code, broker_version, output_format, terminal)
