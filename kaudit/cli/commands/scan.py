"""`kaudit scan`: audit logs."""

import typer
from msgspec.structs import replace

from kaudit.cli import options
from kaudit.cli.audit import run_scan
from kaudit.cli.audit_options import AuditOptions, DisplayOptions, EngineOptions, TableOptions
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.settings.configure import settings_of
from kaudit.errors import UsageError
from kaudit.scanning.options import Depth

_EXAMPLES = """\b
Examples:
  kaudit scan /var/lib/kafka/data
  kaudit scan --topic orders --broker-version 2.8.2 /disk1/kafka /disk2/kafka
  kaudit scan --output-format json:report.json --output-format table orders-3
  kaudit scan --digests --output-format json:report.json /var/lib/kafka/data
"""


class _ScanOutput(TableOptions, frozen=True, kw_only=True):
    """What tables show, which rows parquet has, and whether digests name the batches that were checked."""

    batches: options.BatchesTable = False
    digests: bool = False


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def scan(  # noqa: PLR0913 - its groups of options
    context: typer.Context,
    paths: options.Paths,
    *,
    audit: AuditOptions,
    output: _ScanOutput,
    engine: EngineOptions,
    display: DisplayOptions,
) -> int:
    """Audit broker logs: what went missing, appears twice, or came from a fenced producer - where, and why.

    Nothing is ever written into PATH. A directory in use by a running broker is fine.
    """
    request = audit.request(settings_of(context), paths, display)
    if output.digests and request.options.depth is Depth.HEADERS:
        raise UsageError("--digests needs CRCs that were checked: --depth crc or records")
    request = replace(
        request,
        options=replace(request.options, digests=output.digests),
        statistics=output.statistics,
        batches=output.batches,
    )
    if output.batches and not any(target.form.directory for target in request.targets):
        raise UsageError("--batches needs --output-format parquet")
    return run_scan(request, engine.choose())
