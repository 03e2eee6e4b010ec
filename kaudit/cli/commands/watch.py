"""`kaudit watch`: audit logs while they are written."""

from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import OptionGroup, Takes, with_option_groups
from kaudit.cli.options import WATCHED, DisplayOptions, Paths, WatchedFindings, WatchOutput
from kaudit.cli.settings import settings_of
from kaudit.scanning.options import ScanOptions

_EXAMPLES = """
  kaudit watch /var/lib/kafka/data
  kaudit watch --state /var/lib/kaudit/state /data/kafka
  kaudit watch --metrics-port 9308 /data/kafka
  kaudit watch --until-idle 30s --output-format jsonl /data/kafka
"""


class WatchRun(OptionGroup, frozen=True, kw_only=True):
    """How long a watch runs, how often it looks, and where it keeps its state."""

    heading = "Watching"

    interval: Annotated[
        str, typer.Option("--interval", metavar="DURATION", help="Look for changes at least this often: 1s, 1m.")
    ] = "1s"
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="FILE", help="Remember what was reported; if the file exists, continue from there."
        ),
    ] = None
    until_idle: Annotated[
        str | None,
        typer.Option(
            "--until-idle", metavar="DURATION", help="End when nothing has been appended for this long: 30s, 5m."
        ),
    ] = None
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="End after this time, whatever happens: 10m, 1h."),
    ] = None


class WatchOptions(OptionGroup, frozen=True, kw_only=True):
    """What `watch` follows, and how."""

    run: WatchRun
    audit: Annotated[ScanOptions, Takes(WATCHED)]
    output: WatchOutput
    findings: WatchedFindings
    display: DisplayOptions


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def watch(context: typer.Context, paths: Paths, *, options: WatchOptions) -> int:
    """Follow broker logs and report findings as they happen, until interrupted. Only what is appended is read.

    Findings that later records may still explain are reported later: see docs/watch.md.
    """
    return on_demand("watching", "run_watch")(settings_of(context), paths, options)
