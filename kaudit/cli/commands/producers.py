"""`kaudit producers`: the producer ids in the logs."""

from kaudit.cli import options, producer_options
from kaudit.cli.exits import FailOn
from kaudit.pipeline.options import Depth
from kaudit.pipeline.query import Query, SortKey
from kaudit.report.console import ColorChoice


def producers(
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
    fail_on: options.FailOnOption = FailOn.ERROR,
    exit_zero: options.ExitZero = False,
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
    color: options.Color = ColorChoice.AUTO,
    no_color: options.NoColor = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    reproducible: options.Reproducible = False,
    version: options.Version = False,  # noqa: ARG001 - its callback has answered
) -> int:
    """List the producer ids in the logs: what each did, what a broker would remember of it, which block it came from."""
    from kaudit.cli.audit import Request, run_producers
    from kaudit.cli.parsing import parse_broker_version, parse_duration, parse_moment, parse_selection, parse_window
    from kaudit.cli.targets import parse_targets
    from kaudit.pipeline.options import ScanOptions

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
            jobs=jobs,
            depth=depth,
            zookeeper=zookeeper,
            blocks=blocks,
            metadata=metadata,
        ),
        selection=selection,
        targets=parse_targets(output_format or (), output, paths),
        fail_on=fail_on,
        exit_zero=exit_zero,
        color=ColorChoice.NEVER if no_color else color,
        quiet=quiet,
        verbose=verbose,
        reproducible=reproducible,
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
    # numpy only loads now, when every option is known to be right.
    from kaudit.engines import local

    return run_producers(request, query, local.producers)
