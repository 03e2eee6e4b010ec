"""`kaudit scan`: audit logs."""

import typer

from kaudit.cli import options
from kaudit.cli.exits import FailOn
from kaudit.pipeline.options import Depth
from kaudit.report.console import ColorChoice


def scan(
    context: typer.Context,
    paths: options.Paths,
    *,
    output_format: options.OutputFormats = None,
    output: options.OutputFile = None,
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
    since: options.Since = None,
    until: options.Until = None,
    now: options.Now = None,
    log_start_offset: options.LogStartOffset = None,
    compacted: options.Compacted = False,
    zookeeper: options.ZooKeeper = None,
    blocks: options.Blocks = None,
    metadata: options.Metadata = None,
    jobs: options.Jobs = None,
    depth: options.DepthOption = Depth.CRC,
    layout: options.Layout = None,
    batches: options.BatchesTable = False,
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
    """Audit broker logs: what went missing, appears twice, or came from a fenced producer - where, and why.

    Nothing is ever written into PATH. A directory in use by a running broker is fine.
    """
    from kaudit.cli.audit import Request, run_recording, run_scan
    from kaudit.cli.decisions import parse_policy
    from kaudit.cli.engine import choose_engine
    from kaudit.cli.parsing import parse_broker_version, parse_moment, parse_selection, parse_window
    from kaudit.cli.settings.command import settings_of
    from kaudit.cli.targets import parse_targets
    from kaudit.pipeline.options import ScanOptions, UsageError

    settings = settings_of(context)
    since_ms, until_ms = parse_window(since, until)
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
        selection=parse_selection(select or (), ignore or ()),
        targets=parse_targets(output_format or (), output, paths),
        fail_on=fail_on,
        exit_zero=exit_zero,
        color=ColorChoice.NEVER if no_color else color,
        quiet=quiet,
        verbose=verbose,
        reproducible=reproducible,
        policy=parse_policy(severity or (), baseline, max_findings, settings),
    )
    chosen = choose_engine(engine, master, spark_conf or ())
    if any(target.form.directory for target in request.targets):
        return run_recording(request, chosen.record, batches=batches)
    if batches:
        raise UsageError("--batches needs --output-format parquet")
    return run_scan(request, chosen.scan)
