"""What consumer groups have committed compared with the ends of the logs they read."""

from collections.abc import Sequence
from itertools import chain

from msgspec.structs import replace

from kaudit.model.coordinator import Committed, CommittedBeyondLogEnd
from kaudit.model.coverage import EndWitness, OffsetClass
from kaudit.model.group_commits import (
    CommitsInTransaction,
    CommittedBelowLogStart,
    CommittedSteps,
    SharePartition,
)
from kaudit.model.grouping import grouped
from kaudit.model.internal_topics import GROUPS
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.checkpoint_audit import CheckpointAudit
from kaudit.scanning.group_logs import GroupLog, GroupLogQuestion, ReadGroupLogs


def group_logs_of(open_source: OpenSource) -> ReadGroupLogs:
    """Return what reads them whenever it is asked."""

    def read(questions: Sequence[GroupLogQuestion]) -> Sequence[GroupLog]:
        if not questions:
            return []
        from kaudit.scanning.group_log_reading import read_group_log  # noqa: PLC0415 - few inputs have commits

        return [read_group_log(question, open_source) for question in questions]

    return read


GroupEvidence = CommittedBeyondLogEnd | CommittedBelowLogStart | CommittedSteps | CommitsInTransaction | SharePartition


def evidence_of_groups(
    parts: Sequence[PartitionAudit], logs: Sequence[GroupLog], checkpoints: CheckpointAudit
) -> list[list[GroupEvidence]]:
    """Return for each partition what groups show of it, and for those of __consumer_offsets that were read what they show of groups.

    What groups consumed beyond a log's end is noted in its coverage.
    Consumers are given what lies below the high watermark, and commits are not compared with the log (OffsetMetadataManager), so
    one beyond the end of all copies is from a log that went further, or was set by a program. It proves that records are lost
    where the log has a later leader epoch than the last record that was consumed: a leader begins with all that was below the
    high watermark. Else the copy may lag behind its leader, or be older than __consumer_offsets.
    """
    outside = grouped(
        ((commit.topic, commit.partition), commit) for commit in chain.from_iterable(log.outside for log in logs)
    )
    names = {name: topic for log in logs for name, topic in log.topic_names.items()}
    names |= {part.directory.topic_id: part.directory.topic for part in parts if part.directory.topic_id is not None}
    read = {log.directory.directory: log for log in logs}
    found: list[list[GroupEvidence]] = [[] for _ in parts]
    for number, part in enumerate(parts):
        log = read.get(part.directory.directory)
        if log is not None:
            shares = [replace(share, topic=names.get(share.topic_id)) for share in log.shares]
            found[number] += [*log.steps, *log.pending, *shares]
        commits = outside.get((part.directory.topic, part.directory.partition))
        start = part.directory.first_readable_offset
        found[number] += [
            CommittedBelowLogStart(commit, start)
            for commit in commits or ()
            if commit.owner is not None and 0 <= commit.committed.offset < start
        ]
        if commits and not part.directory.is_fetched and not checkpoints.has_grown(part):
            found[number] += _compared(part, [commit.committed for commit in commits])
    return found


def _compared(part: PartitionAudit, commits: Sequence[Committed]) -> list[CommittedBeyondLogEnd]:
    account = part.coverage
    if account is None or account.log_end_offset is None:
        return []
    # where leader epochs fall along the log, the last may be the one that is wrong
    newest = int(part.leader_epochs["leader_epoch"][-1]) if len(part.leader_epochs) and not part.regressions else -1
    proven = [commit for commit in commits if 0 <= commit.leader_epoch < newest]
    found: list[CommittedBeyondLogEnd] = []
    for some, epoch in ((proven, newest), (commits, None)):
        furthest = max(some, key=lambda commit: commit.offset, default=None)
        if furthest is None:
            continue
        witness = EndWitness(f"{GROUPS} (group {furthest.group})", furthest.offset)
        kind = OffsetClass.UNKNOWN if epoch is None else OffsetClass.MISSING
        grown = account.known_up_to(furthest.offset, kind, _reason(furthest, epoch))
        if grown is not account:
            account = grown.with_witness(witness)
            found.append(CommittedBeyondLogEnd(furthest, account.log_end_offset or 0, epoch))
    part.coverage = account
    return found


def _reason(commit: Committed, epoch: int | None) -> str:
    consumed = f"group {commit.group} has consumed up to {commit.offset}"
    if epoch is not None:
        return f"{consumed}, in leader epoch {commit.leader_epoch}, and the log has leader epoch {epoch}"
    return f"{consumed}: this copy lags, or is older than {GROUPS}, or its end is lost"
