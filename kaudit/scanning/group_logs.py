"""What __consumer_offsets shows of groups: one pass over each of its partitions, in this process or in a task."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from kaudit.model.coordinator import LogBounds
from kaudit.model.exactly_once import GroupInputs
from kaudit.model.group_commits import CommitsInTransaction, CommittedSteps, NewestCommit
from kaudit.model.internal_topics import GROUPS
from kaudit.model.result import NotAudited
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.checkpoint_audit import CheckpointAudit
from kaudit.source.layout import PartitionDirectory, Unreadable

TopicPartition = tuple[str, int]
_MOST_HISTORIES = 1000
"""Groups and partitions with steps back that are kept of one partition of __consumer_offsets."""
_MOST_PENDING = 100
"""Transactions with pending commits that are kept of one."""


class GroupLogQuestion(Struct, frozen=True):
    """A partition of __consumer_offsets to read, and the bounds of the logs that its commits are compared with.

    `listed`: how many transactions, the newest, are listed with their inputs.
    """

    directory: PartitionDirectory
    bounds: Mapping[TopicPartition, LogBounds]
    listed: int = 0


class GroupLog(Struct):
    """What one partition of __consumer_offsets shows. `outside`: the newest commits beyond the ends of the logs, or below their starts."""

    directory: PartitionDirectory
    steps: Sequence[CommittedSteps] = ()
    outside: Sequence[NewestCommit] = ()
    pending: Sequence[CommitsInTransaction] = ()
    notes: Sequence[NotAudited] = ()
    failed: list[Unreadable] = field(default_factory=list)
    inputs: GroupInputs = field(default_factory=GroupInputs)
    """What its transactions have committed of their inputs."""


ReadGroupLogs = Callable[[Sequence[GroupLogQuestion]], Sequence[GroupLog]]
"""Reads partitions of __consumer_offsets."""


def group_logs_of(open_source: OpenSource) -> ReadGroupLogs:
    """Return what reads them whenever it is asked."""
    return lambda questions: [read_group_log(question, open_source) for question in questions]


def read_group_log(question: GroupLogQuestion, open_source: OpenSource) -> GroupLog:
    """Read one partition from front to back."""
    # few inputs have commits
    from kaudit.audits.coordinator.commit_history import CommitHistory  # noqa: PLC0415
    from kaudit.audits.coordinator.group_log import GroupLogReader  # noqa: PLC0415
    from kaudit.audits.transactions.committed_inputs import CommittedInputs  # noqa: PLC0415

    directory = question.directory
    reader, history = GroupLogReader(open_source), CommitHistory()
    inputs = CommittedInputs(history.members, question.listed)
    reader.follow(directory, [history, inputs])
    steps, pending = list(history.steps()), list(history.pending())
    notes = [NotAudited(directory.name, text) for text in reader.unreadable]
    if history.missing:
        notes.append(NotAudited(directory.name, _compacted(history.missing, history.last_missing)))
    left_out = history.not_followed + len(steps[_MOST_HISTORIES:]) + len(pending[_MOST_PENDING:])
    if left_out:
        notes.append(
            NotAudited(directory.name, f"{left_out:,} commits, of more groups and partitions than are followed")
        )
    return GroupLog(
        directory,
        sorted(steps, key=lambda found: -sum(count for count, _ in found.sums.values()))[:_MOST_HISTORIES],
        [commit for commit in history.newest() if _is_outside(commit, question.bounds)],
        pending[:_MOST_PENDING],
        notes,
        reader.failed,
        inputs.result(),
    )


def _compacted(missing: int, last: int) -> str:
    return (
        f"{missing:,} offsets up to {last} are not in the log: compaction keeps the last commit of each group and partition, so what "
        "was committed there before, and by whom, is not known"
    )


def _is_outside(commit: NewestCommit, bounds: Mapping[TopicPartition, LogBounds]) -> bool:
    """Whether the log does not hold the commit's offset. A topic that was deleted and created again has another id."""
    log = bounds.get((commit.topic, commit.partition))
    if log is None or (None not in (commit.topic_id, log.topic_id) and commit.topic_id != log.topic_id):
        return False
    return commit.committed.offset > log.end_offset or commit.committed.offset < log.start_offset


def questions_of(
    directories: Iterable[PartitionDirectory],
    parts: Sequence[PartitionAudit],
    checkpoints: CheckpointAudit,
    listed: int = 0,
) -> list[GroupLogQuestion]:
    """Return what is to be read, and compared with the bounds of all copies of each partition; none where an end is not certain."""
    furthest = furthest_replicas(entry for entry in directories if entry.topic == GROUPS)
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
        start = part.directory.start_offset
        if known is None or known.end_offset < end:
            topic_id = part.directory.topic_id
            start = start if known is None else min(start, known.start_offset)
            bounds[place] = LogBounds(start, end, topic_id)
        elif start < known.start_offset:
            bounds[place] = LogBounds(start, known.end_offset, known.topic_id)
    for place in uncertain:
        bounds.pop(place, None)
    return [GroupLogQuestion(directory, bounds, listed // len(furthest)) for directory in furthest]


def furthest_replicas(directories: Iterable[PartitionDirectory]) -> list[PartitionDirectory]:
    """Return of each partition of __consumer_offsets the replica that goes furthest, by number.

    Of those that go equally far it is the longest: compaction has removed least of it.
    """
    furthest: dict[int, PartitionDirectory] = {}
    for directory in directories:
        if directory.topic == GROUPS:
            known = furthest.get(directory.partition)
            if known is None or _length(known) < _length(directory):
                furthest[directory.partition] = directory
    return [directory for _, directory in sorted(furthest.items())]


def _length(directory: PartitionDirectory) -> tuple[int, int, int]:
    last = directory.segments[-1:]
    return (last[0].base_offset, last[0].size, directory.bytes) if last else (-1, 0, 0)
