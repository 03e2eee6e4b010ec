"""`kaudit producers`: the producer ids in the logs."""

from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import OptionGroup, Takes, with_option_groups
from kaudit.cli.options import LISTED, AuditOptions, OptionalPaths, inputs_of
from kaudit.cli.settings import settings_of
from kaudit.listings.query import SortKey
from kaudit.scanning.options import ScanOptions

_EXAMPLES = """
  kaudit producers --summary /var/lib/kafka/data
  kaudit producers --sort batches --limit 20 /var/lib/kafka/data
  kaudit producers --live kafka://broker1:9092/orders
  kaudit producers --zookeeper /data/zookeeper --with-findings /data/kafka
"""


class ListingOptions(OptionGroup, frozen=True, kw_only=True):
    """Which ids are listed, and in which order."""

    heading = "Listing"

    summary: Annotated[
        bool, typer.Option("--summary", help="Show only statistics of all ids, with histograms, and no list.")
    ] = False
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="For kafka://: compare the state the log yields with what the brokers remember (DescribeProducers).",
        ),
    ] = False
    sort: Annotated[
        SortKey,
        typer.Option(
            "--sort", metavar="ORDER", help="By id, oldest first, or the latest, busiest, most suspect first."
        ),
    ] = SortKey.ID
    reverse: Annotated[bool, typer.Option("--reverse", help="Reverse the order.")] = False
    limit: Annotated[int | None, typer.Option(metavar="N", min=0, help="List only the first N.")] = None
    min_batches: Annotated[int | None, typer.Option(metavar="N", min=0, help="Only ids with N batches or more.")] = None
    max_batches: Annotated[int | None, typer.Option(metavar="N", min=0, help="Only ids with N batches or fewer.")] = (
        None
    )
    min_epochs: Annotated[int | None, typer.Option(metavar="N", min=0, help="Only ids seen in N epochs or more.")] = (
        None
    )
    min_age: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="Only ids silent for at least this long before --now: 90s, 30m, 12h, 7d."),
    ] = None
    max_age: Annotated[str | None, typer.Option(metavar="SPAN", help="Only ids silent for at most this long.")] = None
    with_findings: Annotated[bool, typer.Option("--with-findings", help="Only ids with findings.")] = False


_ACTIVITY = {
    "since": "Only ids active at or after this time (RFC 3339, UTC).",
    "until": "Only ids active at or before this time.",
}
"""Here the times select ids; in an audit they select findings."""


class ProducersCommand(AuditOptions, frozen=True, kw_only=True):
    """What `producers` lists, and how."""

    listing: ListingOptions
    audit: Annotated[ScanOptions, Takes(LISTED, _ACTIVITY)]


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def producers(context: typer.Context, paths: OptionalPaths = None, *, options: ProducersCommand) -> int:
    """List the producer ids in the logs: what each did, what a broker would remember of it, which block it came from."""
    return on_demand("producer_list", "run_producers")(settings_of(context), inputs_of(paths, options.audit), options)
