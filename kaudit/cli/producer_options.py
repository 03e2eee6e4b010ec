"""The options of `kaudit producers` alone."""

from typing import TYPE_CHECKING, Annotated

import typer

from kaudit.cli.audit_options import ProducerFilter
from kaudit.cli.option_groups import OptionGroup
from kaudit.listings.query import Query, SortKey

if TYPE_CHECKING:  # every check comes with it
    from kaudit.results.selection import Selection


class ListingOptions(OptionGroup, frozen=True, kw_only=True):
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
        from kaudit.cli.parsing import parse_duration

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


class ActivityFilter(ProducerFilter, frozen=True, kw_only=True):
    """Which ids are listed, by when they were active: the times say something else here than in an audit."""

    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only ids active at or after this time (RFC 3339, UTC).")
    ] = None
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only ids active at or before this time.")] = None
