"""AddPartitionsToTxn: a partition becomes part of a transaction."""

from kaudit.broker.attempts.base import NOT_STATED, ApiVersion, Int16, Int64, PartitionAttemptBase
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.coordinator.requests import RequestContext
from kaudit.broker.partition.partition import Partition
from kaudit.broker.response import Answer, Response, TopicPartition


class AddPartitions(PartitionAttemptBase, tag="add_partitions", kw_only=True):
    """AddPartitionsToTxn of this partition."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    api_version: ApiVersion = NOT_STATED
    """Where absent, 0, or the nearest version that the release answers."""


def answer(attempt: AddPartitions, broker: BrokerState, key: TopicPartition, _: Partition, now: int) -> Answer:
    """Answer as the coordinator does."""
    result = broker.coordinator.add_partitions(
        RequestContext(key, attempt.api_version, now, attempt.at is not None),
        attempt.transactional_id,
        attempt.producer_id,
        attempt.producer_epoch,
    )
    return Response(attempt.index, result.fields(), result.why)
