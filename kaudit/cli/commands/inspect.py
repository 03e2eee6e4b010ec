"""`kaudit inspect`: batches, records and every side file, decoded."""

from typing import Annotated

import typer

from kaudit.cli import options
from kaudit.cli.option_groups import with_option_groups

_EXAMPLES = """\b
Examples:
  kaudit inspect /var/lib/kafka/data/orders-3
  kaudit inspect --records --around 1200 orders-3/00000000000000001000.log
  kaudit inspect --at 16297 orders-3/00000000000000001000.log
  kaudit inspect --producer-id 42 --output-format jsonl /var/lib/kafka/data
"""

_TABLE_BYTES = 64

Records = Annotated[bool, typer.Option("--records", help="Show the records of each batch, with keys and values.")]
Hex = Annotated[bool, typer.Option("--hex", help="Keys and values in hex; default: text where it is UTF-8.")]
Utf8 = Annotated[bool, typer.Option("--utf8", help="Keys and values as UTF-8 whatever they are.")]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        "--max-bytes", metavar="N", min=0, help="Bytes shown of each key and value; default: 64 in tables, else all."
    ),
]
Around = Annotated[
    int | None, typer.Option("--around", metavar="OFFSET", min=0, help="The batch of this offset and its neighbours.")
]
At = Annotated[
    int | None, typer.Option("--at", metavar="POSITION", min=0, help="The header at this byte, field by field.")
]
Epochs = Annotated[
    list[int] | None, typer.Option("--producer-epoch", metavar="N", min=0, help="Only this producer epoch. Repeatable.")
]
LeaderEpochs = Annotated[
    list[int] | None, typer.Option("--leader-epoch", metavar="N", min=0, help="Only this leader epoch. Repeatable.")
]
Offsets = Annotated[
    str | None, typer.Option("--offset", metavar="A[..B]", help="Only this offset, or these (inclusive).")
]
Limit = Annotated[
    int | None, typer.Option("--max-decompressed", metavar="BYTES", min=1, help="Most bytes one batch may become.")
]
Topic = Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Topic of batches that name none.")]
Partition = Annotated[
    int | None, typer.Option("--partition", metavar="N", min=0, help="Partition of batches that name none.")
]
BrokerVersion = Annotated[
    str, typer.Option(metavar="VERSION", help="The broker that would load damaged files, e.g. 2.0.1; auto: any.")
]


app = typer.Typer()


@app.command(short_help="Decode batches, records and side files.", epilog=_EXAMPLES)
@with_option_groups
def inspect(  # noqa: PLR0913 - typer reads the options off the signature
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE_OR_DIR", help="A file of a log directory, a dump's text, or a directory; hdfs://, s3:// too."
        ),
    ],
    *,
    output_format: Annotated[
        list[str] | None,
        typer.Option(
            "--output-format",
            metavar="FMT[:FILE]",
            help="table (default), json, jsonl or parquet (-o DIR). Repeatable.",
        ),
    ] = None,
    output: options.OutputFile = None,
    records: Records = False,
    hex_bytes: Hex = False,
    utf8: Utf8 = False,
    max_bytes: MaxBytes = None,
    around: Around = None,
    at: At = None,
    producer_id: options.ProducerIds = None,
    producer_epoch: Epochs = None,
    leader_epoch: LeaderEpochs = None,
    offset: Offsets = None,
    since: options.Since = None,
    until: options.Until = None,
    topic: Topic = None,
    partition: Partition = None,
    max_decompressed: Limit = None,
    broker_version: BrokerVersion = "auto",
    terminal: options.TerminalOptions,
    version: options.Version = False,  # noqa: ARG001 - its callback has answered
) -> int:
    """Decode batches, records and side files into rows. Damage is shown, never a stop."""
    from kaudit.analysis.scan.options import UsageError
    from kaudit.cli.inspection import parse_offsets, parse_row_targets, run_inspect
    from kaudit.cli.parsing import check_int64, parse_broker_version, parse_window

    if hex_bytes and utf8:
        raise UsageError("--hex and --utf8: choose one")
    if at is not None and (records or around is not None):
        raise UsageError("--at shows one header: it goes with neither --records nor --around")
    for numbers, option in (
        (producer_id, "--producer-id"),
        (producer_epoch, "--producer-epoch"),
        (leader_epoch, "--leader-epoch"),
    ):
        check_int64(numbers or (), option)
    since_ms, until_ms = parse_window(since, until)
    first_offset, last_offset = parse_offsets(offset)
    requested = parse_broker_version(broker_version)
    targets = parse_row_targets(output_format or (), output, paths)

    from kaudit.broker.releases.version import Version
    from kaudit.formats.log.records import DEFAULT_LIMIT
    from kaudit.inspect.bytes_text import BytesForm, BytesFormatter
    from kaudit.inspect.row_filter import RowFilter
    from kaudit.inspect.walk import InspectOptions

    form = BytesForm.HEX if hex_bytes else BytesForm.UTF8 if utf8 else BytesForm.AUTO
    return run_inspect(
        InspectOptions(
            paths=paths,
            records=records,
            texts=BytesFormatter(form, max_bytes),
            wanted=RowFilter(
                frozenset(producer_id or ()),
                frozenset(producer_epoch or ()),
                frozenset(leader_epoch or ()),
                first_offset,
                last_offset,
                since_ms,
                until_ms,
            ),
            around=around,
            at=at,
            topic=topic,
            partition=partition,
            limit=max_decompressed or DEFAULT_LIMIT,
            version=None if requested == "auto" else Version.parse(requested),
        ),
        targets,
        terminal=terminal,
        table_bytes=_TABLE_BYTES,
    )
