"""What consumer groups have committed compared with the ends of the logs they read."""

from collections.abc import Iterable, Sequence

from kaudit.model.coordinator import Committed, CommittedBeyondLogEnd, LogEnd
from kaudit.model.coverage import EndWitness, OffsetClass
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.checkpoint_audit import CheckpointAudit
from kaudit.source.layout import PartitionDirectory

CONSUMER_OFFSETS = "__consumer_offsets"
_TopicPartition = tuple[str, int]


def consumed_beyond(
    parts: Sequence[PartitionAudit],
    directories: Iterable[PartitionDirectory],
    checkpoints: CheckpointAudit,
    open_source: OpenSource,
) -> list[list[CommittedBeyondLogEnd]]:
    """Return for each partition what groups consumed beyond its log's end, and note that in its coverage.

    Consumers are given what lies below the high watermark, and commits are not compared with the log (OffsetMetadataManager), so
    one beyond the end of all copies is from a log that went further, or was set by a program. It proves that records are lost
    where the log has a later leader epoch than the last record that was consumed: a leader begins with all that was below the
    high watermark. Else the copy may lag behind its leader, or be older than __consumer_offsets.
    """
    found: list[list[CommittedBeyondLogEnd]] = [[] for _ in parts]
    offsets = [entry for entry in directories if entry.topic == CONSUMER_OFFSETS]
    if not offsets:
        return found
    from kaudit.audits.coordinator.committed_offsets import commits_beyond  # noqa: PLC0415 - few inputs have commits

    ends: dict[_TopicPartition, LogEnd] = {}
    uncertain: set[_TopicPartition] = set()
    for part in parts:
        key, end = _key(part), checkpoints.end_of(part)
        if end is None:
            uncertain.add(key)
        elif key not in ends or ends[key].offset < end:
            ends[key] = LogEnd(end, part.directory.topic_id)
    for key in uncertain:
        ends.pop(key, None)
    beyond = commits_beyond(offsets, ends, open_source)
    for number, part in enumerate(parts):
        commits = beyond.get(_key(part))
        if commits and not part.directory.is_fetched and not checkpoints.has_grown(part):
            found[number] = _compared(part, commits)
    return found


def _key(part: PartitionAudit) -> _TopicPartition:
    return part.directory.topic, part.directory.partition


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
        witness = EndWitness(f"{CONSUMER_OFFSETS} (group {furthest.group})", furthest.offset)
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
    return f"{consumed}: this copy lags, or is older than {CONSUMER_OFFSETS}, or its end is lost"
