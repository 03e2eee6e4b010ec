"""`kaudit watch`: audit logs while they are written."""

import typer

from kaudit.cli import options
from kaudit.cli.audit_options import DisplayOptions, WatchOptions
from kaudit.cli.commands import on_demand
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.settings.configure import settings_of

_EXAMPLES = """\b
Examples:
  kaudit watch /var/lib/kafka/data
  kaudit watch --state /var/lib/kaudit/state --metrics-port 9308 /data/kafka
  kaudit watch --until-idle 30s --output-format jsonl --topic orders /data/kafka
"""


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def watch(context: typer.Context, paths: options.Paths, *, watching: WatchOptions, display: DisplayOptions) -> int:
    """Follow broker logs and report findings as they happen, until interrupted. Only what is appended is read.

    A finding that later records may still explain waits: see docs/watch.md.
    """
    request = watching.request(settings_of(context), paths, display)
    return on_demand("watch.watching", "run_watch")(request, watching.run, watching.output)
