"""TxnOffsetCommit: consumer offsets become part of a transaction. Source: GroupMetadataManager.storeOffsets."""

from kaudit.broker.attempts.base import NOT_STATED, ApiVersion, Int16, Int64, PartitionAttemptBase, RecordCount
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.coordinator.requests import RequestContext
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.partition import Partition
from kaudit.broker.partition.record_set import Refusal, refused
from kaudit.broker.producer_state.append_result import Origin, Outcome
from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.broker.response import Answer, Response, TopicPartition, ok_fields, rejected_fields
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_SEQUENCE

_GENERIC_ERROR_VERSION, _ADDING_VERSION = 4, 5
"""Versions from which clients understand TRANSACTION_ABORTABLE, and from which the request adds the partition."""


class TxnOffsetCommit(PartitionAttemptBase, tag="txn_offset_commit", kw_only=True):
    """TxnOffsetCommit, in the partition of __consumer_offsets that holds the group; its members are not checked."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    record_count: RecordCount = 1
    """How many offsets are committed."""
    api_version: ApiVersion = NOT_STATED
    """Where absent, 0, or the nearest version that the release answers."""


def answer(
    attempt: TxnOffsetCommit, broker: BrokerState, key: TopicPartition, partition: Partition, now: int
) -> Answer:
    """Let the group coordinator append the offsets."""
    profile = broker.profile
    producer_id, epoch, version = attempt.producer_id, attempt.producer_epoch, attempt.api_version
    adds = profile.transaction_version2 and version >= _ADDING_VERSION
    if profile.verifies_coordinator_appends and (broker.verifier.verifies or adds):
        request = RequestContext(key, version, now, attempt.at is not None)
        first = (producer_id, epoch, NO_SEQUENCE)
        versions = (adds, profile.abortable_error and version >= _GENERIC_ERROR_VERSION)
        refusal = broker.verifier.verify(request, attempt.transactional_id, first, partition, versions)
        if refusal is not None:
            if refusal.error is KafkaError.NOT_ENOUGH_REPLICAS:
                refusal = Refusal(KafkaError.COORDINATOR_NOT_AVAILABLE, refusal.why)
            return refused(attempt.index, refusal)
    refusal = _refuse_append(producer_id, epoch, broker.limits[key[0]].lacks_replicas)
    if refusal is not None:
        return refused(attempt.index, refusal)
    offset, last = partition.log_end, attempt.record_count - 1
    # Every such batch has the sequences 0 to last: nobody checks them.
    batch = DataBatch(producer_id, epoch, 0, last, offset, offset + last, now, is_transactional=True)
    after, result = partition.append(batch, Origin.COORDINATOR)
    fields = ok_fields() if result.outcome is Outcome.APPENDED else rejected_fields(result.error)
    return Response(attempt.index, fields, result.why(offset, f"{key[0]}-{key[1]}"), (producer_id, result.state, after))


def _refuse_append(producer_id: int, epoch: int, too_few_replicas: str | None) -> Refusal | None:
    """Return why no batch of offsets reaches the log."""
    if producer_id >= 0 and epoch == NO_PRODUCER_EPOCH:  # the exception of the batch's builder has no error code
        return Refusal(KafkaError.UNKNOWN_SERVER_ERROR, "invalid negative producer epoch")
    if too_few_replicas is not None:  # what GroupMetadataManager makes of NOT_ENOUGH_REPLICAS
        return Refusal(KafkaError.COORDINATOR_NOT_AVAILABLE, too_few_replicas)
    return None
