"""Reads a partition of __consumer_offsets, __share_group_state or __remote_log_metadata, in this process or in a task."""

from collections.abc import Mapping

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
from kaudit.source.layout import PartitionDirectory

_MOST_HISTORIES = 1000
"""Groups and partitions with steps back that are kept of one partition of __consumer_offsets."""
_MOST_PENDING = 100
"""Transactions with pending commits that are kept of one."""


def read_group_log(question: GroupLogQuestion, open_source: OpenSource) -> GroupLog:
    """Read one partition from front to back."""
    directory = question.directory
    reader = GroupLogReader(open_source)
    if directory.topic == SHARE_STATE:
        return _read_share_state(directory, reader)
    if directory.topic == REMOTE_LOG:
        return _read_remote_log(directory, reader)
    names = {log.topic_id: topic for (topic, _), log in question.bounds.items() if log.topic_id is not None}
    history = CommitHistory(GroupMembers(topic_names=names))
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
        [
            _with_start(found, question.bounds)
            for found in sorted(steps, key=lambda found: -sum(each.times for each in found.sums.values()))
        ][:_MOST_HISTORIES],
        [commit for commit in history.newest() if _is_outside(commit, question.bounds)],
        pending[:_MOST_PENDING],
        topic_names=history.members.topic_names,
        notes=notes,
        failed=reader.failed,
        inputs=inputs.result(),
    )


def _read_share_state(directory: PartitionDirectory, reader: GroupLogReader) -> GroupLog:
    history = ShareHistory()
    reader.follow(directory, [history])
    shares = list(history.shares())
    notes = [NotAudited(directory.name, text) for text in reader.unreadable]
    left_out = history.not_followed + len(shares[_MOST_HISTORIES:])
    if left_out:
        notes.append(NotAudited(directory.name, f"{left_out:,} share-partitions and records, more than are followed"))
    return GroupLog(directory, shares=shares[:_MOST_HISTORIES], notes=notes, failed=reader.failed)


def _read_remote_log(directory: PartitionDirectory, reader: GroupLogReader) -> GroupLog:
    history = RemoteLogHistory()
    reader.follow(directory, [history])
    notes = [NotAudited(directory.name, text) for text in reader.unreadable]
    if history.missing:
        lost = f"{history.missing:,} of its records are not in the log: which segments are in remote storage is not certain"
        notes.append(NotAudited(directory.name, lost))
    if history.not_followed:
        notes.append(
            NotAudited(directory.name, f"{history.not_followed:,} records of more remote segments than are followed")
        )
    is_complete = not (history.missing or history.not_followed or reader.unreadable or reader.failed)
    logs = list(history.logs())
    return GroupLog(directory, notes=notes, failed=reader.failed, remote=logs, remote_complete=is_complete)


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
