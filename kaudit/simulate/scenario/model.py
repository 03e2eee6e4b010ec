"""A scenario, read and checked. Times are ms since the run begins, sizes bytes."""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from kaudit.simulate.producer.config import ProducerConfig

DEFAULT_DETECT_MS = 1_000
"""How long the controller takes to notice that a broker died."""


class ClusterSpec(Struct, frozen=True):
    """Brokers 1 to `brokers` of one release, and their configuration under Kafka's names."""

    version: str
    brokers: int
    detect_ms: int
    config: Mapping[str, str]


class TopicSpec(Struct, frozen=True):
    """One topic; partition p is led by broker p mod brokers + 1 at first."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str]


class TransactionSpec(Struct, frozen=True):
    """How an application cuts its records into transactions and ends each; the outcomes repeat."""

    records: int
    outcomes: tuple[bool, ...]
    """True for a commit."""
    pause_ms: int
    """How long the application waits between the last record and the end."""


class ProducerSpec(Struct, frozen=True):
    """An application with a producer: `records` of them, `burst` at once every `every_ms`, round robin."""

    name: str
    application: str
    topic: str
    records: int
    start_ms: int
    every_ms: int
    burst: int
    record_bytes: int
    transaction: TransactionSpec | None
    initializations: int
    """How often initTransactions is called before the first record: each raises the epoch."""
    sessions: int
    """Producers opened one after the other, each for its share of the records: each takes a new producer id."""
    config: ProducerConfig


class FaultKind(Enum):
    """What a scenario can do to a cluster and its clients."""

    LOSE_REQUEST = "lose-request"
    LOSE_RESPONSE = "lose-response"
    KILL_BROKER = "kill-broker"
    STOP_BROKER = "stop-broker"
    START_BROKER = "start-broker"
    PAUSE_BROKER = "pause-broker"
    KILL_PRODUCER = "kill-producer"
    PAUSE_PRODUCER = "pause-producer"
    DELETE_RECORDS = "delete-records"
    LOSE_ALLOCATION = "lose-allocation"


class Fault(Struct, frozen=True):
    """One fault. Fields a kind does not use keep their defaults.

    `request` counts a producer's produce requests from 1, retries included; `times` is how many from there on.
    """

    kind: FaultKind
    at_ms: int = 0
    broker: int = 0
    leader_of: tuple[str, int] | None = None
    """Instead of `broker`: whoever leads then."""
    producer: str = ""
    request: int = 0
    times: int = 1
    silent: bool = False
    behind: bool = True
    for_ms: int = 0
    restart_after_ms: int | None = None
    resend: int = 0
    without_snapshots: bool = False
    partition: tuple[str, int] | None = None
    before_offset: int = -1


class IntRange(Struct, frozen=True):
    """Bounds of a whole number drawn per run, both included."""

    low: int
    high: int


class RandomFaults(Struct, frozen=True):
    """Bounds of random faults; a seed picks within them. Rates are per message, 0 to 1."""

    request_loss: float
    response_loss: float
    silent_share: float
    within_ms: IntRange
    """When the events below happen."""
    kills: IntRange
    stops: IntRange
    pauses: IntRange
    down_ms: IntRange
    pause_ms: IntRange
    producer_kills: IntRange
    resend: IntRange
    deletions: IntRange


class Scenario(Struct, frozen=True):
    """Everything a run needs besides its seed."""

    name: str
    title: str
    story: str
    seed: int
    starts_at: int
    """The wall clock at time 0, ms since 1970."""
    duration_ms: int
    """Nothing happens after this."""
    delays: tuple[int, int]
    cluster: ClusterSpec
    topics: tuple[TopicSpec, ...]
    producers: tuple[ProducerSpec, ...]
    faults: tuple[Fault, ...]
    random_faults: RandomFaults | None
    stop_at_end: bool
    """Whether running brokers are stopped cleanly at the end, before their files are written."""
