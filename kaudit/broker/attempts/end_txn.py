"""EndTxn: a client commits or aborts its transaction."""

from kaudit.broker.attempts.base import NOT_STATED, ApiVersion, Int16, Int64, PartitionAttemptBase
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.coordinator.requests import RequestContext
from kaudit.broker.coordinator.transaction_coordinator import FIRST_END_TXN_OF_VERSION_2
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.partition import Partition
from kaudit.broker.producer_state.producer_append_info import TRANSACTION_VERSION_2
from kaudit.broker.response import Answer, Response, TopicPartition


class EndTxn(PartitionAttemptBase, tag="end_txn", kw_only=True):
    """EndTxn."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    commit: bool
    granted_producer_id: Int64 | None = None
    """The producer id that the allocator gave for the next transaction, if known (transaction version 2)."""
    api_version: ApiVersion = NOT_STATED
    """Where absent, 0, or the nearest version that the release answers."""


def answer(attempt: EndTxn, broker: BrokerState, key: TopicPartition, partition: Partition, now: int) -> Answer:
    """Answer as the coordinator does; the markers are written before."""
    bumps = broker.profile.transaction_version2 and attempt.api_version >= FIRST_END_TXN_OF_VERSION_2
    producer_id = attempt.producer_id
    before = partition.state_of(producer_id)
    result = broker.coordinator.end_transaction(
        RequestContext(key, attempt.api_version, now, attempt.at is not None, attempt.granted_producer_id),
        attempt.transactional_id,
        (producer_id, attempt.producer_epoch),
        commit=attempt.commit,
        transaction_version=TRANSACTION_VERSION_2 if bumps else 0,
    )
    fields = result.fields(with_producer=bumps and result.error is KafkaError.NONE)
    return Response(attempt.index, fields, result.why, (producer_id, before, partition.state_of(producer_id)))
