"""`kaudit timeline`: what each producer id did."""

import typer

from kaudit.cli import options
from kaudit.cli.audit_options import Audit, Manner, Where
from kaudit.cli.groups import with_groups
from kaudit.cli.settings.command import ConfiguredCommand

_EXAMPLES = """\b
Examples:
  kaudit timeline --producer-id 42 /var/lib/kafka/data
  kaudit timeline --topic orders --output-format jsonl /data/kafka
"""


def timeline(context: typer.Context, paths: options.Paths, *, asked: Audit, where: Where, manner: Manner) -> int:
    """Show what producer ids did, in offset order: runs of batches, markers, missing offsets and findings."""
    from kaudit.cli.audit import run_timeline

    request = asked.request(context, paths, manner)
    return run_timeline(request, where.choose().timeline)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=ConfiguredCommand, short_help="Show what each producer id did.", epilog=_EXAMPLES)(
        with_groups(timeline)
    )
