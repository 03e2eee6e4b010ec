"""`kaudit inspect`: batches, records and every side file, decoded."""

from typing import Annotated

import typer

from kaudit.cli import options
from kaudit.cli.audit_options import ConnectionOptions, Filter, LogFacts, RowOutput
from kaudit.cli.commands import on_demand
from kaudit.cli.option_groups import OptionGroup, with_option_groups

_EXAMPLES = """\b
Examples:
  kaudit inspect /var/lib/kafka/data/orders-3
  kaudit inspect --records --around 1200 orders-3/00000000000000001000.log
  kaudit inspect --at 16297 orders-3/00000000000000001000.log
  kaudit inspect --producer-id 42 --output-format jsonl /var/lib/kafka/data
"""


class ContentOptions(OptionGroup, frozen=True, kw_only=True):
    """How much of each batch is shown."""

    heading = "Records"

    records: Annotated[
        bool, typer.Option("--records", help="Show the records of each batch, with keys and values.")
    ] = False
    hex_bytes: Annotated[
        bool, typer.Option("--hex", help="Keys and values in hex; default: text where it is UTF-8.")
    ] = False
    utf8: Annotated[bool, typer.Option("--utf8", help="Keys and values as UTF-8 whatever they are.")] = False
    max_bytes: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Bytes shown of each key and value; default: 64 in tables, else all."),
    ] = None
    max_decompressed: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most bytes one batch may become.")
    ] = None


class RowSelection(Filter, frozen=True, kw_only=True):
    """Which rows are shown."""

    around: Annotated[
        int | None, typer.Option(metavar="OFFSET", min=0, help="The batch of this offset and its neighbours.")
    ] = None
    at: Annotated[
        int | None, typer.Option(metavar="POSITION", min=0, help="The header at this byte, field by field.")
    ] = None
    offset: Annotated[str | None, typer.Option(metavar="A[..B]", help="Only this offset, or these (inclusive).")] = None
    producer_id: list[int] | None = None
    producer_epoch: Annotated[
        list[int] | None,
        typer.Option("--producer-epoch", metavar="N", min=0, help="Only this producer epoch. Repeatable."),
    ] = None
    leader_epoch: Annotated[
        list[int] | None, typer.Option("--leader-epoch", metavar="N", min=0, help="Only this leader epoch. Repeatable.")
    ] = None
    since: str | None = None
    until: str | None = None


class InspectedLog(OptionGroup, frozen=True, kw_only=True):
    """What a file does not say of itself."""

    heading = LogFacts.heading

    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="Topic of batches that name none.")] = None
    partition: Annotated[int | None, typer.Option(metavar="N", min=0, help="Partition of batches that name none.")] = (
        None
    )
    broker_version: Annotated[
        str, typer.Option(metavar="VERSION", help="The broker that would load damaged files, e.g. 2.0.1; auto: any.")
    ] = "auto"


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def inspect(  # noqa: PLR0913 - its groups of options
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE_OR_DIR",
            help="A file of a log directory, a dump's text, or a directory; hdfs://, s3:// too; "
            "kafka://HOST:PORT/TOPIC[/PARTITION].",
        ),
    ],
    *,
    content: ContentOptions,
    rows: RowSelection,
    output: RowOutput,
    log: InspectedLog,
    cluster: ConnectionOptions,
    terminal: options.TerminalOptions,
    version: options.VersionOption,  # noqa: ARG001 - its callback has answered
) -> int:
    """Decode batches, records and side files into rows. Damage is shown, never a stop."""
    return on_demand("inspection", "run_inspect")(paths, content, rows, output, log, cluster, terminal)
