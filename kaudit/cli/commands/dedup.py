"""`kaudit dedup`: the records that a consumer reads twice, and how it could recognise them."""

import enum
from typing import Annotated

import typer
from msgspec.structs import replace

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import Compared, DisplayOptions, Paths, RowOutput
from kaudit.cli.settings import settings_of

_EXAMPLES = """\b
Examples:
  kaudit dedup /var/lib/kafka/data
  kaudit dedup --isolation-level read_committed orders-3
  kaudit dedup --identity key,value:order.version orders-3
  kaudit dedup --output-format parquet -o suspects orders-3
"""


class IsolationLevel(enum.Enum):
    """The values of a consumer's isolation.level."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


IsolationOption = Annotated[
    IsolationLevel,
    typer.Option(
        "--isolation-level",
        metavar="LEVEL",
        help="The level of the consumer: read_uncommitted reads aborted records too, read_committed does not.",
    ),
]

_Identity = Annotated[
    str | None,
    typer.Option(
        "--identity",
        metavar="PARTS",
        help="What makes a record the one it is: key, value, headers, timestamp, header:NAME, key:PATH, value:PATH, joined by commas; or "
        "debezium, outbox, cloudevents. By default key, value and headers, or what the first records of a topic plainly have.",
    ),
]

app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def dedup(  # noqa: PLR0913 - its groups of options
    context: typer.Context,
    paths: Paths,
    *,
    isolation_level: IsolationOption = IsolationLevel.READ_UNCOMMITTED,
    identity: _Identity = None,
    output: RowOutput,
    compared: Compared,
    display: DisplayOptions,
) -> int:
    """List the records that repeat earlier ones: which, why, and by what a consumer of these logs can recognise them.

    Each record is compared with the last 1,048,576 of its partition. Repeats that a scan reports (KA701, KA702, KA704) are listed
    from further back, too. Change events of Debezium and CloudEvents are recognised by their own ids. Keys are shown as SHA-256,
    other content never. -v lists each record.
    """
    scan = replace(compared, paths=paths, compacted_topics=settings_of(context).compacted_topics)
    return on_demand("deduplication", "run_dedup")(scan, output, isolation_level.value, identity, display)
