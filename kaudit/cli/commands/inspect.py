"""`kaudit inspect`: batches, records and every side file, decoded."""

from typing import Annotated

import typer

from kaudit.cli import options
from kaudit.cli.audit_options import ConnectionOptions
from kaudit.cli.inspect_options import ContentOptions, InspectedLog, RowOutput, RowSelection
from kaudit.cli.option_groups import with_option_groups

_EXAMPLES = """\b
Examples:
  kaudit inspect /var/lib/kafka/data/orders-3
  kaudit inspect --records --around 1200 orders-3/00000000000000001000.log
  kaudit inspect --at 16297 orders-3/00000000000000001000.log
  kaudit inspect --producer-id 42 --output-format jsonl /var/lib/kafka/data
"""

_TABLE_BYTES = 64


app = typer.Typer()


@app.command(short_help="Decode batches, records and side files.", epilog=_EXAMPLES)
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
    from kaudit.cli.inspection import parse_row_targets, run_inspect
    from kaudit.cli.parsing import parse_broker_version
    from kaudit.errors import UsageError

    if rows.at is not None and (content.records or rows.around is not None):
        raise UsageError("--at shows one header: it goes with neither --records nor --around")
    wanted = rows.row_filter()
    requested = parse_broker_version(log.broker_version)
    targets = parse_row_targets(output.output_format or (), output.output, paths)

    from kaudit.broker.releases.version import Version
    from kaudit.formats.log.records import DEFAULT_LIMIT
    from kaudit.inspect.walk import InspectOptions
    from kaudit.source.kafka.options import ClusterOptions

    return run_inspect(
        InspectOptions(
            paths=paths,
            records=content.records,
            texts=content.formatter(),
            wanted=wanted,
            around=rows.around,
            at=rows.at,
            topic=log.topic,
            partition=log.partition,
            limit=content.max_decompressed or DEFAULT_LIMIT,
            cluster=ClusterOptions(cluster.command_config),
            version=None if requested == "auto" else Version.parse(requested),
        ),
        targets,
        terminal=terminal,
        table_bytes=_TABLE_BYTES,
    )
