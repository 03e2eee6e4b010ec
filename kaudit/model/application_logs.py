"""Logs of brokers and clients that were read beside the audited logs: one event for each line that is understood, and their summary."""

from collections.abc import Mapping, Sequence
from enum import StrEnum, auto
from typing import Literal

from msgspec import Struct

from kaudit.model.json_record import JsonRecord

Origin = Literal["server", "client"]
Client = Literal["java", "librdkafka", "franz-go", "kafkajs", "sarama", "kafka-python", "aiokafka"]

MAX_TEXT = 1024
"""Characters of a log entry that its event keeps."""


class LogEventKind(StrEnum):
    """The class of an event. In a server log, a refusal is the broker's own; in a client log, it is the answer the client got."""

    # refusals of a produce or transaction request
    OUT_OF_ORDER_SEQUENCE = auto()
    DUPLICATE_SEQUENCE = auto()
    INVALID_PRODUCER_EPOCH = auto()
    FENCED_PRODUCER = auto()
    UNKNOWN_PRODUCER_ID = auto()
    INVALID_TXN_STATE = auto()
    CONCURRENT_TRANSACTIONS = auto()
    TRANSACTION_COORDINATOR_FENCED = auto()
    INVALID_PRODUCER_ID_MAPPING = auto()
    RECORD_REJECTED = auto()
    REQUEST_ERROR = auto()
    # the transaction coordinator
    TRANSACTION_STATE_CHANGE = auto()
    TRANSACTION_TIMEOUT = auto()
    TRANSACTION_MARKER = auto()
    TRANSACTIONAL_ID_EXPIRED = auto()
    COORDINATOR_LOADED = auto()
    COORDINATOR_UNLOADED = auto()
    PRODUCER_ID_BLOCK = auto()
    # leaders and replicas
    LEADER_ELECTED = auto()
    UNCLEAN_LEADER_ELECTED = auto()
    BECAME_LEADER = auto()
    BECAME_FOLLOWER = auto()
    ISR_SHRUNK = auto()
    ISR_EXPANDED = auto()
    TRUNCATED = auto()
    REPLICATION_FAILED = auto()
    BROKER_FENCED = auto()
    # logs and their side files
    LOG_LOADED = auto()
    RECOVERY = auto()
    CORRUPTION = auto()
    LOG_START_OFFSET_MOVED = auto()
    SEGMENT_EXPIRED = auto()
    LOCAL_LOG_START_MOVED = auto()
    REMOTE_COPY_BEGUN = auto()
    REMOTE_COPIED = auto()
    REMOTE_COPY_FAILED = auto()
    REMOTE_READ_FAILED = auto()
    LOG_DELETED = auto()
    SNAPSHOT_WRITTEN = auto()
    SNAPSHOT_LOADED = auto()
    SNAPSHOT_DELETED = auto()
    SNAPSHOT_UNREADABLE = auto()
    PRODUCER_EXPIRED = auto()
    LOG_DIR_FAILED = auto()
    LOG_CLEANING = auto()
    TOPIC_REMOVED = auto()
    KEYLESS_REMOVED = auto()
    # the process
    STARTED = auto()
    STOPPED = auto()
    # clients
    PRODUCER_ID_ASSIGNED = auto()
    EPOCH_BUMPED = auto()
    EPOCHS_EXHAUSTED = auto()
    SEQUENCE_ASSIGNED = auto()
    SEQUENCE_RESET = auto()
    PRODUCER_STATE_CHANGE = auto()
    RETRY = auto()
    DELIVERY_TIMEOUT = auto()
    DELIVERY_FAILED = auto()
    FATAL_ERROR = auto()
    SETTING_OVERRIDDEN = auto()
    DISCONNECTED = auto()
    NO_COMMITTED_OFFSET = auto()
    POSITION_OUT_OF_RANGE = auto()
    POSITION_RESET = auto()
    # what clocks are compared by: the broker wrote the same into a log
    GROUP_STABILIZED = auto()
    GROUP_ASSIGNED = auto()
    GROUP_EMPTIED = auto()
    GROUP_EPOCH_BUMPED = auto()
    BROKER_STARTING = auto()
    BROKER_REGISTERED = auto()
    QUORUM_LEADER = auto()
    LOG_CREATED = auto()
    LOG_ROLLED = auto()


ONLY_FOR_CLOCKS = frozenset(
    {
        LogEventKind.GROUP_STABILIZED,
        LogEventKind.GROUP_ASSIGNED,
        LogEventKind.GROUP_EMPTIED,
        LogEventKind.GROUP_EPOCH_BUMPED,
        LogEventKind.BROKER_STARTING,
        LogEventKind.BROKER_REGISTERED,
        LogEventKind.QUORUM_LEADER,
        LogEventKind.LOG_CREATED,
        LogEventKind.LOG_ROLLED,
    }
)
"""Events that only say what the time was."""


class LogEvent(Struct, frozen=True, kw_only=True):
    """One entry of a log: a line with the lines that continue it. A field is None where the entry does not state it.

    `path` is the file as it was named, `line` the 1-based line the entry begins at. `timestamp_ms` counts milliseconds
    since the epoch; where the log writes local time without its zone, `zone_known` is false and the time is read as if it
    were UTC. Of a refused batch `base_sequence` is the first sequence, `expected_sequence` the one the broker waits for and
    `last_sequence` the last one it has; `producer_epoch` is the batch's and `expected_epoch` the broker's. `offset` is where
    the batch would have been appended, or the offset the entry is about. Of a block of producer ids `producer_id` is the
    first and `last_producer_id` the last, or `next_producer_id` the first after it. `generation` is a
    group's, its epoch since KIP-848. `incarnation` is the id, in Kafka's base64,
    under which a broker registers, and `broker_epoch` what the controller answers. `former_end` is an end (exclusive), or a
    high watermark, that the log had before it was cut off. Of a segment that retention deletes `offset` is the first, `modified_ms` when
    its file was written last, `newest_record_ms` the greatest timestamp of its records, ms since the epoch, and `retention_ms` its topic's limit. `records` is a number of them. `error` is the name in Kafka's `Errors`, else what the log calls it. `pattern` is
    the id of the message pattern, `text` the entry's first MAX_TEXT characters.
    """

    event: LogEventKind
    origin: Origin
    path: str
    line: int
    pattern: str
    text: str
    client: Client | None = None
    timestamp_ms: int | None = None
    zone_known: bool = False
    level: str | None = None
    broker_id: int | None = None
    client_id: str | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    producer_id: int | None = None
    last_producer_id: int | None = None
    next_producer_id: int | None = None
    producer_epoch: int | None = None
    expected_epoch: int | None = None
    base_sequence: int | None = None
    expected_sequence: int | None = None
    last_sequence: int | None = None
    offset: int | None = None
    transactional_id: str | None = None
    transaction_state: str | None = None
    coordinator_epoch: int | None = None
    leader_epoch: int | None = None
    leader: int | None = None
    isr: str | None = None
    error: str | None = None
    group: str | None = None
    generation: int | None = None
    broker_epoch: int | None = None
    incarnation: str | None = None
    former_end: int | None = None
    modified_ms: int | None = None
    newest_record_ms: int | None = None
    retention_ms: int | None = None
    records: int | None = None

    @property
    def line_name(self) -> str:
        """Where it stands, such as `server.log:12`."""
        return f"{self.path.rpartition('/')[2]}:{self.line}"


class ApplicationLogFile(JsonRecord, frozen=True):
    """One file that was read. `unknown_lines` fit no layout and no message that is known, `other_lines` are of other programs.

    `unknown_facts` of the unknown ones hold a fact about producers, `examples` are the first of these.
    """

    path: str
    origin: Origin
    lines: int
    unknown_lines: int
    events: int
    other_lines: int = 0
    unknown_facts: int = 0
    examples: Sequence[str] = ()


class SkippedLog(Struct, frozen=True):
    """A file that was given as a log, or lies in a directory of them, and was not read as one.

    `unreadable`: the audit lacks what it says.
    """

    path: str
    reason: str
    unreadable: bool = False


class ApplicationLogs(Struct, frozen=True):
    """The events of all files, in the order of the files and their lines; `events` counts those that are not kept too."""

    files: Sequence[ApplicationLogFile]
    kept: Sequence[LogEvent]
    events: Mapping[str, int]
    skipped: Sequence[SkippedLog] = ()

    @property
    def producer_ids(self) -> Sequence[int]:
        """The producer ids that events name, ascending."""
        return sorted({event.producer_id for event in self.kept if event.producer_id is not None})

    @property
    def not_kept(self) -> int:
        """The number of events that are only counted; of those that only tell the time some are enough."""
        wanted = sum(count for kind, count in self.events.items() if kind not in ONLY_FOR_CLOCKS)
        return wanted - sum(event.event not in ONLY_FOR_CLOCKS for event in self.kept)


class ClockAnchors(JsonRecord, frozen=True):
    """Lines of a log that tell of what the bytes have: `source` is where, `agreeing` of `anchors` allow the clock's offset."""

    source: str
    anchors: int
    agreeing: int


class LogClock(JsonRecord, frozen=True):
    """The difference between the clock of one broker's logs, in one directory, and the times that brokers wrote into the bytes.

    Of a client's log `directory` is the file.

    `lower_ms` to `upper_ms` may be added to a time of the logs to get a time of the bytes; `likely_ms` is the most
    likely. `zone_minutes` is how far east of UTC the local time of the logs is, None where they state it or it is not
    known. `agreeing` of `anchors` lines allow this difference, `aligned_by` has them by source. `exact`: events that
    both have to the millisecond give one value; else it is an interval, and `time_zones` are those in it, as `UTC+05:30`.
    `spread_ms` is by how much the differences between agreeing lines and their records differ, `behind_controller_ms` how
    far the broker's clock is behind the controller's, negative if ahead, None where the two cannot be told apart. A log whose zone changed
    has several, each for the times of the bytes from `since_ms` to `until_ms`, None where it is the first or the last.
    """

    directory: str
    lower_ms: int
    upper_ms: int
    likely_ms: int
    zone_minutes: int | None
    anchors: int
    agreeing: int
    broker_id: int | None = None
    exact: bool = True
    time_zones: Sequence[str] = ()
    aligned_by: Sequence[ClockAnchors] = ()
    spread_ms: int | None = None
    behind_controller_ms: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None


class UnalignedLog(JsonRecord, frozen=True):
    """A broker's logs whose times are taken as UTC. `reason`: `no-anchor`, or `contradiction` of the lines in `anchors`."""

    directory: str
    broker_id: int | None
    reason: str
    anchors: int


def zone_text(minutes: int) -> str:
    """Return a zone, given in minutes east of UTC, as `UTC+05:30`."""
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


class RefusedBatches(JsonRecord, frozen=True):
    """The batches of one producer id and epoch that a broker refused in a partition, according to its log.

    `lines` says it, the first of them at `line`. `first_sequence` and `last_sequence` are the lowest and the highest
    base sequence refused, where the lines name them. `outcome`: `landed`, if the log holds a later batch of that epoch
    with at least the highest of them; `superseded`, if the producer continued under a higher epoch, which may have
    sent the records again; `fenced`, if another producer had taken over, as intended; `never-landed`; `unknown`, where
    the log does not show it.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int | None
    event: str
    attempts: int
    first_sequence: int | None
    last_sequence: int | None
    outcome: str
    path: str
    line: int
    text: str


class LogEventSummary(JsonRecord, frozen=True):
    """Summary of the logs: files, events by class, clocks, logs without a known clock, and refused batches."""

    files: Sequence[ApplicationLogFile]
    events: Mapping[str, int]
    clocks: Sequence[LogClock] = ()
    refused: Sequence[RefusedBatches] = ()
    refused_not_listed: int = 0
    unaligned: Sequence[UnalignedLog] = ()
