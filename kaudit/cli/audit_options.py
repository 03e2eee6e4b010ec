"""The groups of options that scan, timeline, producers, diff and report share, and the request each makes.

A command takes groups as parameters (`kaudit.cli.option_groups`); `--help` lists the options in that order.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaudit.analysis.scan.options import Depth, ScanOptions
from kaudit.cli import options
from kaudit.cli.exits import FailOn
from kaudit.cli.option_groups import OptionGroup
from kaudit.cli.settings.settings import Settings

if TYPE_CHECKING:  # every format comes with it
    from kaudit.cli.audit import AuditRequest
    from kaudit.cli.engine import Engine


class OutputOptions(OptionGroup, frozen=True, kw_only=True):
    """Which formats, and where they go."""

    output_format: options.OutputFormats = None
    output: options.OutputFile = None


class FindingOptions(OptionGroup, frozen=True, kw_only=True):
    """Which findings are reported, how severe they are, and which of them fail the run."""

    select: options.Select = None
    ignore: options.Ignore = None
    severity: options.SeverityOption = None
    fail_on: options.FailOnOption = FailOn.ERROR
    exit_zero: options.ExitZero = False
    baseline: options.BaselineOption = None
    max_findings: options.MaxFindings = None


class PartitionFilter(OptionGroup, frozen=True, kw_only=True):
    """Which partitions are read."""

    topic: options.Topics = None
    partition: options.Partitions = None


class ProducerFilter(OptionGroup, frozen=True, kw_only=True):
    """Which producers and which times are reported."""

    producer_id: options.ProducerIds = None
    since: options.Since = None
    until: options.Until = None
    now: options.Now = None


class LogFacts(OptionGroup, frozen=True, kw_only=True):
    """What a broker knows of a log and a copy of its directory may lack."""

    log_start_offset: options.LogStartOffset = None
    compacted: options.Compacted = False


class BlockSources(OptionGroup, frozen=True, kw_only=True):
    """Where the blocks of producer ids are recorded."""

    zookeeper: options.ZooKeeper = None
    blocks: options.Blocks = None
    metadata: options.Metadata = None


class ReadOptions(OptionGroup, frozen=True, kw_only=True):
    """How logs are read."""

    jobs: options.Jobs = None
    depth: options.DepthOption = Depth.CRC


class EngineOptions(OptionGroup, frozen=True, kw_only=True):
    """Which engine does the work."""

    engine: options.EngineOption = options.EngineChoice.LOCAL
    master: options.Master = None
    spark_conf: options.SparkSettings = None

    def choose(self) -> "Engine":
        """Return the engine. Raises UsageError where it cannot be had."""
        from kaudit.cli.engine import choose_engine

        return choose_engine(self.engine, self.master, self.spark_conf or ())


class DisplayOptions(OptionGroup, frozen=True, kw_only=True):
    """How the result is shown, and what every command that can be configured takes."""

    terminal: options.TerminalOptions
    quiet: options.Quiet = False
    verbose: options.Verbose = False
    reproducible: options.Reproducible = False
    configuration: options.ConfigurationOptions
    version: options.Version = False
    """Its callback has answered."""


class ReportOptions(OptionGroup, frozen=True, kw_only=True):
    """How `report` renders a saved scan."""

    output: OutputOptions
    findings: FindingOptions

    def request(self, settings: Settings, saved: str, display: DisplayOptions) -> "AuditRequest":
        """Return the request these options make. Raises UsageError for an option that means nothing."""
        return _request(settings, ScanOptions(paths=[saved]), self.output, self.findings, display)


class DiffOptions(OptionGroup, frozen=True, kw_only=True):
    """What `diff` compares, and how."""

    output: OutputOptions
    findings: FindingOptions
    partitions: PartitionFilter
    log: LogFacts
    read: ReadOptions

    def request(self, settings: Settings, paths: Sequence[str], display: DisplayOptions) -> "AuditRequest":
        """Return the request these options make. Raises UsageError for an option that means nothing."""
        scan = _scan_options(settings, paths, self.partitions, self.log, self.read)
        return replace(_request(settings, scan, self.output, self.findings, display), compares=True)


class AuditOptions(OptionGroup, frozen=True, kw_only=True):
    """What `scan`, `timeline` and `producers` audit, and how."""

    output: OutputOptions
    broker_version: options.BrokerVersion = "auto"
    findings: FindingOptions
    partitions: PartitionFilter
    producers: ProducerFilter
    log: LogFacts
    blocks: BlockSources
    read: ReadOptions
    layout: options.Layout = None
    require_all: options.RequireAll = False

    def request(self, settings: Settings, paths: Sequence[str], display: DisplayOptions) -> "AuditRequest":
        """Return the request these options make. Raises UsageError for an option that means nothing."""
        from kaudit.cli.parsing import check_int64, parse_broker_version, parse_time, parse_window

        since_ms, until_ms = parse_window(self.producers.since, self.producers.until)
        check_int64(self.producers.producer_id or (), "--producer-id")
        scan = replace(
            _scan_options(settings, paths, self.partitions, self.log, self.read),
            broker_version=parse_broker_version(self.broker_version),
            producer_ids=self.producers.producer_id or (),
            since_ms=since_ms,
            until_ms=until_ms,
            now_ms=parse_time(self.producers.now, "--now"),
            zookeeper=self.blocks.zookeeper,
            blocks=self.blocks.blocks,
            metadata=self.blocks.metadata,
            layout=self.layout,
            require_all=self.require_all,
        )
        return _request(settings, scan, self.output, self.findings, display)


def _scan_options(
    settings: Settings, paths: Sequence[str], partitions: PartitionFilter, log: LogFacts, read: ReadOptions
) -> ScanOptions:
    from kaudit.cli.parsing import check_int64

    check_int64([log.log_start_offset or 0], "--log-start-offset")
    return ScanOptions(
        paths=paths,
        topics=partitions.topic or (),
        partitions=partitions.partition or (),
        log_start_offset=log.log_start_offset,
        compacted=log.compacted,
        compacted_topics=settings.compacted_topics,
        jobs=read.jobs,
        depth=read.depth,
    )


def _request(
    settings: Settings, scan: ScanOptions, output: OutputOptions, findings: FindingOptions, display: DisplayOptions
) -> "AuditRequest":
    from kaudit.cli.audit import AuditRequest
    from kaudit.cli.parsing import parse_selection
    from kaudit.cli.policy import parse_policy
    from kaudit.cli.targets import parse_targets

    return AuditRequest(
        options=scan,
        selection=parse_selection(findings.select or (), findings.ignore or ()),
        targets=parse_targets(output.output_format or (), output.output, scan.paths),
        fail_on=findings.fail_on,
        exit_zero=findings.exit_zero,
        color=display.terminal.color_choice,
        pager=not display.terminal.no_pager,
        quiet=display.quiet,
        verbose=display.verbose,
        reproducible=display.reproducible,
        policy=parse_policy(findings.severity or (), findings.baseline, findings.max_findings, settings),
    )
