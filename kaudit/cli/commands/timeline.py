"""`kaudit timeline`: what each producer id did."""

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import AuditOptions, PathsOrLogs, inputs_of
from kaudit.cli.settings import settings_of

_EXAMPLES = """
  kaudit timeline --producer-id 42 /var/lib/kafka/data
  kaudit timeline --topic orders --partition 3 /var/lib/kafka/data
  kaudit timeline --output-format jsonl /var/lib/kafka/data
"""


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def timeline(context: typer.Context, paths: PathsOrLogs = None, *, options: AuditOptions) -> int:
    """Show what producer ids did, in offset order: runs of batches, markers, missing offsets and findings."""
    return on_demand("audit", "run_timeline")(settings_of(context), inputs_of(paths, options.audit), options)
