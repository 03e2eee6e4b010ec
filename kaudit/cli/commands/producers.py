"""`kaudit producers`: the producer ids in the logs."""

from typing import TYPE_CHECKING

from kaudit.cli import options
from kaudit.cli.audit_options import Audit, Blocks, Manner, Missing, Output, Reading, Verdict, Where, Which
from kaudit.cli.producer_options import Active, Listing
from kaudit.cli.settings.settings import Settings

if TYPE_CHECKING:  # a plain command line does without
    import typer

_EXAMPLES = """\b
Examples:
  kaudit producers --summary /var/lib/kafka/data
  kaudit producers --sort batches --limit 20 /var/lib/kafka/data
  kaudit producers --zookeeper /data/zookeeper --with-findings /data/kafka
"""


def producers(
    settings: Settings,
    paths: options.Paths,
    *,
    output: Output,
    listing: Listing,
    blocks: Blocks,
    broker_version: options.BrokerVersion = "auto",
    verdict: Verdict,
    which: Which,
    active: Active,
    missing: Missing,
    reading: Reading,
    layout: options.Layout = None,
    where: Where,
    manner: Manner,
) -> int:
    """List the producer ids in the logs: what each did, what a broker would remember of it, which block it came from."""
    from kaudit.cli.audit import run_producers

    asked = Audit(
        output=output,
        broker_version=broker_version,
        verdict=verdict,
        which=which,
        who=active,
        missing=missing,
        blocks=blocks,
        reading=reading,
        layout=layout,
    )
    request = asked.request(settings, paths, manner)
    query = listing.query(request.selection)
    return run_producers(request, query, where.choose().producers)


def register(app: "typer.Typer") -> None:
    """Add the command."""
    from kaudit.cli.settings.command import ConfiguredCommand
    from kaudit.cli.typed import typed

    app.command(cls=ConfiguredCommand, short_help="List the producer ids.", epilog=_EXAMPLES)(typed(producers))
