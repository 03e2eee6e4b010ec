"""Answers of brokers to kaudit's requests. Offsets and times (ms since the epoch) are -1 where a broker gives none."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from kaudit.source.kafka.fetched_segment import Aborted


class TopicPartition(NamedTuple):
    """One partition by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Node(Struct, frozen=True):
    """One broker as Metadata lists it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> str:
        """Its host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Cluster(Struct, frozen=True):
    """A cluster: its id (since Kafka 0.10.1), and its brokers."""

    cluster_id: str | None
    nodes: Sequence[Node]


class PartitionMetadata(Struct, frozen=True):
    """One partition: node ids of its leader (-1: none), its replicas, those in sync, and those offline."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    in_sync: Sequence[int]
    offline: Sequence[int] = ()


class TopicMetadata(Struct, frozen=True):
    """One topic. `topic_id` is Kafka's base64 text of its UUID, as in partition.metadata; None before 2.8."""

    topic: str
    topic_id: str | None
    is_internal: bool
    partitions: Sequence[PartitionMetadata]


class Fetched(Struct, frozen=True):
    """An answer of Fetch: whole batches as they lie in the log, the last one perhaps cut off.

    The first batch may begin before the offset asked for. `aborted` are the aborted transactions that overlap the batches, known
    below the last stable offset and only where READ_COMMITTED was asked for. `node` is the broker that answered.
    """

    records: bytes
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Aborted
    node: int


class ActiveProducer(Struct, frozen=True):
    """A producer's state on the leader (KIP-664), by Kafka's names."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class ListedTransaction(Struct, frozen=True):
    """A transactional id that a coordinator, a node, knows, and its state's name (Ongoing, CompleteCommit, ...)."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class DescribedTransaction(Struct, frozen=True):
    """A transactional id as its coordinator describes it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_time_ms: int
    partitions: Sequence[TopicPartition]


class BrokerFeatures(Struct, frozen=True):
    """Request versions of a broker, (lowest, highest) by API key; finalized feature levels by name (KIP-584)."""

    api_versions: Mapping[int, tuple[int, int]]
    finalized: Mapping[str, int]
