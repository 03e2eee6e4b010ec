"""`kaudit report`: a saved scan in another format."""

from typing import TYPE_CHECKING, Annotated

from kaudit.cli.audit_options import Manner, Rendering
from kaudit.cli.declared import Argument
from kaudit.cli.settings.settings import Settings

if TYPE_CHECKING:  # a plain command line does without
    import typer

_EXAMPLES = """\b
Examples:
  kaudit report scan.json
  kaudit report --output-format sarif --baseline known.json scan.json
"""


def report(
    settings: Settings,
    saved: Annotated[str, Argument(metavar="SAVED.json", help="What scan wrote with json; - reads stdin.")],
    *,
    asked: Rendering,
    manner: Manner,
) -> int:
    """Render a saved scan in another format; the exit code is the one the scan would have given."""
    from kaudit.cli.rendering import run_report

    return run_report(asked.request(settings, saved, manner), saved)


def register(app: "typer.Typer") -> None:
    """Add the command."""
    from kaudit.cli.settings.command import ConfiguredCommand
    from kaudit.cli.typed import typed

    app.command(cls=ConfiguredCommand, short_help="Render a saved scan.", epilog=_EXAMPLES)(typed(report))
