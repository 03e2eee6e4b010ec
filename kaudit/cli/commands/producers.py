"""`kaudit producers`: the producer ids in the logs."""

import typer

from kaudit.cli import options
from kaudit.cli.audit_options import (
    AuditOptions,
    BlockSources,
    DisplayOptions,
    EngineOptions,
    FindingOptions,
    LogFacts,
    OutputOptions,
    PartitionFilter,
    ReadOptions,
)
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.producer_options import ActivityFilter, ListingOptions
from kaudit.cli.settings.configure import settings_of

_EXAMPLES = """\b
Examples:
  kaudit producers --summary /var/lib/kafka/data
  kaudit producers --sort batches --limit 20 /var/lib/kafka/data
  kaudit producers --zookeeper /data/zookeeper --with-findings /data/kafka
"""


app = typer.Typer()


@app.command(short_help="List the producer ids.", epilog=_EXAMPLES)
@with_option_groups
def producers(  # noqa: PLR0913 - typer reads the options off the signature
    context: typer.Context,
    paths: options.Paths,
    *,
    output: OutputOptions,
    listing: ListingOptions,
    blocks: BlockSources,
    broker_version: options.BrokerVersion = "auto",
    findings: FindingOptions,
    partitions: PartitionFilter,
    active: ActivityFilter,
    log: LogFacts,
    read: ReadOptions,
    layout: options.Layout = None,
    require_all: options.RequireAll = False,
    engine: EngineOptions,
    display: DisplayOptions,
) -> int:
    """List the producer ids in the logs: what each did, what a broker would remember of it, which block it came from."""
    from kaudit.cli.audit import run_producers

    audit = AuditOptions(
        output=output,
        broker_version=broker_version,
        findings=findings,
        partitions=partitions,
        producers=active,
        log=log,
        blocks=blocks,
        read=read,
        layout=layout,
        require_all=require_all,
    )
    request = audit.request(settings_of(context), paths, display)
    query = listing.query(request.selection)
    return run_producers(request, query, engine.choose().producers)
