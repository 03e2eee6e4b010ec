"""`kaudit producers`: the producer ids in the logs."""

import typer

from kaudit.cli import options, producer_options
from kaudit.cli.exits import FailOn
from kaudit.pipeline.options import Depth
from kaudit.pipeline.query import Query, SortKey
from kaudit.report.console import ColorChoice


def producers(
    context: typer.Context,
    paths: options.Paths,
    *,
    output_format: options.OutputFormats = None,
    output: options.OutputFile = None,
    summary: producer_options.Summary = False,
    sort: producer_options.Sort = SortKey.ID,
    reverse: producer_options.Reverse = False,
    limit: producer_options.Limit = None,
    min_batches: producer_options.MinBatches = None,
    max_batches: producer_options.MaxBatches = None,
    min_epochs: producer_options.MinEpochs = None,
    min_age: producer_options.MinAge = None,
    max_age: producer_options.MaxAge = None,
    with_findings: producer_options.WithFindings = False,
    zookeeper: options.ZooKeeper = None,
    blocks: options.Blocks = None,
    metadata: options.Metadata = None,
    broker_version: options.BrokerVersion = "auto",
    select: options.Select = None,
    ignore: options.Ignore = None,
    severity: options.SeverityOption = None,
    fail_on: options.FailOnOption = FailOn.ERROR,
    exit_zero: options.ExitZero = False,
    baseline: options.BaselineOption = None,
    max_findings: options.MaxFindings = None,
    topic: options.Topics = None,
    partition: options.Partitions = None,
    producer_id: options.ProducerIds = None,
    since: producer_options.Since = None,
    until: producer_options.Until = None,
    now: options.Now = None,
    log_start_offset: options.LogStartOffset = None,
    compacted: options.Compacted = False,
    jobs: options.Jobs = None,
    depth: options.DepthOption = Depth.CRC,
    layout: options.Layout = None,
    engine: options.EngineOption = options.EngineChoice.LOCAL,
    master: options.Master = None,
    spark_conf: options.SparkSettings = None,
    color: options.Color = ColorChoice.AUTO,
    no_color: options.NoColor = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    reproducible: options.Reproducible = False,
    config: options.Config = None,  # noqa: ARG001 - read before the other options
    isolated: options.Isolated = False,  # noqa: ARG001 - read before the other options
    version: options.Version = False,  # noqa: ARG001 - its callback has answered
) -> int:
    """List the producer ids in the logs: what each did, what a broker would remember of it, which block it came from."""
    from kaudit.cli.audit import Request, run_producers
    from kaudit.cli.decisions import parse_policy
    from kaudit.cli.engine import choose_engine
    from kaudit.cli.parsing import parse_broker_version, parse_duration, parse_moment, parse_selection, parse_window
    from kaudit.cli.settings.command import settings_of
    from kaudit.cli.targets import parse_targets
    from kaudit.pipeline.options import ScanOptions

    settings = settings_of(context)
    since_ms, until_ms = parse_window(since, until)
    selection = parse_selection(select or (), ignore or ())
    request = Request(
        options=ScanOptions(
            paths=paths,
            broker_version=parse_broker_version(broker_version),
            topics=topic or (),
            partitions=partition or (),
            producer_ids=producer_id or (),
            since_ms=since_ms,
            until_ms=until_ms,
            now_ms=parse_moment(now, "--now"),
            log_start_offset=log_start_offset,
            compacted=compacted,
            compacted_topics=tuple(rule.pattern for rule in settings.topics if rule.compacted),
            jobs=jobs,
            depth=depth,
            zookeeper=zookeeper,
            blocks=blocks,
            metadata=metadata,
            layout=layout,
        ),
        selection=selection,
        targets=parse_targets(output_format or (), output, paths),
        fail_on=fail_on,
        exit_zero=exit_zero,
        color=ColorChoice.NEVER if no_color else color,
        quiet=quiet,
        verbose=verbose,
        reproducible=reproducible,
        policy=parse_policy(severity or (), baseline, max_findings, settings),
    )
    query = Query(
        sort=sort,
        reverse=reverse,
        limit=limit,
        min_batches=min_batches,
        max_batches=max_batches,
        min_epochs=min_epochs,
        min_age_ms=parse_duration(min_age, "--min-age"),
        max_age_ms=parse_duration(max_age, "--max-age"),
        with_findings=with_findings,
        summary_only=summary,
        includes=selection.includes,
    )
    return run_producers(request, query, choose_engine(engine, master, spark_conf or ()).producers)
