"""Leadership moves to another replica, or a replica that follows restarts."""

from typing import Any, Literal

from kaudit.broker.attempts.base import Int32, Natural, PartitionAttemptBase
from kaudit.broker.attempts.describe import described_producers
from kaudit.broker.broker_state import BrokerState
from kaudit.broker.partition.partition import Partition
from kaudit.broker.response import Answer, Response, TopicPartition

LeaderChangeKind = Literal["clean", "kill9", "unclean", "paused"]


class LeaderChange(PartitionAttemptBase, tag="leader_change", kw_only=True):
    """Another replica leads; it lacks what lies from `lost_from_offset` on."""

    how: LeaderChangeKind
    lost_from_offset: Natural | None = None
    old_leader: Int32 | None = None
    new_leader: Int32 | None = None
    via: str | None = None


def answer(attempt: LeaderChange, broker: BrokerState, _: TopicPartition, partition: Partition, now: int) -> Answer:
    """Let the new leader answer from here on."""
    killed = attempt.how in ("kill9", "unclean")
    if attempt.old_leader is not None:
        partition.leader = attempt.old_leader
    checkpointed_at = broker.log_start_checkpointed_at(now)
    partition.change_leader(
        now,
        attempt.new_leader,
        attempt.lost_from_offset,
        old_restarts=killed or attempt.via == "controlled_shutdown",
        old_log_start=partition.log_start_written(checkpointed_at) if killed else partition.log_start,
    )
    fields: dict[str, Any] = {"outcome": "ok"}
    if broker.profile.describes_producers:
        fields["producers"] = described_producers(partition)
    return Response(attempt.index, fields, "the new leader knows what it has replicated")


class FollowerRestart(PartitionAttemptBase, tag="follower_restart", kw_only=True):
    """A replica that follows was restarted: `replica`, or the one that leads next."""

    clean: bool = True
    replica: Int32 | None = None
    log_end_offset: Natural | None = None


def answer_follower_restart(
    attempt: FollowerRestart, _: BrokerState, __: TopicPartition, partition: Partition, now: int
) -> Answer:
    """Take note of what the replica remembers after its restart."""
    partition.restart_follower(now, attempt.replica, attempt.log_end_offset)
    return Response(attempt.index, {"outcome": "ok"}, "the next leader keeps the newest batch of every producer")
