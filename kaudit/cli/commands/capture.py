"""`kaudit capture`: the raw batches of a live cluster as segment files."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kaudit.cli import options
from kaudit.cli.exits import ExitCode
from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.streams import write_stdout
from kaudit.errors import UsageError
from kaudit.report.console import visible
from kaudit.report.text.formatting import size
from kaudit.source.kafka.options import DEFAULT_BYTES_PER_SECOND, TopicUrl
from kaudit.source.uri import Uri, UrlError

if TYPE_CHECKING:
    from kaudit.capture.account import Account

_EXAMPLES = """\b
Examples:
  kaudit capture -o orders kafka://broker1:9092/orders && kaudit scan orders
  kaudit capture --command-config client.properties -o evidence \\
      kafka://broker1:9093/orders kafka://broker1:9093/__transaction_state
  kaudit capture --from-replica 2 -o b2 kafka://broker1:9092/orders/0
  kaudit capture --follow -o s3://backup/orders kafka://broker1:9092/orders
"""


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def capture(  # noqa: PLR0913 - typer reads the options off the signature
    urls: Annotated[
        list[str],
        typer.Argument(
            metavar="URL", help="kafka://HOST:PORT[,HOST:PORT]/TOPIC[/PARTITION]; several topics of one cluster."
        ),
    ],
    *,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Where to write: a new directory, or one of an earlier capture; hdfs:// and s3:// too.",
        ),
    ],
    command_config: str | None = None,
    from_replica: Annotated[
        int | None,
        typer.Option(
            "--from-replica", metavar="ID", min=0, help="Fetch from this broker, follower or leader (KIP-392)."
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on at the end, until interrupted.")] = False,
    max_bytes_per_second: int = DEFAULT_BYTES_PER_SECOND,
    output_format: options.TextOrJson = options.TextFormat.TEXT,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    version: options.VersionOption,  # noqa: ARG001 - its callback has answered
) -> int:
    """Copy the batches of topics, byte for byte, into a log directory as a broker would have written it.

    Every command reads it like a broker's own. A second run goes on where the first ended. capture.json says from whom
    and when, and what is missing. Nothing is ever written to the cluster: no group, no offsets, no topics.
    """
    servers, topics = _wanted(urls)
    from kaudit.cli.capturing import run_capture  # kafka-python is an extra

    account = run_capture(
        servers,
        topics,
        output=output,
        command_config=command_config,
        from_replica=from_replica,
        follow=follow,
        max_bytes_per_second=max_bytes_per_second or None,
        quiet=quiet,
        verbose=verbose,
    )
    as_json = output_format is options.TextFormat.JSON
    if as_json or not quiet:
        write_stdout(account.text() if as_json else _summary(account, topics, output))
    outcome = account.runs[-1].outcome
    return {"incomplete": ExitCode.UNREADABLE, "interrupted": ExitCode.INTERRUPTED}.get(outcome, ExitCode.OK)


def _wanted(urls: list[str]) -> tuple[str, dict[str, list[int] | None]]:
    """Return the servers, and partitions, None for all, by topic. Raises UsageError, also for URLs of several clusters."""
    parsed = []
    for text in urls:
        try:
            uri = Uri.parse(text)
            if uri.scheme != "kafka":
                raise UsageError(f"{text}: kaudit capture reads kafka://HOST:PORT/TOPIC[/PARTITION]")
            parsed.append(TopicUrl.of(uri))
        except UrlError as error:
            raise UsageError(str(error)) from None
    if len({url.servers for url in parsed}) > 1:
        raise UsageError("one capture is of one cluster: the URLs name different brokers")
    topics: dict[str, list[int] | None] = {}
    for url in parsed:
        known = topics.setdefault(url.topic, [])
        if url.partition is None or known is None:
            topics[url.topic] = None
        elif url.partition not in known:
            known.append(url.partition)
    return parsed[0].servers, topics


def _summary(account: "Account", topics: Mapping[str, Sequence[int] | None], output: str) -> str:
    """Return a line for each partition that was asked for, and one for all."""
    rows = [
        part
        for part in account.partitions
        if part.topic in topics and part.partition in (topics[part.topic] or [part.partition])
    ]
    lines = []
    for part in rows:
        offsets = (
            "nothing"
            if part.next_offset <= part.first_offset
            else f"offsets {part.first_offset} to {part.next_offset - 1}"
        )
        missing = sum(each.last_offset - each.first_offset + 1 for each in part.missing)
        notes = [f"{missing:,} offsets are missing"] if missing else []
        notes += [f"{part.compacted_offsets:,} compacted away"] if part.compacted_offsets else []
        notes += [part.problem] if part.problem else []
        lines.append(", ".join([f"{part.name}: {offsets}", size(part.bytes), *notes]))
    run = account.runs[-1]
    lines.append(f"{size(run.bytes)} captured into {output}")
    return "".join(f"{visible(line)}\n" for line in lines)
