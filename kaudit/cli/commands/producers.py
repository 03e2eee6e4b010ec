"""`kaudit producers`: the producer ids in the logs."""

import typer

from kaudit.cli import options
from kaudit.cli.audit_options import (
    ApplicationLogOptions,
    AuditedLog,
    AuditOptions,
    AuditReadOptions,
    BlockSources,
    ClusterReadOptions,
    DisplayOptions,
    EngineOptions,
    FindingOptions,
    OutputOptions,
    PartitionFilter,
)
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.producer_options import ActivityFilter, ListingOptions
from kaudit.cli.settings.configure import settings_of

_EXAMPLES = """\b
Examples:
  kaudit producers --summary /var/lib/kafka/data
  kaudit producers --sort batches --limit 20 /var/lib/kafka/data
  kaudit producers --live kafka://broker1:9092/orders
  kaudit producers --zookeeper /data/zookeeper --with-findings /data/kafka
"""


app = typer.Typer()


@app.command(short_help="List the producer ids.", epilog=_EXAMPLES)
@with_option_groups
def producers(  # noqa: PLR0913 - typer reads the options off the signature
    context: typer.Context,
    paths: options.Paths,
    *,
    listing: ListingOptions,
    partitions: PartitionFilter,
    active: ActivityFilter,
    blocks: BlockSources,
    output: OutputOptions,
    findings: FindingOptions,
    log: AuditedLog,
    read: AuditReadOptions,
    cluster: ClusterReadOptions,
    engine: EngineOptions,
    display: DisplayOptions,
) -> int:
    """List the producer ids in the logs: what each did, what a broker would remember of it, which block it came from."""
    from kaudit.cli.audit import run_producers

    audit = AuditOptions(
        partitions=partitions,
        producers=active,
        output=output,
        findings=findings,
        log=log,
        logs=ApplicationLogOptions(),
        blocks=blocks,
        read=read,
        cluster=cluster,
    )
    request = audit.request(settings_of(context), paths, display)
    if listing.live:
        from kaudit.cli.live_producers import run_live_producers

        return run_live_producers(request, engine.choose())
    query = listing.query(request.selection)
    return run_producers(request, query, engine.choose())
