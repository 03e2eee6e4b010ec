"""What to audit and how, as every engine takes it."""

from collections.abc import Sequence
from enum import Enum
from fnmatch import fnmatchcase

from msgspec import Struct

from kaudit.model.application_logs import ApplicationLogs
from kaudit.source.kafka.options import ClusterOptions


class Depth(Enum):
    """How deep to read: `headers` trusts framing, `crc` verifies every batch, `records` decodes them too."""

    HEADERS = "headers"
    CRC = "crc"
    RECORDS = "records"


class ScanOptions(Struct, frozen=True):
    """Options of a scan. Times are ms since the epoch; None means unset; empty sequences mean no filter.

    `zookeeper`, `blocks` and `metadata` say where blocks of producer ids are recorded; any of them replaces what would be
    found among the inputs.
    """

    paths: Sequence[str]
    broker_version: str = "auto"
    topics: Sequence[str] = ()
    partitions: Sequence[int] = ()
    producer_ids: Sequence[int] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    now_ms: int | None = None
    log_start_offset: int | None = None
    compacted: bool = False
    compacted_topics: Sequence[str] = ()
    jobs: int | None = None
    depth: Depth = Depth.CRC
    zookeeper: str | None = None
    blocks: str | None = None
    metadata: str | None = None
    require_all: bool = False
    """Nothing is audited unless every input, and all that was asked for, is there."""
    layout: str | None = None
    """Pattern of --layout: where topic, partition and replica stand in a path."""
    cluster: ClusterOptions = ClusterOptions()
    """How to connect to brokers, for kafka:// inputs, and which offsets to read."""
    logs: ApplicationLogs | None = None
    """What logs of brokers and clients say."""
    contents: bool = False
    """Every batch, or record with that depth, is to be compared with those before it."""
    digests: bool = False
    """The result names which batches were judged."""
    state: str | None = None
    """Path or URL where what reading gives is saved, for the next audit. Changes nothing that is found."""
    chunk_bytes: int | None = None
    """Size of the ranges a segment is cut into; None: what was measured best. Changes nothing that is found."""

    def says_compacted(self, topic: str) -> bool:
        """Return whether the user says that the topic is compacted: all are, or this one by name or pattern."""
        return self.compacted or any(fnmatchcase(topic, pattern) for pattern in self.compacted_topics)
