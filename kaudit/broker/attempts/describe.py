"""The state of a partition is asked for."""

from collections.abc import Iterable
from typing import Any

from kaudit.broker.attempts.base import PartitionAttemptBase
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.partition.partition import Partition
from kaudit.broker.partition.replica import Replica
from kaudit.broker.producer_state.producer_state_manager import AbortedTransaction
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer, Response, TopicPartition


class Describe(PartitionAttemptBase, tag="describe", kw_only=True):
    """The partition's offsets, aborted transactions and producers are asked for."""


def answer(attempt: Describe, broker: BrokerState, _: TopicPartition, partition: Partition, __: int) -> Answer:
    """Answer with the offsets, aborted transactions and producers."""
    fields = describe(partition, broker.profile, partition.aborted_for_readers())
    if partition.leader is not None:
        fields["leader"] = partition.leader
    return Response(attempt.index, fields, "what the partition's leader knows")


def describe(partition: Replica, profile: Profile, aborted: Iterable[AbortedTransaction]) -> dict[str, Any]:
    """Return the answer to an attempt that asks for a partition's state; `aborted` are the transactions readers see."""
    fields: dict[str, Any] = {
        "outcome": "ok",
        "high_watermark": partition.log_end,
        "log_start_offset": partition.log_start,
        "last_stable_offset": partition.last_stable_offset,
        "aborted": [{"producer_id": row.producer_id, "first_offset": row.first_offset} for row in aborted],
    }
    if profile.describes_producers:
        fields["producers"] = described_producers(partition)
    return fields


def described_producers(partition: Replica) -> list[dict[str, int]]:
    """Return the producers as DescribeProducers lists them."""
    return [
        {
            "producer_id": producer_id,
            "producer_epoch": state.epoch,
            "last_sequence": state.last_sequence,
            "last_timestamp": state.last_timestamp,
            "coordinator_epoch": state.coordinator_epoch,
            "current_txn_start_offset": state.current_txn_first_offset,
        }
        for producer_id, state in sorted(partition.producers.states.items())
    ]
