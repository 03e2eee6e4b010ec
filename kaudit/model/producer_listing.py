"""What `producers` returns: producer ids, where each was active, the state a broker would rebuild, and their blocks.

With `--live` it returns the state that the log yields beside what the broker has in memory, producer by producer.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from msgspec import Struct, field

from kaudit.model.coordinator import ExpiredTransactionalId
from kaudit.model.json_record import JsonRecord
from kaudit.model.result import ScanResult


class GrantedBlock(JsonRecord, frozen=True, rename={"at_ms": "at"}):
    """Ids `start`..`end` (inclusive) granted to `broker` at `at_ms`; `version` is the znode's, `source` the file."""

    start: int
    end: int
    broker: int | None
    version: int | None
    at_ms: int | None
    source: str


class ProducerState(JsonRecord, frozen=True):
    """What a broker that loads this log holds of the producer, -1 where it holds nothing (DescribeProducers)."""

    producer_epoch: int
    last_sequence: int
    last_offset: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class ProducerPartition(JsonRecord, frozen=True):
    """One producer id in one partition replica. Offsets and timestamps cover batches and markers.

    `epochs` is how many the log shows, from `first_epoch` to `last_epoch`, the highest.
    """

    topic: str
    partition: int
    replica: str
    first_offset: int
    last_offset: int
    first_timestamp: int
    last_timestamp: int
    first_epoch: int
    last_epoch: int
    epochs: int
    batches: int
    records: int
    state: ProducerState
    findings: Sequence[str] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        fields = super().to_dict()
        del fields["first_epoch"], fields["last_epoch"]
        return fields | {"epochs": {"first": self.first_epoch, "last": self.last_epoch, "count": self.epochs}}


class Producer(Struct, frozen=True):
    """One producer id. `grants` are the blocks that hold it, oldest first: one, unless its id was granted twice.

    `pattern` says what kind of client it looks like. The totals count each partition once, whatever its replicas;
    `findings` are the codes of the findings about it.
    """

    producer_id: int
    transactional_id: str | None
    pattern: str
    grants: Sequence[GrantedBlock]
    partitions: Sequence[ProducerPartition]
    first_timestamp: int
    last_timestamp: int
    batches: int
    records: int
    epochs: int
    findings: Sequence[str] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        block: Mapping[str, object] | None = None
        if self.grants:
            newest = self.grants[-1]
            block = {"start": newest.start, "end": newest.end, "broker": newest.broker, "grants": len(self.grants)}
        return {
            "producer_id": self.producer_id,
            "transactional_id": self.transactional_id,
            "pattern": self.pattern,
            "block": block,
            "partitions": [partition.to_dict() for partition in self.partitions],
        }


class ProducersResult(Struct, frozen=True):
    """The producer ids chosen, in the order asked for. `producers` are made while iterating: there may be a million.

    `found` counts the ids in the logs, `listed` those in `producers`, at most `limit` if there is one. `summary` is JSON-ready. `detailed`: ids were asked
    for by number, so people want to see all of them. `omitted` ids were chosen, and an engine only counted them.
    `expired` are transactional ids, the last to expire first; `summary` counts them.
    """

    scan: ScanResult
    producers: Iterable[Producer]
    found: int
    listed: int
    limit: int | None = None
    blocks: Sequence[GrantedBlock] = ()
    summary: Mapping[str, object] = field(default_factory=dict)
    detailed: bool = False
    omitted: int = 0
    expired: Sequence[ExpiredTransactionalId] = ()


COMPARED = ("producer_epoch", "last_sequence", "last_timestamp", "coordinator_epoch", "current_txn_start_offset")
"""The fields of DescribeProducers (KIP-664), which are fields of ProducerState too."""


class Relation(Enum):
    """How the two states of a producer relate."""

    IDENTICAL = "identical"
    DIFFERENT = "different"
    LOG_ONLY = "log-only"
    BROKER_ONLY = "broker-only"


class DescribedState(JsonRecord, frozen=True):
    """A producer's state, -1 where there is nothing."""

    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class ComparedProducer(JsonRecord, frozen=True):
    """One producer of a partition. `differences` names the fields; `explanation` is None where nothing accounts for them."""

    producer_id: int
    relation: Relation
    log: DescribedState | None
    broker: DescribedState | None
    differences: Sequence[str] = ()
    explanation: str | None = None


class ComparedPartition(JsonRecord, frozen=True):
    """One partition: the node id of the broker that was asked, and the producers that it or the log has state of."""

    topic: str
    partition: int
    node: int
    producers: Sequence[ComparedProducer]

    @property
    def unexplained(self) -> int:
        """How many producers differ without an explanation."""
        return sum(each.relation is not Relation.IDENTICAL and each.explanation is None for each in self.producers)
