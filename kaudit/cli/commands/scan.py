"""`kaudit scan`: audit logs."""

import typer

from kaudit.cli import options
from kaudit.cli.audit_options import AuditOptions, DisplayOptions, EngineOptions, TableOptions
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.settings.configure import settings_of

_EXAMPLES = """\b
Examples:
  kaudit scan /var/lib/kafka/data
  kaudit scan --topic orders --broker-version 2.8.2 /disk1/kafka /disk2/kafka
  kaudit scan --output-format json:report.json --output-format table orders-3
"""


class _ScanTables(TableOptions, frozen=True, kw_only=True):
    """What tables show, and which rows parquet has."""

    batches: options.BatchesTable = False


app = typer.Typer()


@app.command(short_help="Audit broker logs.", epilog=_EXAMPLES)
@with_option_groups
def scan(  # noqa: PLR0913 - its groups of options
    context: typer.Context,
    paths: options.Paths,
    *,
    audit: AuditOptions,
    tables: _ScanTables,
    engine: EngineOptions,
    display: DisplayOptions,
) -> int:
    """Audit broker logs: what went missing, appears twice, or came from a fenced producer - where, and why.

    Nothing is ever written into PATH. A directory in use by a running broker is fine.
    """
    from msgspec.structs import replace

    from kaudit.analysis.scan.options import UsageError
    from kaudit.cli.audit import run_scan

    request = audit.request(settings_of(context), paths, display)
    request = replace(request, statistics=tables.statistics, batches=tables.batches)
    if tables.batches and not any(target.form.directory for target in request.targets):
        raise UsageError("--batches needs --output-format parquet")
    return run_scan(request, engine.choose())
