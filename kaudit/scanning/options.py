"""What to audit and how, as every engine takes it. Each option is declared here once: command line, kaudit.toml and kaudit.scan derive it."""

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from fnmatch import fnmatchcase
from typing import Annotated, Any

from msgspec import Struct, ValidationError, convert

from kaudit.errors import UsageError
from kaudit.model.application_logs import ApplicationLogs
from kaudit.model.json_record import rfc3339
from kaudit.source.kafka.options import ClusterOptions
from kaudit.source.option import DeclaredField, Option, declared_fields, milliseconds, parse_int64s, parse_time

_FILTERS, _LOG, _READING = "Filters", "About the log", "Reading"
_BLOCKS, _PROGRAM_LOGS = "Blocks of producer ids", "Logs of brokers and clients"


class Depth(Enum):
    """How deep to read: `headers` trusts framing, `crc` verifies every batch, `records` decodes them too."""

    HEADERS = "headers"
    CRC = "crc"
    RECORDS = "records"


class IsolationLevel(Enum):
    """The values of a consumer's isolation.level."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


def parse_broker_version(text: str, option: str = "--broker-version") -> str:
    """Check a broker version: `auto`, or a release whose rules are known."""
    from kaudit.broker.releases.profile import (  # noqa: PLC0415 - --help lists options without the releases
        UnknownVersionError,
        profile_for,
    )

    if text != "auto":
        try:
            profile_for(text)
        except UnknownVersionError as error:
            raise UsageError(f"{option} {text}: {error}") from None
    return text


class ScanOptions(Struct, frozen=True):
    """Options of a scan. Times are ms since the epoch; None means unset; empty sequences mean no filter.

    `zookeeper`, `blocks` and `metadata` say where blocks of producer ids are recorded; any of them replaces what would be
    found among the inputs. `require_all`: nothing is audited unless every input, and all that was asked for, is there.
    `logs` is what the logs of brokers and clients say, once they were read; without `takes_logs` none are.
    `listed_transactions`: of so many transactions, the newest, the inputs are listed. `state` and `chunk_bytes` (None: measured best) change nothing that is found.
    """

    paths: Sequence[str]
    topics: Annotated[Sequence[str], Option("topic", "Read only this topic. Repeatable.", "TOPIC", _FILTERS)] = ()
    partitions: Annotated[
        Sequence[int], Option("partition", "Read only this partition. Repeatable.", "N", _FILTERS, least=0)
    ] = ()
    producer_ids: Annotated[
        Sequence[int],
        Option("producer-id", "Report only this producer id. Repeatable.", "ID", _FILTERS, least=0, parse=parse_int64s),
    ] = ()
    since_ms: Annotated[
        int | None,
        Option(
            "since",
            "Report only what happened at or after this time (RFC 3339, UTC).",
            "TIME",
            _FILTERS,
            parse=parse_time,
        ),
    ] = None
    until_ms: Annotated[
        int | None,
        Option("until", "Report only what happened at or before this time.", "TIME", _FILTERS, parse=parse_time),
    ] = None
    broker_version: Annotated[
        str,
        Option(
            "broker-version",
            "Version of the broker that wrote the log, e.g. 2.0.1; auto: derive it from the log.",
            "VERSION",
            _LOG,
            parse=parse_broker_version,
            decides=True,
        ),
    ] = "auto"
    log_start_offset: Annotated[
        int | None,
        Option(
            "log-start-offset",
            "Log start offset of the partitions, for copies without the broker's checkpoint.",
            "N",
            _LOG,
            least=0,
            parse=parse_int64s,
            decides=True,
        ),
    ] = None
    compacted: Annotated[
        bool,
        Option("compacted", "The topics are compacted; for copies without the broker's checkpoint.", heading=_LOG),
    ] = False
    compacted_topics: Sequence[str] = ()
    now_ms: Annotated[
        int | None,
        Option(
            "now",
            "Measure how long something has been idle up to this time; default: the newest time that a broker wrote.",
            "TIME",
            _LOG,
            parse=parse_time,
            decides=True,
        ),
    ] = None
    zookeeper: Annotated[
        str | None,
        Option(
            "zookeeper",
            "Data directory of ZooKeeper: it records the blocks of producer ids up to Kafka 2.8.",
            "DIR",
            _BLOCKS,
            is_path=True,
            decides=True,
        ),
    ] = None
    blocks: Annotated[
        str | None,
        Option(
            "blocks",
            "Saved values of /latest_producer_id_block, or saved AllocateProducerIds responses, one JSON object a line.",
            "FILE",
            _BLOCKS,
            is_path=True,
            decides=True,
        ),
    ] = None
    metadata: Annotated[
        str | None,
        Option(
            "metadata",
            "Log directory with __cluster_metadata-0: it records the blocks of producer ids under KRaft.",
            "DIR",
            _BLOCKS,
            is_path=True,
            decides=True,
        ),
    ] = None
    layout: Annotated[
        str | None,
        Option(
            "layout",
            "Where topic, partition and replica stand in a path: 'dc={replica}/{topic}/p{partition}'.",
            "PATTERN",
            _LOG,
            decides=True,
        ),
    ] = None
    server_logs: Annotated[
        Sequence[str],
        Option(
            "server-log",
            "A broker's own log (server.log, state-change.log; .gz, JSON lines, journald), or a directory of them: "
            "refused requests, elections, recoveries. Repeatable.",
            "FILE",
            _PROGRAM_LOGS,
            is_path=True,
        ),
    ] = ()
    client_logs: Annotated[
        Sequence[str],
        Option(
            "client-log",
            "The log of an application with a Kafka client: Java, librdkafka, franz-go, kafkajs, sarama. Repeatable.",
            "FILE",
            _PROGRAM_LOGS,
            is_path=True,
        ),
    ] = ()
    remote: Annotated[
        str | None,
        Option(
            "remote",
            "Where brokers have copied segments to (a directory, s3://, hdfs://): they are audited as the first segments of the logs of PATH; "
            "without PATH all that are there.",
            "LOCATION",
            _READING,
            is_path=True,
            decides=True,
        ),
    ] = None
    remote_keys: Annotated[
        Sequence[str],
        Option(
            "remote-key",
            "A private RSA key (PEM) of the key ring by which segments in --remote are encrypted. Repeatable.",
            "FILE",
            _READING,
            is_path=True,
            decides=True,
        ),
    ] = ()
    cluster: ClusterOptions = ClusterOptions()
    depth: Annotated[
        Depth,
        Option("depth", "Trust headers, verify every CRC, or decode records too.", "DEPTH", _READING, decides=True),
    ] = Depth.CRC
    jobs: Annotated[
        int | None, Option("jobs", "Number of processes that read; default: one per core.", "N", _READING, least=1)
    ] = None
    require_all: Annotated[
        bool,
        Option(
            "require-all",
            "Exit 3 without an audit unless every PATH, topic and partition given is there.",
            heading=_READING,
        ),
    ] = False
    state: Annotated[
        str | None,
        Option(
            "state",
            "Save here what was read (a directory, hdfs://, s3://): the next audit reads only what is new.",
            "URL",
            _READING,
            is_path=True,
        ),
    ] = None
    digests: Annotated[
        bool,
        Option(
            "digests",
            "Write digests of the audited batches into the report: kaudit diff REPORT.json DIR proves later that they are the same.",
            heading="Output",
        ),
    ] = False
    logs: ApplicationLogs | None = None
    takes_logs: bool = True
    listed_transactions: int = 0
    chunk_bytes: int | None = None

    @property
    def given(self) -> Sequence[str]:
        """Everything that is named as an input, in the order of their options."""
        remote = () if self.remote is None else (self.remote,)
        return (*self.paths, *remote, *self.server_logs, *self.client_logs)

    def asks_for(self, topic: str | None, partition: int | None) -> bool:
        """Whether a partition is asked for: all are, unless topics or partitions are named."""
        return (not self.topics or topic in self.topics) and (not self.partitions or partition in self.partitions)

    @property
    def verifies(self) -> bool:
        """Whether CRCs are checked."""
        return self.depth is not Depth.HEADERS

    def says_compacted(self, topic: str) -> bool:
        """Return whether the user says that the topic is compacted: all are, or this one by name or pattern."""
        return self.compacted or any(fnmatchcase(topic, pattern) for pattern in self.compacted_topics)


DECLARED = {field.option.name: field for field in declared_fields(ScanOptions)}
"""The options of an audit by name, in the order of --help."""
_RANGES = (
    ("since", "until", "--since {} is later than --until {}"),
    ("from-offset", "to-offset", "--from-offset {} --to-offset {}"),
    ("from-time", "to-time", "--from-time {} --to-time {}"),
)
"""Options that bound a range, and how a message names an empty one. The end of a range of --since and --until belongs to it."""


def scan_options(typed: Mapping[str, Any]) -> ScanOptions:
    """Return the options of an audit, without paths, for what was typed, by the options' names; None was not typed.

    Raises:
        UsageError: a value means nothing, or nothing lies between two.

    """
    given = {name: value for name, value in typed.items() if value is not None}
    parsed = {name: DECLARED[name].parsed(value) for name, value in given.items()}
    for first, end, text in _RANGES:
        low: Any = parsed.get(first)
        high: Any = parsed.get(end)
        if low is not None and high is not None and (low > high or (low == high and first != "since")):
            raise UsageError(f"{text.format(given[first], given[end])}: nothing lies between")
    return _made({DECLARED[name].path: value for name, value in parsed.items()})


def scan_options_of(keywords: Mapping[str, Any]) -> ScanOptions:
    """Return the options of an audit for keywords of Python, named as the fields of ScanOptions and ClusterOptions.

    A time is a `datetime` (UTC without a zone) or text (DeclaredField.keyword); a choice may be its text. None was not given.

    Raises:
        UsageError: a value means nothing, or is of another type.

    """
    declared = {field.keyword: field for field in DECLARED.values()}
    values: dict[Sequence[str], Any] = {}
    for name, value in keywords.items():
        field = declared.get(name)
        if value is not None and (field is None or value != field.default):
            values[(name,) if field is None else field.path] = (
                value if field is None else _converted(value, name, field)
            )
    return _made(values)


def _converted(value: Any, name: str, field: DeclaredField) -> object:  # noqa: ANN401 - a value of any option
    parse = field.option.parse
    if parse is parse_time:
        return _time(value, name)
    typed: Any = _of_type(os.fspath(value) if isinstance(value, os.PathLike) else value, name, field.type)
    least = field.option.least
    for number in typed if isinstance(typed, list) else [typed]:
        if least is not None and number < least:
            raise UsageError(f"{name} {number}: less than {least}")
    return typed if parse is None else parse(typed, name)


def _time(value: object, name: str) -> int | None:
    """Return a time in ms since 1970, which a whole number is already."""
    if isinstance(value, datetime):
        return milliseconds(value)
    if isinstance(value, str):
        return parse_time(value, name)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise UsageError(f"{name} {value!r}: not a time; give a datetime or text such as 2026-11-21T03:00:00Z")


def _of_type(value: object, name: str, kind: Any) -> object:  # noqa: ANN401 - a type
    if isinstance(value, Enum):
        value = value.value
    try:
        return convert(value, kind)
    except ValidationError as error:
        raise UsageError(f"{name} {value!r}: {str(error).partition(' - at ')[0]}") from None


def _made(values: Mapping[Sequence[str], Any]) -> ScanOptions:
    """Return the options with these values of fields, each by the names that lead to it."""
    own = {path[0]: value for path, value in values.items() if len(path) == 1}
    cluster = {path[1]: value for path, value in values.items() if len(path) > 1}
    return ScanOptions(**{"paths": (), **own}, cluster=ClusterOptions(**cluster))


def deciding_options(options: ScanOptions) -> list[tuple[str, str]]:
    """Return what decides what is found and is not the default, as it may be typed: (option, text), in the order of --help."""
    found = []
    for name, field in DECLARED.items():
        value: Any = options
        for part in field.path:
            value = getattr(value, part)
        if field.option.decides and value != field.default:
            time = rfc3339(value) if field.option.parse is parse_time else None
            each = value if isinstance(value, list | tuple) else [value]
            found += [(f"--{name}", time or str(one.value if isinstance(one, Enum) else one)) for one in each]
    return found
