"""What `producers --live` returns: the state the log yields beside what the broker has in memory, producer by producer."""

from collections.abc import Sequence
from enum import Enum

from kaudit.model.json_record import JsonRecord

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
