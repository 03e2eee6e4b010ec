"""`kaudit transactions`: transactions from input to output."""

from typing import Annotated

import typer
from msgspec.structs import replace

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import OptionGroup, Takes, with_option_groups
from kaudit.cli.options import LISTED, PRODUCERS, DisplayOptions, EngineOptions, OptionalPaths, RowOutput, inputs_of
from kaudit.cli.settings import settings_of
from kaudit.scanning.options import ScanOptions

_EXAMPLES = """
  kaudit transactions /var/lib/kafka/data
  kaudit transactions --group billing --limit 50 /var/lib/kafka/data
  kaudit transactions --transactional-id billing-1 broker-1 broker-2
  kaudit transactions --output-format json /var/lib/kafka/data
"""


class ChosenTransactions(OptionGroup, frozen=True, kw_only=True):
    """Which transactions are listed."""

    heading = "Listing"

    group: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="GROUP", help="Only producers that commit offsets of this group. Repeatable."),
    ] = None
    transactional_id: Annotated[
        list[str] | None,
        typer.Option("--transactional-id", metavar="ID", help="Only this transactional id. Repeatable."),
    ] = None
    limit: Annotated[int | None, typer.Option(metavar="N", min=0, help="List only the last N; all are counted.")] = None


_TAKEN = tuple(name for name in LISTED if name not in PRODUCERS)

app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def transactions(  # noqa: PLR0913 - its groups of options
    context: typer.Context,
    paths: OptionalPaths = None,
    *,
    chosen: ChosenTransactions,
    output: RowOutput,
    engine: EngineOptions,
    audit: Annotated[ScanOptions, Takes(_TAKEN)],
    display: DisplayOptions,
) -> int:
    """List transactions: the inputs that groups committed in each, what it wrote, how it ended, and whether read_committed sees it.

    Inputs that were processed twice, or skipped, and offsets that were committed outside come first (KA915, KA916, KA917).
    """
    scan = replace(audit, paths=inputs_of(paths, audit), compacted_topics=settings_of(context).compacted_topics)
    return on_demand("transaction_list", "run_transactions")(scan, chosen, output, engine, display)
