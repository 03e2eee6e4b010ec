"""`kaudit scan`: audit logs."""

from typing import TYPE_CHECKING

from kaudit.cli import options
from kaudit.cli.audit_options import Audit, Manner, Where
from kaudit.cli.settings.settings import Settings

if TYPE_CHECKING:  # a plain command line does without
    import typer

_EXAMPLES = """\b
Examples:
  kaudit scan /var/lib/kafka/data
  kaudit scan --topic orders --broker-version 2.8.2 /disk1/kafka /disk2/kafka
  kaudit scan --output-format json:report.json --output-format table orders-3
"""


def scan(
    settings: Settings,
    paths: options.Paths,
    *,
    asked: Audit,
    batches: options.BatchesTable = False,
    where: Where,
    manner: Manner,
) -> int:
    """Audit broker logs: what went missing, appears twice, or came from a fenced producer - where, and why.

    Nothing is ever written into PATH. A directory in use by a running broker is fine.
    """
    from kaudit.analysis.scan.options import UsageError
    from kaudit.cli.audit import run_recording, run_scan

    request = asked.request(settings, paths, manner)
    engine = where.choose()
    if any(target.form.directory for target in request.targets):
        return run_recording(request, engine.record, batches=batches)
    if batches:
        raise UsageError("--batches needs --output-format parquet")
    return run_scan(request, engine.scan)


def register(app: "typer.Typer") -> None:
    """Add the command."""
    from kaudit.cli.settings.command import ConfiguredCommand
    from kaudit.cli.typed import typed

    app.command(cls=ConfiguredCommand, short_help="Audit broker logs.", epilog=_EXAMPLES)(typed(scan))
