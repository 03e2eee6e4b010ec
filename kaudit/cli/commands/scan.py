"""`kaudit scan`: audit logs."""

from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import Takes, with_option_groups
from kaudit.cli.options import AUDITED, AuditOptions, PathsOrLogs, TableOutput, inputs_of
from kaudit.cli.settings import settings_of
from kaudit.scanning.options import ScanOptions

_EXAMPLES = """
  kaudit scan /var/lib/kafka/data
  kaudit scan --topic orders /disk1/kafka /disk2/kafka
  kaudit scan --since 2026-11-21T06:00Z /var/lib/kafka/data
  kaudit scan --output-format html:report.html /var/lib/kafka/data
  kaudit scan server.log app.log orders-3.bak --topic orders --partition 3
  kubectl logs kafka-0 | kaudit scan -
  kaudit scan --digests --output-format json:report.json /var/lib/kafka/data
"""


class ScanOutput(TableOutput, frozen=True, kw_only=True):
    """Which formats, where they go, what tables show, and which rows parquet has."""

    batches: Annotated[
        bool, typer.Option("--batches", help="With --output-format parquet: a row for every batch too.")
    ] = False
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="With --remote: list the objects that would be read there, their bytes and about how many requests; read nothing.",
        ),
    ] = False


class ScanCommand(AuditOptions, frozen=True, kw_only=True):
    """What `scan` audits, and how."""

    audit: Annotated[ScanOptions, Takes((*AUDITED, "digests"))]
    output: ScanOutput


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def scan(context: typer.Context, paths: PathsOrLogs = None, *, options: ScanCommand) -> int:
    """Audit broker logs: what went missing, appears twice, or came from a fenced producer - where, and why.

    Nothing is ever written into PATH. A directory in use by a running broker is fine.
    """
    inputs = inputs_of(paths, options.audit)
    if options.output.plan:
        return on_demand("remote_plan", "run_plan")(inputs, options)
    return on_demand("audit", "run_scan")(settings_of(context), inputs, options)
