"""Runs `kaudit producers`: the list of producer ids, or their comparison with brokers."""

import sys
from collections.abc import Sequence

from msgspec.structs import replace

from kaudit.cli.audit import Recording, check_urls, request_of, run_audit
from kaudit.cli.commands.producers import ListingOptions, ProducersCommand
from kaudit.cli.engine import choose_engine
from kaudit.cli.loading import on_demand
from kaudit.cli.request import AuditRequest
from kaudit.cli.settings import Settings
from kaudit.engines.progress import Progress
from kaudit.listings.query import Query
from kaudit.model.producer_listing import ProducersResult
from kaudit.source.option import parse_duration


def run_producers(settings: Settings, paths: Sequence[str], options: ProducersCommand) -> int:
    """List producer ids, or compare them with the brokers; return the exit code."""
    request = request_of(settings, paths, options)
    if options.listing.live:
        return on_demand("live_producers", "run_live")(
            request, choose_engine(options.engine)
        )  # kafka-python is an extra
    request = replace(request, options=replace(request.options, takes_logs=False))
    query = _query(options.listing, request)
    engine = choose_engine(options.engine)
    check_urls(request, engine)

    def produce(progress: Progress, recording: Recording) -> ProducersResult:
        if request.shows_histories("producers"):
            recording.keep(None, engine.record(request.options, progress))
        found = request.selection.of_producers(
            recording.list(engine.listed_producers(request.options, progress, query))
        )
        if found.omitted:
            sys.stderr.write(
                f"kaudit: the first {found.listed:,} producer ids of {found.listed + found.omitted:,}; "
                "--producer-id, --sort and --limit choose, and the tables of --output-format parquet have all\n"
            )
        return found

    return run_audit(
        request,
        "producers",
        produce,
        empty=lambda nothing: ProducersResult(nothing, (), found=0, listed=0, summary=nothing.summary.to_dict()),
    )


def _query(listing: ListingOptions, request: AuditRequest) -> Query:
    return Query(
        sort=listing.sort,
        reverse=listing.reverse,
        limit=listing.limit,
        min_batches=listing.min_batches,
        max_batches=listing.max_batches,
        min_epochs=listing.min_epochs,
        min_age_ms=parse_duration(listing.min_age, "--min-age"),
        max_age_ms=parse_duration(listing.max_age, "--max-age"),
        with_findings=listing.with_findings,
        summary_only=listing.summary,
        includes=request.selection.includes,
    )
