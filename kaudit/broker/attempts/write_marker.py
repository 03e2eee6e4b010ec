"""WriteTxnMarkers: a coordinator ends a transaction in one partition."""

from kaudit.broker.attempts.base import NOT_STATED, ApiVersion, Int8, Int16, Int32, Int64, PartitionAttemptBase
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.partition import Partition
from kaudit.broker.producer_state.append_result import Outcome
from kaudit.broker.producer_state.producer_state_entry import MarkerBatch
from kaudit.broker.response import Answer, Response, TopicPartition, ok_fields, rejected_fields
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH


class WriteMarker(PartitionAttemptBase, tag="write_marker", kw_only=True):
    """WriteTxnMarkers of one marker."""

    producer_id: Int64
    producer_epoch: Int16
    commit: bool
    coordinator_epoch: Int32
    transaction_version: Int8 = 0
    api_version: ApiVersion = NOT_STATED
    """Where absent, 0, or the nearest version that the release answers."""


def answer(attempt: WriteMarker, broker: BrokerState, key: TopicPartition, partition: Partition, now: int) -> Answer:
    """Write the marker if the producer's state allows it."""
    producer_id = attempt.producer_id
    marker = MarkerBatch(
        producer_id,
        attempt.producer_epoch,
        attempt.coordinator_epoch,
        partition.log_end,
        now,
        attempt.commit,
        attempt.transaction_version,
    )
    if marker.producer_epoch == NO_PRODUCER_EPOCH:
        why = "a batch of a producer id cannot be built without an epoch (MemoryRecordsBuilder)"
        return Response(attempt.index, rejected_fields(KafkaError.UNKNOWN_SERVER_ERROR), why)
    limits = broker.limits[key[0]]
    if limits.older_format:
        why = "the topic's message format has no markers"
        return Response(attempt.index, rejected_fields(KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT), why)
    if limits.lacks_replicas is not None:
        return Response(attempt.index, rejected_fields(KafkaError.NOT_ENOUGH_REPLICAS), limits.lacks_replicas)
    result = partition.append_marker(marker)
    fields = ok_fields() if result.outcome is Outcome.APPENDED else rejected_fields(result.error)
    why = result.why(marker.offset, f"{key[0]}-{key[1]}")
    return Response(attempt.index, fields, why, (producer_id, result.state, partition.state_of(producer_id)))
