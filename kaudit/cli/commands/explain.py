"""`kaudit explain`: a check, a bug, an error, a term, a line of a log; or the rules of one broker version."""

from typing import Annotated

import typer

from kaudit.cli.loading import loaded, on_demand
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import Redaction, TerminalOptions, TextFormat, TextOrJson, VersionOption


def complete_codes_and_bugs(incomplete: str) -> list[tuple[str, str]]:
    """Complete codes and names of checks, and tickets of known bugs."""
    found: list[tuple[str, str]] = loaded("explaining", "complete_codes_and_bugs")(incomplete)
    return found


app = typer.Typer()


_EXAMPLES = """
  kaudit explain KA102
  kaudit explain OUT_OF_ORDER_SEQUENCE_NUMBER
  kaudit explain --broker-version 2.0.1
  kaudit explain --output-format json KA102
  kaudit explain --redact - < server.log
  tail -50 server.log | kaudit explain -
"""


@app.command(epilog=_EXAMPLES)
@with_option_groups
def explain(  # noqa: PLR0913 - typer reads the options off the signature
    asked: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ANYTHING",
            autocompletion=complete_codes_and_bugs,
            help="A check (KA101, duplicate-batch), a bug (KAFKA-12671), an error by name, number or exception, a term (LSO), "
            "a line of a log, or words; - reads lines from standard input.",
        ),
    ] = None,
    *,
    broker_version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="What a broker version does differently from its neighbours.")
    ] = None,
    redaction: Redaction,
    output_format: TextOrJson = TextFormat.TEXT,
    terminal: TerminalOptions,
    version: VersionOption,  # noqa: ARG001 - its callback has answered
) -> int:
    """Explain a check, a bug, an error, a term or a line of a log: what it means, what to do. Or a broker version's rules."""
    return on_demand("explaining", "run_explain")(asked or [], broker_version, output_format, redaction, terminal)
