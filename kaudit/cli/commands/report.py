"""`kaudit report`: a saved scan in another format."""

from typing import Annotated

import typer

from kaudit.cli.audit_options import DisplayOptions, ReportOptions
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.settings.configure import settings_of

_EXAMPLES = """\b
Examples:
  kaudit report scan.json
  kaudit report --output-format sarif --baseline known.json scan.json
"""


app = typer.Typer()


@app.command(short_help="Render a saved scan.", epilog=_EXAMPLES)
@with_option_groups
def report(
    context: typer.Context,
    saved: Annotated[str, typer.Argument(metavar="SAVED.json", help="What scan wrote with json; - reads stdin.")],
    *,
    rendering: ReportOptions,
    display: DisplayOptions,
) -> int:
    """Render a saved scan in another format; the exit code is the one the scan would have given."""
    from kaudit.cli.rendering import run_report

    return run_report(rendering.request(settings_of(context), saved, display), saved)
