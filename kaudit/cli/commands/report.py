"""`kaudit report`: a saved scan in another format."""

from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import OptionGroup, with_option_groups
from kaudit.cli.options import DisplayOptions, FindingOptions, TableOutput
from kaudit.cli.settings import settings_of

_EXAMPLES = """
  kaudit report scan.json
  kaudit report --output-format sarif scan.json
  kaudit report --baseline known.json scan.json
  kaudit report --redact scan.json
"""


class ReportOptions(OptionGroup, frozen=True, kw_only=True):
    """How a saved scan is rendered."""

    output: TableOutput
    findings: FindingOptions
    display: DisplayOptions


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def report(
    context: typer.Context,
    saved: Annotated[str, typer.Argument(metavar="SAVED.json", help="A scan that was saved as json; - reads stdin.")],
    *,
    options: ReportOptions,
) -> int:
    """Render a saved scan in another format; the exit code is the one the scan would have given."""
    return on_demand("request", "run_report")(settings_of(context), saved, options)
