"""InitProducerId: a client asks for a producer id and epoch (KIP-360)."""

from kaudit.broker.attempts.base import NOT_STATED, ApiVersion, Int16, Int32, Int64, PartitionAttemptBase
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.coordinator.requests import RequestContext
from kaudit.broker.partition.partition import Partition
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


def answer(attempt: InitProducerId, broker: BrokerState, key: TopicPartition, _: Partition, now: int) -> Answer:
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
