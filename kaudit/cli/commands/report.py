"""`kaudit report`: a saved scan in another format."""

from typing import Annotated

import typer

from kaudit.cli.audit_options import Manner, Rendering
from kaudit.cli.groups import with_groups
from kaudit.cli.settings.command import ConfiguredCommand

_EXAMPLES = """\b
Examples:
  kaudit report scan.json
  kaudit report --output-format sarif --baseline known.json scan.json
"""


def report(
    context: typer.Context,
    saved: Annotated[str, typer.Argument(metavar="SAVED.json", help="What scan wrote with json; - reads stdin.")],
    *,
    asked: Rendering,
    manner: Manner,
) -> int:
    """Render a saved scan in another format; the exit code is the one the scan would have given."""
    from kaudit.cli.rendering import run_report

    return run_report(asked.request(context, saved, manner), saved)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=ConfiguredCommand, short_help="Render a saved scan.", epilog=_EXAMPLES)(with_groups(report))
