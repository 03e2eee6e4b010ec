"""Time passes, and idle producers are dropped."""

from kaudit.broker.attempts.base import Int64, Natural, PartitionAttemptBase
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.partition.partition import Partition
from kaudit.broker.response import Answer, Response, TopicPartition


class Wait(PartitionAttemptBase, tag="wait", kw_only=True):
    """Time passes."""

    ms: Natural


def answer_wait(attempt: Wait, broker: BrokerState, key: TopicPartition, partition: Partition, now: int) -> Answer:
    """Let the broker do what is due."""
    if attempt.at is None:
        now += attempt.ms
        broker.clocks[key] = now
        partition.pass_time(now)
        broker.abort_timed_out(key, now)
    return Response(attempt.index, {"outcome": "ok"}, f"{attempt.ms} ms pass")


class ExpireProducers(PartitionAttemptBase, tag="expire_producers", kw_only=True):
    """The broker dropped producers that were idle; for when its clock or configuration do not say so."""

    producer_ids: list[Int64] | None = None
    """The producer ids; where absent, all that are idle for too long at `at`. Open transactions never expire."""


def answer_expire_producers(
    attempt: ExpireProducers, _: BrokerState, __: TopicPartition, partition: Partition, now: int
) -> Answer:
    """Drop the producers named, or those that are idle for too long."""
    if attempt.producer_ids is None:
        partition.forget_idle(now)
    else:
        partition.forget(attempt.producer_ids)
    remembered = len(partition.producers.states)
    return Response(attempt.index, {"outcome": "ok"}, f"idle producers are forgotten, {remembered} are remembered")
