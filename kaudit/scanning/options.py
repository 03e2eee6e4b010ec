"""What to audit and how, as every engine takes it."""

from collections.abc import Sequence
from enum import Enum
from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Struct

from kaudit.broker.releases.profile import UnknownVersionError, profile_for
from kaudit.errors import UsageError
from kaudit.model.application_logs import ApplicationLogs
from kaudit.source.kafka.options import ClusterOptions
from kaudit.source.option import Option, parse_int64s, parse_time


class Depth(Enum):
    """How deep to read: `headers` trusts framing, `crc` verifies every batch, `records` decodes them too."""

    HEADERS = "headers"
    CRC = "crc"
    RECORDS = "records"


def parse_broker_version(text: str, option: str = "--broker-version") -> str:
    """Check a broker version: `auto`, or a release whose rules are known."""
    if text != "auto":
        try:
            profile_for(text)
        except UnknownVersionError as error:
            raise UsageError(f"{option} {text}: {error}") from None
    return text


class ScanOptions(Struct, frozen=True):
    """Options of a scan. Times are ms since the epoch; None means unset; empty sequences mean no filter.

    `zookeeper`, `blocks` and `metadata` say where blocks of producer ids are recorded; any of them replaces what would be
    found among the inputs.
    """

    paths: Sequence[str]
    broker_version: Annotated[
        str,
        Option(
            "broker-version",
            "The broker that wrote the log, e.g. 2.0.1; auto looks for evidence.",
            "VERSION",
            parse=parse_broker_version,
        ),
    ] = "auto"
    topics: Annotated[Sequence[str], Option("topic", "Only this topic. Repeatable.", "TOPIC")] = ()
    partitions: Annotated[Sequence[int], Option("partition", "Only this partition. Repeatable.", "N", least=0)] = ()
    producer_ids: Annotated[
        Sequence[int], Option("producer-id", "Only this producer id. Repeatable.", "ID", least=0, parse=parse_int64s)
    ] = ()
    since_ms: Annotated[
        int | None, Option("since", "Report only from this time on (RFC 3339, UTC).", "TIME", parse=parse_time)
    ] = None
    until_ms: Annotated[int | None, Option("until", "Report only up to this time.", "TIME", parse=parse_time)] = None
    now_ms: Annotated[
        int | None,
        Option(
            "now",
            "The time to judge idleness by; default: the newest batch in the directory.",
            "TIME",
            parse=parse_time,
        ),
    ] = None
    log_start_offset: Annotated[
        int | None,
        Option(
            "log-start-offset",
            "Log start of the partitions, for copies without the broker's checkpoint.",
            "N",
            least=0,
            parse=parse_int64s,
        ),
    ] = None
    compacted: Annotated[
        bool, Option("compacted", "The topics are compacted, for copies without the broker's checkpoint.")
    ] = False
    compacted_topics: Sequence[str] = ()
    jobs: Annotated[int | None, Option("jobs", "Processes to read with; default: one per core.", "N", least=1)] = None
    depth: Annotated[Depth, Option("depth", "Trust headers, verify every CRC, or decode records too.", "DEPTH")] = (
        Depth.CRC
    )
    zookeeper: Annotated[
        str | None, Option("zookeeper", "ZooKeeper's data directory: source of producer id blocks, up to 2.8.", "DIR")
    ] = None
    blocks: Annotated[
        str | None,
        Option("blocks", "Saved values of /latest_producer_id_block, or answers, one JSON object a line.", "FILE"),
    ] = None
    metadata: Annotated[
        str | None,
        Option(
            "metadata", "A log directory with __cluster_metadata-0: source of producer id blocks under KRaft.", "DIR"
        ),
    ] = None
    require_all: Annotated[
        bool, Option("require-all", "Exit 3 without an audit unless every PATH, topic and partition given is there.")
    ] = False
    """Nothing is audited unless every input, and all that was asked for, is there."""
    layout: Annotated[
        str | None,
        Option(
            "layout",
            "Where topic, partition and replica stand in a path: 'dc={replica}/{topic}/p{partition}'.",
            "PATTERN",
        ),
    ] = None
    """Pattern of --layout: where topic, partition and replica stand in a path."""
    cluster: ClusterOptions = ClusterOptions()
    """How to connect to brokers, for kafka:// inputs, and which offsets to read."""
    logs: ApplicationLogs | None = None
    """What logs of brokers and clients say."""
    contents: bool = False
    """Every batch, or record with that depth, is to be compared with those before it."""
    digests: Annotated[
        bool,
        Option(
            "digests",
            "Name in the report the batches that were judged, by digests: kaudit diff REPORT.json DIR proves later that they are the same.",
        ),
    ] = False
    """The result names which batches were judged."""
    state: Annotated[
        str | None,
        Option(
            "state",
            "Save here what reading gives (a directory, hdfs://, s3://), so that the next audit reads only what is new.",
            "URL",
        ),
    ] = None
    """Path or URL where what reading gives is saved, for the next audit. Changes nothing that is found."""
    chunk_bytes: int | None = None
    """Size of the ranges a segment is cut into; None: what was measured best. Changes nothing that is found."""

    def says_compacted(self, topic: str) -> bool:
        """Return whether the user says that the topic is compacted: all are, or this one by name or pattern."""
        return self.compacted or any(fnmatchcase(topic, pattern) for pattern in self.compacted_topics)
