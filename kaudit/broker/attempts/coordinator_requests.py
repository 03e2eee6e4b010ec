"""Requests that the transaction coordinator answers: InitProducerId (KIP-360), AddPartitionsToTxn and EndTxn."""

from kaudit.broker.attempts.base import NOT_STATED, ApiVersion, Int16, Int32, Int64, PartitionAttemptBase
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.coordinator.requests import RequestContext
from kaudit.broker.coordinator.transaction_coordinator import FIRST_END_TXN_OF_VERSION_2
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.partition import Partition
from kaudit.broker.producer_state.producer_append_info import TRANSACTION_VERSION_2
from kaudit.broker.response import Answer, Response, TopicPartition
from kaudit.model.batch_fields import NO_PRODUCER_ID


class InitProducerId(PartitionAttemptBase, tag="init_producer_id", kw_only=True):
    """InitProducerId; `producer_id` and `producer_epoch` are what the client has (KIP-360), None where it has none."""

    transactional_id: str | None = None
    producer_id: Int64 | None = None
    producer_epoch: Int16 | None = None
    timeout_ms: Int32 = 60_000
    granted_producer_id: Int64 | None = None
    """The producer id that the allocator gave, if known."""
    api_version: ApiVersion = NOT_STATED
    """Where absent, 0, or the nearest version that the release answers."""


def answer_init_producer_id(
    attempt: InitProducerId, broker: BrokerState, key: TopicPartition, _: Partition, now: int
) -> Answer:
    """Answer with the producer id and epoch that the coordinator grants."""
    result = broker.coordinator.init_producer_id(
        RequestContext(key, attempt.api_version, now, attempt.at is not None, attempt.granted_producer_id),
        attempt.transactional_id,
        attempt.timeout_ms,
        (_or_unknown(attempt.producer_id), _or_unknown(attempt.producer_epoch)),
    )
    return Response(attempt.index, result.fields(with_producer=True), result.why)


def _or_unknown(value: int | None) -> int:
    return NO_PRODUCER_ID if value is None else value


class AddPartitions(PartitionAttemptBase, tag="add_partitions", kw_only=True):
    """AddPartitionsToTxn of this partition."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    api_version: ApiVersion = NOT_STATED
    """Where absent, 0, or the nearest version that the release answers."""


def answer_add_partitions(
    attempt: AddPartitions, broker: BrokerState, key: TopicPartition, _: Partition, now: int
) -> Answer:
    """Answer as the coordinator does when a partition becomes part of a transaction."""
    result = broker.coordinator.add_partitions(
        RequestContext(key, attempt.api_version, now, attempt.at is not None),
        attempt.transactional_id,
        attempt.producer_id,
        attempt.producer_epoch,
    )
    return Response(attempt.index, result.fields(), result.why)


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


def answer_end_txn(attempt: EndTxn, broker: BrokerState, key: TopicPartition, partition: Partition, now: int) -> Answer:
    """Answer as the coordinator does when a transaction is committed or aborted; the markers are written before."""
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
