"""DeleteRecords: the log start moves up."""

from kaudit.broker.attempts.base import OffsetOrEnd, PartitionAttemptBase
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.partition import Partition
from kaudit.broker.response import Answer, Response, TopicPartition, ok_fields, rejected_fields


class DeleteRecords(PartitionAttemptBase, tag="delete_records", kw_only=True):
    """DeleteRecords up to an offset."""

    before_offset: OffsetOrEnd


def answer(attempt: DeleteRecords, broker: BrokerState, key: TopicPartition, partition: Partition, now: int) -> Answer:
    """Move the log start and say where it is."""
    before, index = attempt.before_offset, attempt.index
    deletes = broker.limits[key[0]].deletes
    policy = Response(index, rejected_fields(KafkaError.POLICY_VIOLATION), "cleanup.policy does not include delete")
    if not deletes and broker.profile.checks_delete_policy_first:
        return policy
    if before > partition.log_end:
        why = f"offset {before} lies beyond the high watermark {partition.log_end}"
        return Response(index, rejected_fields(KafkaError.OFFSET_OUT_OF_RANGE), why)
    before = partition.log_end if before < 0 else before
    partition.delete_records(before, now, broker.log_start_checkpointed_at(now))
    if not deletes:
        return policy
    why = f"the log starts at {partition.log_start}"
    if broker.profile.forgets_on_log_start_advance:
        why += "; producers whose last data lay below it are forgotten on this version"
    return Response(index, ok_fields(), why)
