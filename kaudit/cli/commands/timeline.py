"""`kaudit timeline`: what each producer id did."""

import typer

from kaudit.cli import options
from kaudit.cli.audit import run_timeline
from kaudit.cli.audit_options import AuditOptions, DisplayOptions, EngineOptions
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.settings.configure import settings_of

_EXAMPLES = """\b
Examples:
  kaudit timeline --producer-id 42 /var/lib/kafka/data
  kaudit timeline --topic orders --output-format jsonl /data/kafka
"""


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def timeline(
    context: typer.Context,
    paths: options.Paths,
    *,
    audit: AuditOptions,
    engine: EngineOptions,
    display: DisplayOptions,
) -> int:
    """Show what producer ids did, in offset order: runs of batches, markers, missing offsets and findings."""
    request = audit.request(settings_of(context), paths, display)
    return run_timeline(request, engine.choose())
