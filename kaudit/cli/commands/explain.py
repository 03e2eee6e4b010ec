"""`kaudit explain`: one check's page."""

from typing import Annotated

import typer

from kaudit.cli import options
from kaudit.report.console import ColorChoice


def explain(
    code: Annotated[str, typer.Argument(metavar="CODE", help="A code or a name: KA101, duplicate-batch.")],
    output_format: options.TextOrJson = options.TextFormat.TEXT,
    color: options.Color = ColorChoice.AUTO,
    no_color: options.NoColor = False,
    version: options.Version = False,  # noqa: ARG001 - its callback has answered
) -> None:
    """Explain a check: what it means, what explains it innocently, what to do."""
    from kaudit.cli.parsing import parse_check
    from kaudit.cli.stdout import stdout_console, write_stdout
    from kaudit.report.checks import page_document, page_text

    check = parse_check(code)
    if output_format is options.TextFormat.JSON:
        write_stdout(page_document(check))
    else:
        write_stdout(page_text(check, stdout_console(ColorChoice.NEVER if no_color else color)))
