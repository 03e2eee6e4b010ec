"""`kaudit producers`: the producer ids in the logs."""

from typing import TYPE_CHECKING, Annotated

import typer

from kaudit.cli import options
from kaudit.cli.audit import AuditRequest, run_producers
from kaudit.cli.audit_options import (
    ApplicationLogOptions,
    AuditedLog,
    AuditOptions,
    AuditReadOptions,
    BlockSources,
    ClusterReadOptions,
    DisplayOptions,
    EngineOptions,
    FindingOptions,
    OutputOptions,
    PartitionFilter,
    ProducerFilter,
)
from kaudit.cli.exits import ExitCode
from kaudit.cli.option_groups import OptionGroup, with_option_groups
from kaudit.cli.parsing import parse_duration
from kaudit.cli.settings.configure import settings_of
from kaudit.cli.streams import write_pieces
from kaudit.cli.targets import console_of
from kaudit.errors import UsageError
from kaudit.listings.query import Query, SortKey
from kaudit.report.text.live_producers import live_document, live_table
from kaudit.source.kafka.options import TopicUrl
from kaudit.source.uri import KAFKA, Uri, UrlError

if TYPE_CHECKING:  # every check comes with it
    from kaudit.results.selection import Selection
if TYPE_CHECKING:  # numpy comes with it
    from kaudit.engines.engine import Engine

_LIVE_FORMATS = ("table", "json")
_EXAMPLES = """\b
Examples:
  kaudit producers --summary /var/lib/kafka/data
  kaudit producers --sort batches --limit 20 /var/lib/kafka/data
  kaudit producers --live kafka://broker1:9092/orders
  kaudit producers --zookeeper /data/zookeeper --with-findings /data/kafka
"""


class _Listing(OptionGroup, frozen=True, kw_only=True):
    """Which ids are listed, and in which order."""

    heading = "Listing"

    summary: Annotated[
        bool, typer.Option("--summary", help="Only the figures of all ids, with histograms, and no list.")
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
    reverse: Annotated[bool, typer.Option("--reverse", help="The other way round.")] = False
    limit: Annotated[int | None, typer.Option(metavar="N", min=0, help="List the first N only.")] = None
    min_batches: Annotated[int | None, typer.Option(metavar="N", min=0, help="Only ids with N batches or more.")] = None
    max_batches: Annotated[int | None, typer.Option(metavar="N", min=0, help="Only ids with N batches or fewer.")] = (
        None
    )
    min_epochs: Annotated[int | None, typer.Option(metavar="N", min=0, help="Only ids seen in N epochs or more.")] = (
        None
    )
    min_age: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Only ids silent for so long: 90s, 30m, 12h, 7d, before --now.")
    ] = None
    max_age: Annotated[str | None, typer.Option(metavar="SPAN", help="Only ids silent for no longer.")] = None
    with_findings: Annotated[bool, typer.Option("--with-findings", help="Only ids that a finding is about.")] = False

    def query(self, selection: "Selection") -> Query:
        """Return what was asked for. Raises UsageError for an age that is no span of time."""
        return Query(
            sort=self.sort,
            reverse=self.reverse,
            limit=self.limit,
            min_batches=self.min_batches,
            max_batches=self.max_batches,
            min_epochs=self.min_epochs,
            min_age_ms=parse_duration(self.min_age, "--min-age"),
            max_age_ms=parse_duration(self.max_age, "--max-age"),
            with_findings=self.with_findings,
            summary_only=self.summary,
            includes=selection.includes,
        )


class _ActivityFilter(ProducerFilter, frozen=True, kw_only=True):
    """Which ids are listed, by when they were active: the times say something else here than in an audit."""

    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only ids active at or after this time (RFC 3339, UTC).")
    ] = None
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only ids active at or before this time.")] = None


app = typer.Typer()


@app.command(epilog=_EXAMPLES)
@with_option_groups
def producers(  # noqa: PLR0913 - typer reads the options off the signature
    context: typer.Context,
    paths: options.Paths,
    *,
    listing: _Listing,
    partitions: PartitionFilter,
    active: _ActivityFilter,
    blocks: BlockSources,
    output: OutputOptions,
    findings: FindingOptions,
    log: AuditedLog,
    read: AuditReadOptions,
    cluster: ClusterReadOptions,
    engine: EngineOptions,
    display: DisplayOptions,
) -> int:
    """List the producer ids in the logs: what each did, what a broker would remember of it, which block it came from."""
    audit = AuditOptions(
        partitions=partitions,
        producers=active,
        output=output,
        findings=findings,
        log=log,
        logs=ApplicationLogOptions(),
        blocks=blocks,
        read=read,
        cluster=cluster,
    )
    request = audit.request(settings_of(context), paths, display)
    if listing.live:
        return _run_live(request, engine.choose())
    query = listing.query(request.selection)
    return run_producers(request, query, engine.choose())


def _run_live(request: AuditRequest, engine: "Engine") -> int:
    """Compare with the brokers and show; return 1 where something differs without an explanation.

    Raises UsageError for inputs that are not on one cluster, UnreadableInputError where the leaders cannot be asked.
    """
    uris = [Uri.parse(path) for path in request.options.paths]
    if any(uri.scheme != KAFKA for uri in uris):
        raise UsageError("--live asks brokers: PATH is kafka://HOST:PORT/TOPIC[/PARTITION]")
    names = [target.form.name for target in request.targets]
    if not set(names) <= set(_LIVE_FORMATS):
        raise UsageError(f"--live: --output-format is {' or '.join(_LIVE_FORMATS)}")
    try:
        urls = [TopicUrl.of(uri) for uri in uris]
    except UrlError as error:
        raise UsageError(str(error)) from None
    if len({url.servers for url in urls}) > 1:
        raise UsageError("--live compares with one cluster: the URLs name different brokers")
    from kaudit.cli.live_producers import compare_with_brokers  # kafka-python is an extra

    compared = compare_with_brokers(request, engine, urls[0].servers)
    for target in request.targets:
        text = (
            live_document(compared)
            if target.form.name == "json"
            else live_table(compared, console_of(target, request.color))
        )
        write_pieces(target.file, [text])
    return ExitCode.FINDINGS if any(part.unexplained for part in compared) and not request.exit_zero else ExitCode.OK
