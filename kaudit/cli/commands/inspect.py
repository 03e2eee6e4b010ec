"""`kaudit inspect`: batches, records and every side file, decoded."""

from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import OptionGroup, Takes, with_option_groups
from kaudit.cli.options import CONNECTION, PRODUCERS, RowOutput, TerminalOptions, VersionOption
from kaudit.scanning.options import ScanOptions

_EXAMPLES = """
  kaudit inspect /var/lib/kafka/data/orders-3
  kaudit inspect --records --around 1200 orders-3/00000000000000001000.log
  kaudit inspect --at 16297 orders-3/00000000000000001000.log
  kaudit inspect --output-format jsonl --producer-id 42 /var/lib/kafka/data
"""


_SHOWN = {
    "producer-id": "Only batches of this producer id. Repeatable.",
    "since": "Only batches from this time on (RFC 3339, UTC).",
    "until": "Only batches up to this time.",
}
"""Here these options select batches; in an audit they select findings."""


class ContentOptions(OptionGroup, frozen=True, kw_only=True):
    """How much of each batch is shown."""

    heading = "Records"

    records: Annotated[
        bool, typer.Option("--records", help="Show the records of each batch, with keys and values.")
    ] = False
    hex_bytes: Annotated[
        bool, typer.Option("--hex", help="Show keys and values in hex; default: as text where they are UTF-8.")
    ] = False
    utf8: Annotated[bool, typer.Option("--utf8", help="Show keys and values as UTF-8 even where they are not.")] = False
    max_bytes: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Bytes shown of each key and value; default: 64 in tables, else all."),
    ] = None
    max_decompressed: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most bytes that one batch may have after decompression.")
    ] = None


class RowSelection(OptionGroup, frozen=True, kw_only=True):
    """Which rows are shown."""

    heading = "Filters"

    around: Annotated[
        int | None, typer.Option(metavar="OFFSET", min=0, help="Only the batch with this offset and its neighbours.")
    ] = None
    at: Annotated[
        int | None, typer.Option(metavar="POSITION", min=0, help="Only the batch header at this byte, field by field.")
    ] = None
    offset: Annotated[str | None, typer.Option(metavar="A[..B]", help="Only this offset, or these (inclusive).")] = None
    producer_epoch: Annotated[
        list[int] | None,
        typer.Option("--producer-epoch", metavar="N", min=0, help="Only this producer epoch. Repeatable."),
    ] = None
    leader_epoch: Annotated[
        list[int] | None, typer.Option("--leader-epoch", metavar="N", min=0, help="Only this leader epoch. Repeatable.")
    ] = None
    audit: Annotated[ScanOptions, Takes((*PRODUCERS, *CONNECTION), _SHOWN)]


class InspectedLog(OptionGroup, frozen=True, kw_only=True):
    """What a file itself does not say."""

    heading = "About the log"

    topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Topic of batches in files that do not name it.")
    ] = None
    partition: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Partition of batches in files that do not name it.")
    ] = None
    broker_version: Annotated[
        str, typer.Option(metavar="VERSION", help="The broker that would load damaged files, e.g. 2.0.1; auto: any.")
    ] = "auto"


class InspectOptions(OptionGroup, frozen=True, kw_only=True):
    """What is decoded, and how it is shown."""

    content: ContentOptions
    rows: RowSelection
    output: RowOutput
    log: InspectedLog
    terminal: TerminalOptions
    version: VersionOption


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def inspect(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE_OR_DIR",
            help="A file of a log directory, output of kafka-dump-log, or a directory; also hdfs://, s3://, "
            "kafka://HOST:PORT/TOPIC[/PARTITION].",
        ),
    ],
    *,
    options: InspectOptions,
) -> int:
    """Decode batches, records and side files into rows. Damage is shown, and the rest is read."""
    return on_demand("inspection", "run_inspect")(paths, options)
