"""The options that several commands share, each with its help text, in one place."""

import enum
from typing import Annotated

import typer

from kaudit.cli import parsing
from kaudit.cli.exits import FailOn
from kaudit.cli.option_groups import OptionGroup, Version
from kaudit.cli.settings.configure import configure
from kaudit.report.console import ColorChoice
from kaudit.report.formats import FORMATS
from kaudit.scanning.options import Depth


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
BrokerVersion = Annotated[
    str, typer.Option(metavar="VERSION", help="The broker that wrote the log, e.g. 2.0.1; auto looks for evidence.")
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
Topics = Annotated[list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only this topic. Repeatable.")]
Partitions = Annotated[
    list[int] | None, typer.Option("--partition", metavar="N", min=0, help="Only this partition. Repeatable.")
]
ProducerIds = Annotated[
    list[int] | None, typer.Option("--producer-id", metavar="ID", min=0, help="Only this producer id. Repeatable.")
]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Report only from this time on (RFC 3339, UTC).")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Report only up to this time.")]
Now = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="The time to judge idleness by; default: the newest batch in the directory."),
]
LogStartOffset = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Log start of the partitions, for copies without the broker's checkpoint."),
]
Compacted = Annotated[
    bool, typer.Option("--compacted", help="The topics are compacted, for copies without the broker's checkpoint.")
]
ZooKeeper = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="ZooKeeper's data directory: source of producer id blocks, up to 2.8."),
]
Blocks = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Saved values of /latest_producer_id_block, or answers, one JSON object a line."),
]
Metadata = Annotated[
    str | None,
    typer.Option(
        metavar="DIR", help="A log directory with __cluster_metadata-0: source of producer id blocks under KRaft."
    ),
]
CommandConfig = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="For kafka://: a property file as Kafka's own tools take it: security.protocol, sasl.*, ssl.* (PEM).",
    ),
]
FromOffset = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="For kafka://: read from this offset on; default: the log start.")
]
ToOffset = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="For kafka://: read to before this offset; default: the high watermark."),
]
FromTime = Annotated[
    str | None, typer.Option(metavar="TIME", help="For kafka://: read from the first record of this time or later on.")
]
ToTime = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="For kafka://: read to before the first record of this time or later."),
]
MaxBytesPerSecond = Annotated[
    int,
    typer.Option(metavar="N", min=0, help="For kafka://: most bytes to fetch from a cluster a second; 0: no limit."),
]
Jobs = Annotated[int | None, typer.Option(metavar="N", min=1, help="Processes to read with; default: one per core.")]
DepthOption = Annotated[
    Depth, typer.Option("--depth", metavar="DEPTH", help="Trust headers, verify every CRC, or decode records too.")
]
RequireAll = Annotated[
    bool,
    typer.Option(
        "--require-all", help="Exit 3 without an audit unless every PATH, topic and partition given is there."
    ),
]
SavedState = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="URL",
        help="Save here what reading gives (a directory, hdfs://, s3://), so that the next audit reads only what is new.",
    ),
]
Layout = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="PATTERN",
        help="Where topic, partition and replica stand in a path: 'dc={replica}/{topic}/p{partition}'.",
    ),
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
DigestsOption = Annotated[
    bool,
    typer.Option(
        "--digests",
        help="Name in the report the batches that were judged, by digests: kaudit diff REPORT.json DIR proves later that they are the same.",
    ),
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
