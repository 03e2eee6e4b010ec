"""Reads a partition of __consumer_offsets, __share_group_state or __remote_log_metadata, in this process or in a task."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kaudit.audits.coordinator.commit_history import CommitHistory
from kaudit.audits.coordinator.group_log import GroupLogReader
from kaudit.audits.coordinator.group_members import GroupMembers
from kaudit.audits.coordinator.share_history import ShareHistory
from kaudit.audits.tiered.remote_log import RemoteLogHistory
from kaudit.audits.transactions.committed_inputs import CommittedInputs
from kaudit.model.coordinator import LogBounds
from kaudit.model.group_commits import CommittedSteps, NewestCommit
from kaudit.model.internal_topics import REMOTE_LOG, SHARE_STATE
from kaudit.model.result import NotAudited
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.group_logs import GroupLog, GroupLogQuestion, TopicPartition

_MOST_HISTORIES = 1000
"""Groups and partitions with steps back that are kept of one partition of __consumer_offsets."""
_MOST_PENDING = 100
"""Transactions with pending commits that are kept of one."""


def read_group_log(question: GroupLogQuestion, open_source: OpenSource) -> GroupLog:
    """Read one partition from front to back."""
    directory, reader = question.directory, GroupLogReader(open_source)
    log, not_known = _READERS.get(directory.topic, _read_groups)(question, reader)
    log.notes = [NotAudited(directory.name, text) for text in (*reader.unreadable, *filter(None, not_known))]
    log.failed = reader.failed
    return log


_Read = tuple[GroupLog, Sequence[str]]
"""What was read, and what is not known of it, some texts empty."""


def _read_groups(question: GroupLogQuestion, reader: GroupLogReader) -> _Read:
    names = {log.topic_id: topic for (topic, _), log in question.bounds.items() if log.topic_id is not None}
    history = CommitHistory(GroupMembers(topic_names=names))
    inputs = CommittedInputs(history.members, question.listed)
    reader.follow(question.directory, [history, inputs])
    steps = sorted(history.steps(), key=lambda found: -sum(each.times for each in found.sums.values()))
    pending = list(history.pending())
    left_out = history.not_followed + len(steps[_MOST_HISTORIES:]) + len(pending[_MOST_PENDING:])
    log = GroupLog(
        question.directory,
        [_with_start(found, question.bounds) for found in steps[:_MOST_HISTORIES]],
        [commit for commit in history.newest() if _is_outside(commit, question.bounds)],
        pending[:_MOST_PENDING],
        topic_names=history.members.topic_names,
        inputs=inputs.result(),
    )
    return log, [
        _compacted(history.missing, history.last_missing) if history.missing else "",
        f"{left_out:,} commits, of more groups and partitions than are followed" if left_out else "",
    ]


def _read_share_state(question: GroupLogQuestion, reader: GroupLogReader) -> _Read:
    history = ShareHistory()
    reader.follow(question.directory, [history])
    shares = list(history.shares())
    left_out = history.not_followed + len(shares[_MOST_HISTORIES:])
    more = f"{left_out:,} share-partitions and records, more than are followed" if left_out else ""
    return GroupLog(question.directory, shares=shares[:_MOST_HISTORIES]), [more]


def _read_remote_log(question: GroupLogQuestion, reader: GroupLogReader) -> _Read:
    history = RemoteLogHistory()
    reader.follow(question.directory, [history])
    lost = f"{history.missing:,} of its records are not in the log: which segments are in remote storage is not certain"
    more = f"{history.not_followed:,} records of more remote segments than are followed"
    is_complete = not (history.missing or history.not_followed or reader.unreadable or reader.failed)
    log = GroupLog(question.directory, remote=list(history.logs()), remote_complete=is_complete)
    return log, [lost if history.missing else "", more if history.not_followed else ""]


_READERS = {SHARE_STATE: _read_share_state, REMOTE_LOG: _read_remote_log}


def _with_start(found: CommittedSteps, bounds: Mapping[TopicPartition, LogBounds]) -> CommittedSteps:
    log = bounds.get((found.topic, found.partition))
    return found if log is None else replace(found, log_start_offset=log.start_offset)


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
