"""`kaudit capture`: the raw batches of a live cluster as segment files."""

from typing import Annotated

import typer

from kaudit.cli.loading import on_demand
from kaudit.cli.option_groups import OptionGroup, Takes, with_option_groups
from kaudit.cli.options import CONNECTION, Quiet, RedactSecret, TextFormat, TextOrJson, Verbose, VersionOption
from kaudit.scanning.options import ScanOptions

_EXAMPLES = """
  kaudit capture -o orders kafka://broker1:9092/orders && kaudit scan orders
  kaudit capture --command-config client.properties -o evidence \\
      kafka://broker1:9093/orders kafka://broker1:9093/__transaction_state
  kaudit capture --from-replica 2 -o b2 kafka://broker1:9092/orders/0
  kaudit capture --redact -o public /var/lib/kafka/data server.log
  kaudit capture --follow -o s3://backup/orders kafka://broker1:9092/orders
"""


class CaptureOptions(OptionGroup, frozen=True, kw_only=True):
    """What is fetched, from whom, how fast, and where it goes."""

    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Where to write: a new directory, or one of an earlier capture; hdfs:// and s3:// too.",
        ),
    ]
    connection: Annotated[ScanOptions, Takes((*CONNECTION, "max-bytes-per-second"))]
    from_replica: Annotated[
        int | None,
        typer.Option(
            "--from-replica", metavar="ID", min=0, help="Fetch from this broker, follower or leader (KIP-392)."
        ),
    ] = None
    follow: Annotated[bool, typer.Option("--follow", help="Continue at the end of the log until interrupted.")] = False
    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="Copy log directories, archives or topics with hashes in place of names, ids, hosts, keys, values and headers: the "
            "same findings, to be shown to anybody.",
        ),
    ] = False
    redact_secret: RedactSecret = None
    output_format: TextOrJson = TextFormat.TEXT
    quiet: Quiet = False
    verbose: Verbose = False
    version: VersionOption


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def capture(
    urls: Annotated[
        list[str],
        typer.Argument(
            metavar="URL",
            help="kafka://HOST:PORT[,HOST:PORT]/TOPIC[/PARTITION]; several topics of one cluster. With --redact also paths.",
        ),
    ],
    *,
    options: CaptureOptions,
) -> int:
    """Copy the batches of topics, byte for byte, into a log directory as a broker would have written it.

    Every command reads it like a broker's own. A second run continues where the first ended. capture.json records from whom
    and when it was copied, and what is missing. With --redact the copy holds no name and no content of the original, and what
    stays in clear is said at the end. Nothing is ever written to the cluster: no group, no offsets, no topics.
    """
    if options.redact or options.redact_secret is not None:
        return on_demand("redacted_capture", "run_redacted_capture")(urls, options)
    return on_demand("capturing", "run_capture")(urls, options)
