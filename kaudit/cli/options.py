"""The options that several commands share, each with its help text, in one place."""

import enum
from typing import Annotated

import typer

from kaudit.cli import parsing
from kaudit.cli.exits import FailOn
from kaudit.cli.option_groups import OptionGroup
from kaudit.cli.settings.configure import Version, configure
from kaudit.report.console import ColorChoice
from kaudit.report.formats import FORMATS


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
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Log or partition directories, .log files, text of kafka-dump-log; hdfs://, s3:// too; "
        "kafka://HOST:PORT/TOPIC[/PARTITION].",
    ),
]
OutputFormats = Annotated[
    list[str] | None,
    typer.Option(
        "--output-format",
        metavar="FORMAT[:FILE]",
        autocompletion=parsing.complete_formats,
        help=f"table (default), {', '.join(name for name in FORMATS if name not in ('table', 'parquet'))}; "
        "with :FILE into a file. parquet: tables into a directory. Repeatable.",
    ),
]
OutputFile = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where the one format without a file goes; - is stdout."),
]
ServerLogs = Annotated[
    list[str] | None,
    typer.Option(
        "--server-log",
        metavar="FILE",
        help="A broker's own log (server.log, state-change.log; .gz, JSON lines, journald), or a directory of them: "
        "what it refused, elections, recoveries. Repeatable.",
    ),
]
ClientLogs = Annotated[
    list[str] | None,
    typer.Option(
        "--client-log",
        metavar="FILE",
        help="The log of an application with a Kafka client: Java, librdkafka, franz-go, kafkajs, sarama. Repeatable.",
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODES",
        autocompletion=parsing.complete_codes,
        help="Only these checks: KA101, a prefix like KA1, or a name like duplicate-batch. Commas or repeated.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODES",
        autocompletion=parsing.complete_codes,
        help="All but these checks; the longer prefix wins over --select.",
    ),
]
FailOnOption = Annotated[
    FailOn, typer.Option("--fail-on", metavar="LEVEL", help="The least severity that makes the exit code 1.")
]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Exit 0 even with findings; other codes stay.")]
SeverityOption = Annotated[
    list[str] | None,
    typer.Option(
        "--severity", metavar="CODE=LEVEL", help="Judge a check (or prefix) as error, warning or note. Repeatable."
    ),
]
BaselineOption = Annotated[
    str | None,
    typer.Option("--baseline", metavar="FILE", help="Findings that are known: they are counted, and fail nothing."),
]
MaxFindings = Annotated[
    int | None,
    typer.Option("--max-findings", metavar="N", min=0, help="Show at most N, most severe first; all are counted."),
]
Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        callback=configure,
        is_eager=True,
        help="Read this configuration, not the nearest kaudit.toml.",
    ),
]
Isolated = Annotated[
    bool, typer.Option("--isolated", callback=configure, is_eager=True, help="Read no configuration file.")
]
EngineOption = Annotated[
    EngineChoice,
    typer.Option("--engine", metavar="ENGINE", help="Read with this machine's processes, or on Apache Spark."),
]
Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="With --engine spark: its master; default: as Spark is configured."),
]
SparkSettings = Annotated[
    list[str] | None,
    typer.Option("--spark-conf", metavar="KEY=VALUE", help="With --engine spark: a setting of Spark. Repeatable."),
]
BatchesTable = Annotated[
    bool, typer.Option("--batches", help="With --output-format parquet: a row for every batch too.")
]
Statistics = Annotated[
    bool,
    typer.Option("--statistics", help="With table: count findings and their cost by check, instead of listing them."),
]
Color = Annotated[ColorChoice, typer.Option("--color", metavar="WHEN", help="When to colour.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="The same as --color never.")]
NoPager = Annotated[bool, typer.Option("--no-pager", help="Never show long output in a pager.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no closing line; errors stay.")]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Show notes, all findings of an incident, and reasons; off a terminal, report progress every 30 seconds.",
    ),
]
Reproducible = Annotated[
    bool, typer.Option("--reproducible", help="Leave out host and time of the run: same log, same bytes.")
]
WatchFormats = Annotated[
    list[str] | None,
    typer.Option(
        "--output-format",
        metavar="FORMAT[:FILE]",
        help="table (default; live on a terminal), concise, jsonl; with :FILE into a file. Repeatable.",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option("--metrics-port", metavar="N", min=0, max=65535, help="Serve /metrics for Prometheus on this port."),
]
MetricsAddress = Annotated[
    str, typer.Option("--metrics-address", metavar="HOST", help="The address --metrics-port listens on.")
]
MetricsFile = Annotated[
    str | None,
    typer.Option("--metrics-file", metavar="FILE", help="Write metrics for the node exporter's textfile collector."),
]
Interval = Annotated[
    str, typer.Option("--interval", metavar="DURATION", help="Look for changes at least this often: 1s, 1m.")
]
StateFile = Annotated[
    str | None,
    typer.Option("--state", metavar="FILE", help="Remember what was reported, and go on from there when it exists."),
]
UntilIdle = Annotated[
    str | None,
    typer.Option("--until-idle", metavar="DURATION", help="End when nothing has been appended for so long: 30s, 5m."),
]
ForDuration = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="End after so long, whatever happens: 10m, 1h.")
]


class GeneralOptions(OptionGroup, frozen=True, kw_only=True):
    """What has to do with no command in particular."""

    heading = "General"


class TerminalOptions(GeneralOptions, frozen=True, kw_only=True):
    """What a terminal is sent."""

    color: Color = ColorChoice.AUTO
    no_color: NoColor = False
    no_pager: NoPager = False

    @property
    def color_choice(self) -> ColorChoice:
        """What both options together ask for."""
        return ColorChoice.NEVER if self.no_color else self.color


class VersionOption(GeneralOptions, frozen=True, kw_only=True):
    """The version. Its callback has answered before a command runs."""

    version: Version = False


class ConfigurationOptions(GeneralOptions, frozen=True, kw_only=True):
    """Where the configuration is. Their callbacks have read it before a command runs."""

    config: Config = None
    isolated: Isolated = False
