"""The options that several commands share, each with its help text, in the groups that commands take as parameters.

Options of an audit are declared with the fields they set (`kaudit.scanning.options`); the tuples here name those a command takes.
"""

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kaudit.cli.exits import FailOn
from kaudit.cli.loading import loaded
from kaudit.cli.option_groups import OptionGroup, Takes
from kaudit.cli.settings import Version, configure
from kaudit.errors import UsageError
from kaudit.report.console import ColorChoice
from kaudit.report.formats import FORMATS
from kaudit.scanning.options import ScanOptions

if TYPE_CHECKING:  # few outputs are redacted
    from kaudit.results.redaction import Redactor

PARTITIONS = ("topic", "partition")
PRODUCERS = ("producer-id", "since", "until")
COPY_FACTS = ("log-start-offset", "compacted")
"""What a broker knows of a log and a copy of its directory may lack."""
BLOCKS = ("zookeeper", "blocks", "metadata")
PROGRAM_LOGS = ("server-log", "client-log")
CONNECTION = ("command-config",)
REMOTE = ("remote", "remote-key")
CLUSTER = (*CONNECTION, "from-offset", "to-offset", "from-time", "to-time", "max-bytes-per-second")
LISTED = (
    *(*PARTITIONS, *PRODUCERS, "broker-version", *COPY_FACTS, "now", "layout", *BLOCKS),
    *(*REMOTE, "depth", "jobs", "require-all", "state", *CLUSTER),
)
"""What `producers` takes."""
AUDITED = (*LISTED, *PROGRAM_LOGS)
"""What `timeline` takes."""
COMPARED = (*PARTITIONS, *COPY_FACTS, *REMOTE, "depth", "jobs", *CLUSTER)
"""What `diff`, `dedup` and `groups` take."""
WATCHED = (
    *(*PARTITIONS, "broker-version", *COPY_FACTS, *BLOCKS, "depth"),
    *(*CONNECTION, "from-offset", "from-time", "max-bytes-per-second"),
)

Compared = Annotated[ScanOptions, Takes(COMPARED)]
Connection = Annotated[ScanOptions, Takes(CONNECTION)]


class EngineChoice(enum.Enum):
    """Where the work is done."""

    LOCAL = "local"
    SPARK = "spark"


class TextFormat(enum.Enum):
    """The formats of `explain` and `checks`."""

    TEXT = "text"
    JSON = "json"


TextOrJson = Annotated[
    TextFormat, typer.Option("--output-format", metavar="FORMAT", help="For people or for programs.")
]
INPUTS = (
    "Log or partition directories, .log files, output of kafka-dump-log, and archives or compressed files of these; also hdfs://, s3://, "
    "kafka://HOST:PORT/TOPIC[/PARTITION], - for standard input"
)
Paths = Annotated[list[str], typer.Argument(metavar="PATH", help=f"{INPUTS}.")]
OptionalPaths = Annotated[
    list[str] | None, typer.Argument(metavar="PATH", help=f"{INPUTS}; none are needed with --remote.")
]
PathsOrLogs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        help=f"{INPUTS}; logs of brokers and of applications with a Kafka client; directories of any of them.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no closing line; errors stay.")]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Show notes, all findings of an incident, and reasons; off a terminal, report progress every 30 seconds.",
    ),
]
_OutputFile = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where the one format without a file goes; - is stdout."),
]


RedactSecret = Annotated[
    str | None,
    typer.Option(
        "--redact-secret",
        metavar="TEXT",
        help="With --redact: results with one secret have the same hashes; default: another in every run.",
    ),
]


class Redaction(OptionGroup, frozen=True, kw_only=True):
    """Whether names are shown: of every command whose output can hold those of its input."""

    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="Show hashes in place of topics, ids, hosts, paths, keys, values and what lines of logs name.",
        ),
    ] = False
    redact_secret: RedactSecret = None

    def redactor(self) -> "Redactor | None":
        """Return what redacts the output, None for nothing. Raises UsageError for a secret without --redact."""
        if not self.redact and self.redact_secret is None:
            return None
        made: Redactor = loaded("redacting", "redactor")(self.redact_secret, redact=self.redact)
        return made


def complete_codes(incomplete: str) -> list[tuple[str, str]]:
    """Complete codes and names of checks; loading the checks takes long."""
    found: list[tuple[str, str]] = loaded("explaining", "complete_codes")(incomplete)
    return found


def complete_formats(incomplete: str) -> list[str]:
    """Return the output formats that begin so."""
    return [name for name in FORMATS if name.startswith(incomplete)]


class OutputOptions(OptionGroup, frozen=True, kw_only=True):
    """Which formats, and where they go."""

    heading = "Output"

    output_format: Annotated[
        list[str] | None,
        typer.Option(
            "--output-format",
            metavar="FORMAT[:FILE]",
            autocompletion=complete_formats,
            help=f"table (default), {', '.join(name for name in FORMATS if name not in ('table', 'parquet'))}; "
            "with :FILE into a file. parquet: tables into a directory. Repeatable.",
        ),
    ] = None
    output: _OutputFile = None
    redaction: Redaction = Redaction()


class TableOutput(OutputOptions, frozen=True, kw_only=True):
    """Which formats, where they go, and whether tables count."""

    statistics: Annotated[
        bool,
        typer.Option(
            "--statistics", help="With table: count findings and their cost by check, instead of listing them."
        ),
    ] = False


class RowOutput(OptionGroup, frozen=True, kw_only=True):
    """Which formats, and where they go: rows have fewer formats than findings."""

    heading = OutputOptions.heading

    output_format: Annotated[
        list[str] | None,
        typer.Option(
            "--output-format",
            metavar="FORMAT[:FILE]",
            help="table (default), json, jsonl or parquet (-o DIR). Repeatable.",
        ),
    ] = None
    output: _OutputFile = None
    redaction: Redaction = Redaction()


class WatchOutput(OptionGroup, frozen=True, kw_only=True):
    """How findings are written as they come, and where metrics go."""

    heading = OutputOptions.heading

    output_format: Annotated[
        list[str] | None,
        typer.Option(
            "--output-format",
            metavar="FORMAT[:FILE]",
            help="table (default; live on a terminal), concise, jsonl; with :FILE into a file. Repeatable.",
        ),
    ] = None
    output: _OutputFile = None
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port", metavar="N", min=0, max=65535, help="Serve /metrics for Prometheus on this port."
        ),
    ] = None
    metrics_address: Annotated[
        str, typer.Option("--metrics-address", metavar="HOST", help="The address --metrics-port listens on.")
    ] = "127.0.0.1"
    metrics_file: Annotated[
        str | None,
        typer.Option(
            "--metrics-file", metavar="FILE", help="Write metrics for the node exporter's textfile collector."
        ),
    ] = None
    redaction: Redaction = Redaction()


class SelectionOptions(OptionGroup, frozen=True, kw_only=True):
    """Which findings are reported."""

    heading = "Findings"

    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODES",
            autocompletion=complete_codes,
            help="Only these checks: KA101, a prefix like KA1, or a name like duplicate-batch. Commas or repeated.",
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODES",
            autocompletion=complete_codes,
            help="All but these checks; the longer prefix wins over --select.",
        ),
    ] = None


class WatchedFindings(SelectionOptions, frozen=True, kw_only=True):
    """Which findings are reported, how severe they are, and which of them fail the run."""

    severity: Annotated[
        list[str] | None,
        typer.Option(
            "--severity",
            metavar="CODE=LEVEL",
            help="Report a check (or prefix) as error, warning or note. Repeatable.",
        ),
    ] = None
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", metavar="LEVEL", help="The lowest severity that makes the exit code 1.")
    ] = FailOn.ERROR
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 even with findings; other codes stay.")] = False
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="FILE", help="Known findings: they are counted, and do not fail the run."),
    ] = None


class FindingOptions(WatchedFindings, frozen=True, kw_only=True):
    """Which findings are reported, how severe they are, which of them fail the run, and how many are shown."""

    max_findings: Annotated[
        int | None,
        typer.Option("--max-findings", metavar="N", min=0, help="Show at most N, most severe first; all are counted."),
    ] = None


class EngineOptions(OptionGroup, frozen=True, kw_only=True):
    """Which engine does the work."""

    heading = "Engine"

    engine: Annotated[
        EngineChoice,
        typer.Option("--engine", metavar="ENGINE", help="Read with this machine's processes, or on Apache Spark."),
    ] = EngineChoice.LOCAL
    master: Annotated[
        str | None,
        typer.Option(
            "--master", metavar="URL", help="With --engine spark: its master; default: as Spark is configured."
        ),
    ] = None
    spark_conf: Annotated[
        list[str] | None,
        typer.Option("--spark-conf", metavar="KEY=VALUE", help="With --engine spark: a setting of Spark. Repeatable."),
    ] = None


class GeneralOptions(OptionGroup, frozen=True, kw_only=True):
    """What has to do with no command in particular."""

    heading = "General"


class TerminalOptions(GeneralOptions, frozen=True, kw_only=True):
    """What a terminal is sent."""

    color: Annotated[ColorChoice, typer.Option("--color", metavar="WHEN", help="When to colour.")] = ColorChoice.AUTO
    no_color: Annotated[bool, typer.Option("--no-color", help="The same as --color never.")] = False
    no_pager: Annotated[bool, typer.Option("--no-pager", help="Never show long output in a pager.")] = False

    @property
    def color_choice(self) -> ColorChoice:
        """What both options together ask for."""
        return ColorChoice.NEVER if self.no_color else self.color


class VersionOption(GeneralOptions, frozen=True, kw_only=True):
    """The version. Its callback has answered before a command runs."""

    version: Version = False


class ConfigurationOptions(GeneralOptions, frozen=True, kw_only=True):
    """Where the configuration is. Their callbacks have read it before a command runs."""

    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            callback=configure,
            is_eager=True,
            help="Read this configuration, not the nearest kaudit.toml.",
        ),
    ] = None
    isolated: Annotated[
        bool, typer.Option("--isolated", callback=configure, is_eager=True, help="Read no configuration file.")
    ] = False


class DisplayOptions(GeneralOptions, frozen=True, kw_only=True):
    """How the result is shown, and what every command that can be configured takes."""

    verbose: Verbose = False
    quiet: Quiet = False
    reproducible: Annotated[
        bool, typer.Option("--reproducible", help="Leave out host and time of the run: same log, same bytes.")
    ] = False
    terminal: TerminalOptions
    configuration: ConfigurationOptions
    version: VersionOption


def inputs_of(paths: Sequence[str] | None, audit: ScanOptions) -> Sequence[str]:
    """Return the paths that were given; none are needed beside logs or remote storage. Raises UsageError where there is nothing to read."""
    if not (paths or audit.server_logs or audit.client_logs or audit.remote):
        raise UsageError("Missing argument 'PATH'.")
    return paths or ()


class AuditOptions(OptionGroup, frozen=True, kw_only=True):
    """What `timeline` audits, and how; `scan`, `producers` and `diff` take more, or other options of the audit."""

    audit: Annotated[ScanOptions, Takes(AUDITED)]
    output: OutputOptions
    findings: FindingOptions
    engine: EngineOptions
    display: DisplayOptions
