"""The options that audits share, each declared and given its meaning here alone, and the request they make.

A command takes groups of them as parameters (`kaudit.cli.declared`); `--help` lists the options in that order.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaudit.analysis.scan.options import Depth, ScanOptions
from kaudit.cli import options
from kaudit.cli.declared import Group
from kaudit.cli.exits import FailOn
from kaudit.cli.settings.settings import Settings
from kaudit.report.console import ColorChoice

if TYPE_CHECKING:  # every format comes with it
    from kaudit.cli.audit import Request
    from kaudit.cli.engine import Engine


class Output(Group, frozen=True, kw_only=True):
    """Which formats, and where they go."""

    output_format: options.OutputFormats = None
    output: options.OutputFile = None


class Verdict(Group, frozen=True, kw_only=True):
    """Which findings there are, how grave they are, and what they make of the exit code."""

    select: options.Select = None
    ignore: options.Ignore = None
    severity: options.SeverityOption = None
    fail_on: options.FailOnOption = FailOn.ERROR
    exit_zero: options.ExitZero = False
    baseline: options.BaselineOption = None
    max_findings: options.MaxFindings = None


class Which(Group, frozen=True, kw_only=True):
    """Which partitions are read."""

    topic: options.Topics = None
    partition: options.Partitions = None


class Who(Group, frozen=True, kw_only=True):
    """Which producers are told of, and when."""

    producer_id: options.ProducerIds = None
    since: options.Since = None
    until: options.Until = None
    now: options.Now = None


class Missing(Group, frozen=True, kw_only=True):
    """What a copy of a log directory lacks."""

    log_start_offset: options.LogStartOffset = None
    compacted: options.Compacted = False


class Blocks(Group, frozen=True, kw_only=True):
    """Where blocks of producer ids are told."""

    zookeeper: options.ZooKeeper = None
    blocks: options.Blocks = None
    metadata: options.Metadata = None


class Reading(Group, frozen=True, kw_only=True):
    """How to read."""

    jobs: options.Jobs = None
    depth: options.DepthOption = Depth.CRC


class Where(Group, frozen=True, kw_only=True):
    """Which engine does the work."""

    engine: options.EngineOption = options.EngineChoice.LOCAL
    master: options.Master = None
    spark_conf: options.SparkSettings = None

    def choose(self) -> "Engine":
        """Return the engine. Raises UsageError where it cannot be had."""
        from kaudit.cli.engine import choose_engine

        return choose_engine(self.engine, self.master, self.spark_conf or ())


class Manner(Group, frozen=True, kw_only=True):
    """How the result is shown, and what every command that can be configured takes."""

    color: options.Color = ColorChoice.AUTO
    no_color: options.NoColor = False
    quiet: options.Quiet = False
    verbose: options.Verbose = False
    reproducible: options.Reproducible = False
    config: options.Config = None
    """Read before the other options, as is the next."""
    isolated: options.Isolated = False
    version: options.Version = False
    """Its callback has answered."""


class Rendering(Group, frozen=True, kw_only=True):
    """What `report` makes of a saved scan."""

    output: Output
    verdict: Verdict

    def request(self, settings: Settings, saved: str, manner: Manner) -> "Request":
        """Return what was asked for. Raises UsageError for an option that means nothing."""
        return _request(settings, ScanOptions(paths=[saved]), self.output, self.verdict, manner)


class Comparison(Group, frozen=True, kw_only=True):
    """What `diff` compares, and how."""

    output: Output
    verdict: Verdict
    which: Which
    missing: Missing
    reading: Reading

    def request(self, settings: Settings, paths: Sequence[str], manner: Manner) -> "Request":
        """Return what was asked for. Raises UsageError for an option that means nothing."""
        asked = _scan_options(settings, paths, self.which, self.missing, self.reading)
        return replace(_request(settings, asked, self.output, self.verdict, manner), compares=True)


class Audit(Group, frozen=True, kw_only=True):
    """What `scan`, `timeline` and `producers` audit, and how."""

    output: Output
    broker_version: options.BrokerVersion = "auto"
    verdict: Verdict
    which: Which
    who: Who
    missing: Missing
    blocks: Blocks
    reading: Reading
    layout: options.Layout = None

    def request(self, settings: Settings, paths: Sequence[str], manner: Manner) -> "Request":
        """Return what was asked for. Raises UsageError for an option that means nothing."""
        from kaudit.cli.parsing import check_int64, parse_broker_version, parse_moment, parse_window

        since_ms, until_ms = parse_window(self.who.since, self.who.until)
        check_int64(self.who.producer_id or (), "--producer-id")
        asked = replace(
            _scan_options(settings, paths, self.which, self.missing, self.reading),
            broker_version=parse_broker_version(self.broker_version),
            producer_ids=self.who.producer_id or (),
            since_ms=since_ms,
            until_ms=until_ms,
            now_ms=parse_moment(self.who.now, "--now"),
            zookeeper=self.blocks.zookeeper,
            blocks=self.blocks.blocks,
            metadata=self.blocks.metadata,
            layout=self.layout,
        )
        return _request(settings, asked, self.output, self.verdict, manner)


def _scan_options(
    settings: Settings, paths: Sequence[str], which: Which, missing: Missing, reading: Reading
) -> ScanOptions:
    from kaudit.cli.parsing import check_int64

    check_int64([missing.log_start_offset or 0], "--log-start-offset")
    return ScanOptions(
        paths=paths,
        topics=which.topic or (),
        partitions=which.partition or (),
        log_start_offset=missing.log_start_offset,
        compacted=missing.compacted,
        compacted_topics=tuple(rule.pattern for rule in settings.topics if rule.compacted),
        jobs=reading.jobs,
        depth=reading.depth,
    )


def _request(settings: Settings, asked: ScanOptions, output: Output, verdict: Verdict, manner: Manner) -> "Request":
    from kaudit.cli.audit import Request
    from kaudit.cli.decisions import parse_policy
    from kaudit.cli.parsing import parse_selection
    from kaudit.cli.targets import parse_targets

    return Request(
        options=asked,
        selection=parse_selection(verdict.select or (), verdict.ignore or ()),
        targets=parse_targets(output.output_format or (), output.output, asked.paths),
        fail_on=verdict.fail_on,
        exit_zero=verdict.exit_zero,
        color=ColorChoice.NEVER if manner.no_color else manner.color,
        quiet=manner.quiet,
        verbose=manner.verbose,
        reproducible=manner.reproducible,
        policy=parse_policy(verdict.severity or (), verdict.baseline, verdict.max_findings, settings),
    )
