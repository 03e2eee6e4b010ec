"""What __consumer_offsets and __share_group_state show of groups, and __remote_log_metadata of remote segments.

Each takes one pass over each of its partitions, in this process or in a task.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from kaudit.model.coordinator import LogBounds
from kaudit.model.exactly_once import GroupInputs
from kaudit.model.group_commits import CommitsInTransaction, CommittedSteps, NewestCommit, SharePartition
from kaudit.model.internal_topics import GROUPS, REMOTE_LOG, SHARE_STATE
from kaudit.model.remote_segments import RemoteLog
from kaudit.model.result import NotAudited
from kaudit.partition.audit import PartitionAudit
from kaudit.scanning.checkpoint_audit import CheckpointAudit
from kaudit.source.layout import PartitionDirectory, Unreadable, furthest_replicas

TopicPartition = tuple[str, int]


class GroupLogQuestion(Struct, frozen=True):
    """A partition of an internal topic to read; for __consumer_offsets the bounds of the logs that its commits are compared with.

    `listed`: how many transactions, the newest, are listed with their inputs.
    """

    directory: PartitionDirectory
    bounds: Mapping[TopicPartition, LogBounds]
    listed: int = 0


class GroupLog(Struct):
    """What one partition of an internal topic shows. `outside`: the newest commits beyond the ends of the logs, or below their starts.

    `remote` are the remote logs of the partitions that a partition of __remote_log_metadata has; `remote_complete`: none of its records
    is missing.
    """

    directory: PartitionDirectory
    steps: Sequence[CommittedSteps] = ()
    outside: Sequence[NewestCommit] = ()
    pending: Sequence[CommitsInTransaction] = ()
    shares: Sequence[SharePartition] = ()
    topic_names: Mapping[str, str] = {}
    """By id, as records of share groups say."""
    notes: Sequence[NotAudited] = ()
    failed: list[Unreadable] = field(default_factory=list)
    inputs: GroupInputs = field(default_factory=GroupInputs)
    """What its transactions have committed of their inputs."""
    remote: Sequence[RemoteLog] = ()
    remote_complete: bool = True


ReadGroupLogs = Callable[[Sequence[GroupLogQuestion]], Sequence[GroupLog]]
"""Reads partitions of internal topics."""


def questions_of(
    directories: Iterable[PartitionDirectory],
    parts: Sequence[PartitionAudit],
    checkpoints: CheckpointAudit,
    listed: int = 0,
) -> list[GroupLogQuestion]:
    """Return what is to be read, and compared with the bounds of all copies of each partition; none where an end is not certain."""
    furthest = furthest_replicas(directories, (GROUPS, REMOTE_LOG, SHARE_STATE))
    if not furthest:
        return []
    bounds: dict[TopicPartition, LogBounds] = {}
    uncertain: set[TopicPartition] = set()
    for part in parts:
        place = part.directory.topic, part.directory.partition
        end = checkpoints.end_of(part)
        if end is None:
            uncertain.add(place)
            continue
        known = bounds.get(place)
        start = part.directory.first_readable_offset
        if known is None or known.end_offset < end:
            topic_id = part.directory.topic_id
            start = start if known is None else min(start, known.start_offset)
            bounds[place] = LogBounds(start, end, topic_id)
        elif start < known.start_offset:
            bounds[place] = LogBounds(start, known.end_offset, known.topic_id)
    for place in uncertain:
        bounds.pop(place, None)
    return [
        GroupLogQuestion(directory, bounds if directory.topic == GROUPS else {}, listed // len(furthest))
        for directory in furthest
    ]
