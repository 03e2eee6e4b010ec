"""`kaudit timeline`: what each producer id did."""

from typing import TYPE_CHECKING

from kaudit.cli import options
from kaudit.cli.audit_options import Audit, Manner, Where
from kaudit.cli.settings.settings import Settings

if TYPE_CHECKING:  # a plain command line does without
    import typer

_EXAMPLES = """\b
Examples:
  kaudit timeline --producer-id 42 /var/lib/kafka/data
  kaudit timeline --topic orders --output-format jsonl /data/kafka
"""


def timeline(settings: Settings, paths: options.Paths, *, asked: Audit, where: Where, manner: Manner) -> int:
    """Show what producer ids did, in offset order: runs of batches, markers, missing offsets and findings."""
    from kaudit.cli.audit import run_timeline

    request = asked.request(settings, paths, manner)
    return run_timeline(request, where.choose().timeline)


def register(app: "typer.Typer") -> None:
    """Add the command."""
    from kaudit.cli.settings.command import ConfiguredCommand
    from kaudit.cli.typed import typed

    app.command(cls=ConfiguredCommand, short_help="Show what each producer id did.", epilog=_EXAMPLES)(typed(timeline))
