"""The groups of options that scan, timeline, producers, diff and report share, and the request each makes.

A command takes groups as parameters (`kaudit.cli.option_groups`); `--help` lists the options in that order, under the headings of the groups.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import replace

from kaudit.cli import options
from kaudit.cli.audit import AuditRequest
from kaudit.cli.engine import choose_engine
from kaudit.cli.exits import FailOn
from kaudit.cli.option_groups import OptionGroup, declared_values
from kaudit.cli.parsing import (
    parse_policy,
    parse_selection,
    parse_window,
)
from kaudit.cli.settings.settings import Settings
from kaudit.cli.targets import parse_targets
from kaudit.errors import UsageError
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.source.kafka.options import DEFAULT_BYTES_PER_SECOND, ClusterOptions
from kaudit.source.option import parse_time

if TYPE_CHECKING:  # every format comes with it
    from kaudit.engines.engine import Engine
    from kaudit.model.application_logs import ApplicationLogs


class OutputOptions(OptionGroup, frozen=True, kw_only=True):
    """Which formats, and where they go."""

    heading = "Output"

    output_format: options.OutputFormats = None
    output: options.OutputFile = None


class RowOutput(OutputOptions, frozen=True, kw_only=True):
    """Which formats, and where they go: rows have fewer formats than findings."""

    output_format: Annotated[
        list[str] | None,
        typer.Option(
            "--output-format",
            metavar="FORMAT[:FILE]",
            help="table (default), json, jsonl or parquet (-o DIR). Repeatable.",
        ),
    ] = None


class TableOptions(OptionGroup, frozen=True, kw_only=True):
    """What tables show."""

    heading = OutputOptions.heading

    statistics: options.Statistics = False


class FindingOptions(OptionGroup, frozen=True, kw_only=True):
    """Which findings are reported, how severe they are, and which of them fail the run."""

    heading = "Findings"

    select: options.Select = None
    ignore: options.Ignore = None
    severity: options.SeverityOption = None
    fail_on: options.FailOnOption = FailOn.ERROR
    exit_zero: options.ExitZero = False
    baseline: options.BaselineOption = None
    max_findings: options.MaxFindings = None


class Filter(OptionGroup, frozen=True, kw_only=True):
    """What an answer is limited to."""

    heading = "Filters"


class PartitionFilter(Filter, frozen=True, kw_only=True):
    """Which partitions are read."""

    topic: list[str] | None = None
    partition: list[int] | None = None


class ProducerFilter(Filter, frozen=True, kw_only=True):
    """Which producers and which times are reported."""

    producer_id: list[int] | None = None
    since: str | None = None
    until: str | None = None


class LogFacts(OptionGroup, frozen=True, kw_only=True):
    """What a broker knows of a log and a copy of its directory may lack."""

    heading = "About the log"

    log_start_offset: int | None = None
    compacted: bool = False


class AuditedLog(OptionGroup, frozen=True, kw_only=True):
    """What an audit takes for granted of a log instead of looking for it."""

    heading = LogFacts.heading

    broker_version: str = "auto"
    facts: LogFacts
    now: str | None = None
    layout: str | None = None


class BlockSources(OptionGroup, frozen=True, kw_only=True):
    """Where the blocks of producer ids are recorded."""

    heading = "Blocks of producer ids"

    zookeeper: str | None = None
    blocks: str | None = None
    metadata: str | None = None


class ApplicationLogOptions(OptionGroup, frozen=True, kw_only=True):
    """The logs that brokers and clients write about themselves."""

    heading = "Logs of brokers and clients"

    server_log: options.ServerLogs = None
    client_log: options.ClientLogs = None

    def read(self) -> "ApplicationLogs | None":
        """Read them; None if none are given. Raises UsageError for a file that is none, UnreadableInputError."""
        if not self.server_log and not self.client_log:
            return None

        from kaudit.audits.log_events.application_logs import read_application_logs  # its patterns take 30 ms

        return read_application_logs(self.server_log or (), self.client_log or ())


class ReadOptions(OptionGroup, frozen=True, kw_only=True):
    """How logs are read."""

    heading = "Reading"

    depth: Depth = Depth.CRC
    jobs: int | None = None


class AuditReadOptions(ReadOptions, frozen=True, kw_only=True):
    """How logs are read, and what must be there."""

    require_all: bool = False
    state: str | None = None


class ConnectionOptions(OptionGroup, frozen=True, kw_only=True):
    """How brokers are reached."""

    heading = "Live clusters"

    command_config: str | None = None


class ClusterReadOptions(ConnectionOptions, frozen=True, kw_only=True):
    """What is read from brokers, and how fast."""

    from_offset: int | None = None
    to_offset: int | None = None
    from_time: str | None = None
    to_time: str | None = None
    max_bytes_per_second: int = DEFAULT_BYTES_PER_SECOND

    def check(self) -> None:
        """Raise UsageError for a range without offsets."""
        first, end = self.from_offset, self.to_offset
        if first is not None and end is not None and first >= end:
            raise UsageError(f"--from-offset {first} --to-offset {end}: nothing lies between")
        from_ms, to_ms = parse_time(self.from_time, "--from-time"), parse_time(self.to_time, "--to-time")
        if from_ms is not None and to_ms is not None and from_ms >= to_ms:
            raise UsageError(f"--from-time {self.from_time} --to-time {self.to_time}: nothing lies between")


class EngineOptions(OptionGroup, frozen=True, kw_only=True):
    """Which engine does the work."""

    heading = "Engine"

    engine: options.EngineOption = options.EngineChoice.LOCAL
    master: options.Master = None
    spark_conf: options.SparkSettings = None

    def choose(self) -> "Engine":
        """Return the engine. Raises UsageError where it cannot be had."""
        return choose_engine(self.engine, self.master, self.spark_conf or ())


class DisplayOptions(options.GeneralOptions, frozen=True, kw_only=True):
    """How the result is shown, and what every command that can be configured takes."""

    verbose: options.Verbose = False
    quiet: options.Quiet = False
    reproducible: options.Reproducible = False
    terminal: options.TerminalOptions
    configuration: options.ConfigurationOptions
    version: options.VersionOption


class ReportOptions(OptionGroup, frozen=True, kw_only=True):
    """How `report` renders a saved scan."""

    output: OutputOptions
    tables: TableOptions
    findings: FindingOptions

    def request(self, settings: Settings, saved: str, display: DisplayOptions) -> "AuditRequest":
        """Return the request these options make. Raises UsageError for an option that means nothing."""
        request = _request(settings, ScanOptions(paths=[saved]), self.output, self.findings, display)
        return replace(request, statistics=self.tables.statistics)


class DiffOptions(OptionGroup, frozen=True, kw_only=True):
    """What `diff` compares, and how."""

    output: OutputOptions
    tables: TableOptions
    partitions: PartitionFilter
    findings: FindingOptions
    log: LogFacts
    read: ReadOptions
    cluster: ClusterReadOptions
    engine: EngineOptions

    def request(self, settings: Settings, paths: Sequence[str], display: DisplayOptions) -> "AuditRequest":
        """Return the request these options make. Raises UsageError for an option that means nothing."""
        request = _request(settings, self.scan(settings, paths), self.output, self.findings, display)
        return replace(request, compares=True, statistics=self.tables.statistics)

    def scan(self, settings: Settings, paths: Sequence[str]) -> ScanOptions:
        """Return what is read, and how. Raises UsageError for an option that means nothing."""
        return _scan_options(settings, paths, self)


class DedupOptions(OptionGroup, frozen=True, kw_only=True):
    """What `dedup` reads, and how."""

    partitions: PartitionFilter
    log: LogFacts
    read: ReadOptions
    cluster: ClusterReadOptions

    def scan(self, settings: Settings, paths: Sequence[str]) -> ScanOptions:
        """Return the audit these options ask for. Raises UsageError for an option that means nothing."""
        return _scan_options(settings, paths, self)


class WatchOutput(OptionGroup, frozen=True, kw_only=True):
    """How findings are written as they come, and where metrics go."""

    heading = OutputOptions.heading

    output_format: options.WatchFormats = None
    output: options.OutputFile = None
    metrics_port: options.MetricsPort = None
    metrics_address: options.MetricsAddress = "127.0.0.1"
    metrics_file: options.MetricsFile = None


class WatchRun(OptionGroup, frozen=True, kw_only=True):
    """How long a watch runs, how often it looks, and what it goes on from."""

    heading = "Watching"

    interval: options.Interval = "1s"
    state: options.StateFile = None
    until_idle: options.UntilIdle = None
    for_: options.ForDuration = None


class WatchedLog(OptionGroup, frozen=True, kw_only=True):
    """What a watch takes for granted of the logs."""

    heading = LogFacts.heading

    broker_version: str = "auto"
    facts: LogFacts


class WatchReadOptions(OptionGroup, frozen=True, kw_only=True):
    """How deep logs are read."""

    heading = ReadOptions.heading

    depth: Depth = Depth.CRC


class WatchClusterOptions(ConnectionOptions, frozen=True, kw_only=True):
    """From where on brokers are read, and how fast."""

    from_offset: int | None = None
    from_time: str | None = None
    max_bytes_per_second: int = DEFAULT_BYTES_PER_SECOND


class WatchedFindings(OptionGroup, frozen=True, kw_only=True):
    """Which findings are reported, how severe they are, and which of them fail the run."""

    heading = FindingOptions.heading

    select: options.Select = None
    ignore: options.Ignore = None
    severity: options.SeverityOption = None
    fail_on: options.FailOnOption = FailOn.ERROR
    exit_zero: options.ExitZero = False
    baseline: options.BaselineOption = None


class WatchOptions(OptionGroup, frozen=True, kw_only=True):
    """What `watch` follows, and how."""

    run: WatchRun
    partitions: PartitionFilter
    output: WatchOutput
    findings: WatchedFindings
    log: WatchedLog
    blocks: BlockSources
    read: WatchReadOptions
    cluster: WatchClusterOptions

    def request(self, settings: Settings, paths: Sequence[str], display: DisplayOptions) -> "AuditRequest":
        """Return the request these options make. Raises UsageError for an option that means nothing."""
        scan = _scan_options(settings, paths, self.partitions, self.log, self.blocks, self.read, self.cluster)
        output = OutputOptions(output_format=self.output.output_format, output=self.output.output)
        own = self.findings
        findings = FindingOptions(**{name: getattr(own, name) for name in own.__struct_fields__})
        return _request(settings, scan, output, findings, display)


class AuditOptions(OptionGroup, frozen=True, kw_only=True):
    """What `scan`, `timeline` and `producers` audit, and how."""

    partitions: PartitionFilter
    producers: ProducerFilter
    output: OutputOptions
    findings: FindingOptions
    log: AuditedLog
    logs: ApplicationLogOptions
    blocks: BlockSources
    read: AuditReadOptions
    cluster: ClusterReadOptions

    def request(self, settings: Settings, paths: Sequence[str], display: DisplayOptions) -> "AuditRequest":
        """Return the request these options make. Raises UsageError for an option that means nothing."""
        parse_window(self.producers.since, self.producers.until)  # refuses a window that is empty
        scan = replace(_scan_options(settings, paths, self), logs=self.logs.read())
        return _request(settings, scan, self.output, self.findings, display)


def _scan_options(settings: Settings, paths: Sequence[str], *groups: OptionGroup) -> ScanOptions:
    """Return what the options of the groups ask for. Raises UsageError for an option that means nothing."""
    values: dict[str, Any] = {}
    for group in groups:
        values |= declared_values(group)
    cluster = {name: values.pop(name) for name in ClusterOptions.__struct_fields__ if name in values}
    return ScanOptions(
        paths=paths, compacted_topics=settings.compacted_topics, cluster=ClusterOptions(**cluster), **values
    )


def _request(
    settings: Settings, scan: ScanOptions, output: OutputOptions, findings: FindingOptions, display: DisplayOptions
) -> "AuditRequest":
    return AuditRequest(
        options=scan,
        selection=parse_selection(findings.select or (), findings.ignore or ()),
        targets=parse_targets(output.output_format or (), output.output, [*scan.paths, *_log_paths(scan)]),
        fail_on=findings.fail_on,
        exit_zero=findings.exit_zero,
        color=display.terminal.color_choice,
        pager=not display.terminal.no_pager,
        quiet=display.quiet,
        verbose=display.verbose,
        reproducible=display.reproducible,
        policy=parse_policy(findings.severity or (), findings.baseline, findings.max_findings, settings),
    )


def _log_paths(scan: ScanOptions) -> Sequence[str]:
    return () if scan.logs is None else [file.path for file in scan.logs.files]
