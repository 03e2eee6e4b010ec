"""The committed offsets of groups over time: what of it is not plain progress."""

from collections.abc import Iterator, Sized

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from kaudit.audits.coordinator.group_log import (
    CommitKey,
    CommitRecord,
    GroupLogEntry,
    GroupRecord,
    MissingRecords,
    TransactionEnd,
)
from kaudit.audits.coordinator.group_members import Group, GroupMembers
from kaudit.model.batch_fields import NO_LEADER_EPOCH, NO_OFFSET, NO_PRODUCER_ID, NO_TIMESTAMP
from kaudit.model.coordinator import Committed
from kaudit.model.group_commits import (
    MOST_STEPS,
    CommitsInTransaction,
    CommitStep,
    CommittedSteps,
    Committer,
    NewestCommit,
    StepKind,
    StepSum,
)

MOST_PARTITIONS = 300_000
"""Committed offsets followed in one partition of __consumer_offsets (some 150 MB)."""
_MOST_PENDING = 100_000
MOST_TAKEN = 100_000
_AT_ONCE_MS = 60_000
"""A member that rejoins or finds its coordinator again commits within its session timeout, at most 45 s by default."""


class _Offset(Struct, gc=False):
    """The committed offset of one group and partition, by its last commit, and its steps so far."""

    last: CommitRecord
    committed: int
    topic_id: str | None
    by: Committer
    changes: int
    """The changes of the group's members before it."""
    removed_ms: int | None = None
    """When a tombstone removed it, None: it is there."""
    commits: int = 1
    steps: list[CommitStep] = field(default_factory=list)
    sums: dict[StepKind, StepSum] = field(default_factory=dict)
    is_below: bool = False
    """Nothing has been committed yet from where the last step back began."""
    last_below: int | None = None
    """The last commit below the offset from which the last step back began, once it was restored."""
    continued: int = 0
    """Steps back to where commits had gone on below the offset before."""
    alternating: bool = False
    reader: Committer | None = None
    """Whose next commits show what is read again since the last step back."""


class Generation(Struct, frozen=True, gc=False):
    """A group from the record at `offset` on: its generation, and how many members it has."""

    group: str
    offset: int
    timestamp: int
    generation: int
    members: int


class CommitHistory(Struct):
    """Follows one partition of __consumer_offsets as a coordinator loads it (GroupMetadataManager, OffsetMetadataManager).

    A commit in a transaction takes effect with its marker, unless the group has committed the partition after it.
    """

    members: GroupMembers = field(default_factory=GroupMembers)
    missing: int = 0
    last_missing: int = NO_OFFSET
    of_group: str | None = None
    keeps_commits: bool = False
    """All commits that took effect are kept in `taken`, and the group's changes, of `of_group` or of all, up to MOST_TAKEN of each."""
    taken: list[tuple[CommitRecord, Committer]] = field(default_factory=list)
    generations: list[Generation] = field(default_factory=list)
    not_followed: int = 0
    """Commits of groups and partitions beyond MOST_PARTITIONS."""
    _offsets: dict[CommitKey, _Offset] = field(default_factory=dict)
    _pending: dict[int, list[CommitRecord]] = field(default_factory=dict)
    _pending_count: int = 0
    _newest_generation: dict[str, tuple[int, int]] = field(default_factory=dict)
    _coordinator_epoch: int | None = None
    _moved_ms: int = NO_TIMESTAMP
    """When the coordinator moved, or started again, last."""

    def take(self, entry: GroupLogEntry) -> None:
        """Take the next entry."""
        if isinstance(entry, CommitRecord):
            self._take_commit(entry)
        elif isinstance(entry, GroupRecord):
            self._take_epoch(entry)
            group = self.members.take(entry)
            if group is not None and self.keeps_commits and self._keeps(group, self.generations):
                self._keep_generation(group, entry)
        elif isinstance(entry, TransactionEnd):
            waiting = self._pending.pop(entry.producer_id, ())
            self._pending_count -= len(waiting)
            if entry.commits:
                for commit in waiting:
                    known = self._offsets.get(commit.key)
                    if known is None or known.last.offset < commit.offset:
                        self._apply(commit)
        elif isinstance(entry, MissingRecords):
            self.missing += entry.last - entry.first + 1
            self.last_missing = entry.last

    def _keeps(self, group: str, known: Sized) -> bool:
        return self.of_group in (None, group) and len(known) < MOST_TAKEN

    def _keep_generation(self, name: str, entry: GroupRecord) -> None:
        group = self.members.groups[name]
        now = group.generation, len(group.members)
        if group.generation >= 0 and self._newest_generation.get(name) != now:
            self._newest_generation[name] = now
            self.generations.append(Generation(name, entry.offset, entry.timestamp, *now))

    def _take_epoch(self, record: CommitRecord | GroupRecord) -> None:
        if record.coordinator_epoch != self._coordinator_epoch:
            if self._coordinator_epoch is not None:
                self._moved_ms = record.timestamp
            self._coordinator_epoch = record.coordinator_epoch

    def _take_commit(self, commit: CommitRecord) -> None:
        if commit.coordinator_epoch != self._coordinator_epoch:
            self._take_epoch(commit)
        if commit.producer_id == NO_PRODUCER_ID:
            self._apply(commit)
        elif self._pending_count < _MOST_PENDING:
            self._pending_count += 1
            self._pending.setdefault(commit.producer_id, []).append(commit)
        else:
            self.not_followed += 1

    def _apply(self, commit: CommitRecord) -> None:
        known = self._offsets.get(commit.key)
        if commit.committed is None:
            if known is not None and known.removed_ms is None:
                known.removed_ms = commit.timestamp
            return
        group = self.members.groups.get(commit.key[0], _NO_GROUP)
        if (
            known is not None
            and known.changes == group.changes
            and known.last.producer_id == commit.producer_id
            and known.last.producer_epoch == commit.producer_epoch
        ):
            by = known.by
        else:
            by = _committer(commit, group)
        if self.keeps_commits and self._keeps(commit.key[0], self.taken):
            self.taken.append((commit, by))
        if known is None or are_two_topics({known.topic_id, commit.topic_id}):
            if known is None and len(self._offsets) >= MOST_PARTITIONS and not self._forget_removed():
                self.not_followed += 1
                return
            self._offsets[commit.key] = _Offset(commit, commit.committed, commit.topic_id, by, group.changes)
            return
        if commit.committed < known.committed or commit.leader_epoch == NO_LEADER_EPOCH or known.is_below:
            self._compare(known, commit, by, group)
        known.last, known.committed, known.by, known.changes = commit, commit.committed, by, group.changes
        known.topic_id, known.removed_ms, known.commits = commit.topic_id or known.topic_id, None, known.commits + 1

    def _compare(self, known: _Offset, commit: CommitRecord, by: Committer, group: Group) -> None:
        """Take note of a commit that may be more than plain progress."""
        kind = self._kind(known, commit, by, group)
        disturbed_ms = max(group.changed_ms, self._moved_ms)
        if kind is not None:
            _step(known, commit, by, kind, disturbed_ms)
        elif known.is_below:
            _read_on(known, commit, by)
            _restore(known, commit, by, disturbed_ms)

    def _kind(self, known: _Offset, commit: CommitRecord, by: Committer, group: Group) -> StepKind | None:
        """What a commit is that is not plain progress, None for one that is."""
        assert commit.committed is not None
        is_set = by.producer_id is None and not group.members and commit.leader_epoch == NO_LEADER_EPOCH
        is_hidden = known.last.offset < self.last_missing
        if commit.committed >= known.committed:
            forward = is_set and group.had_members and commit.committed > known.committed and known.removed_ms is None
            return StepKind.RESET if forward and not is_hidden else None
        if is_hidden:
            return StepKind.COMPACTED
        if known.removed_ms is not None:
            return StepKind.REMOVED
        return StepKind.RESET if is_set else StepKind.BACK

    def _forget_removed(self) -> bool:
        """Forget the groups whose offsets were removed: whether there was one."""
        gone = [key for key, known in self._offsets.items() if known.removed_ms is not None and not known.steps]
        for key in gone:
            del self._offsets[key]
        return bool(gone)

    def steps(self) -> Iterator[CommittedSteps]:
        """Yield the offsets that did not only go forward."""
        for (group, topic, partition), known in self._offsets.items():
            if known.sums:
                # what was corrected at once was one writer's, however often
                alternating = known.alternating and any(kind in known.sums for kind in _SAWTOOTH)
                yield CommittedSteps(group, topic, partition, known.steps, known.sums, alternating, known.commits)

    def newest(self) -> Iterator[NewestCommit]:
        """Yield the newest commit of each group and partition that has not been removed."""
        for (name, topic, partition), known in self._offsets.items():
            if known.removed_ms is None:
                owner = self.members.groups.get(name, _NO_GROUP).committer(topic, known.topic_id, partition)
                committed = Committed(name, known.committed, known.last.leader_epoch)
                place = topic, partition, known.topic_id, known.last.offset, known.last.timestamp
                yield NewestCommit(committed, *place, owner if owner.member_id is not None else None)

    def pending(self) -> Iterator[CommitsInTransaction]:
        """Yield the commits whose transaction has not ended."""
        for producer_id, waiting in self._pending.items():
            first, keys = waiting[0], [commit.key for commit in waiting[:MOST_STEPS]]
            yield CommitsInTransaction(producer_id, first.producer_epoch, first.offset, first.timestamp, keys)


_NO_GROUP = Group()


def are_two_topics(topic_ids: set[str | None]) -> bool:
    """Whether the topic was deleted and created again under its name; None where a commit does not say which it is."""
    return len(topic_ids - {None}) > 1


def _committer(commit: CommitRecord, group: Group) -> Committer:
    by = group.committer(commit.key[1], commit.topic_id, commit.key[2])
    if commit.producer_id == NO_PRODUCER_ID:
        return by
    return replace(by, producer_id=commit.producer_id, producer_epoch=commit.producer_epoch)


def _step(known: _Offset, commit: CommitRecord, by: Committer, kind: StepKind, disturbed_ms: int) -> None:
    assert commit.committed is not None
    before = known.committed, known.last.offset, known.last.timestamp, known.by
    known.steps.append(
        CommitStep(kind, commit.offset, commit.timestamp, commit.committed, by, *before, known.removed_ms)
    )
    if len(known.steps) > MOST_STEPS:
        del known.steps[MOST_STEPS // 2]
    is_back = commit.committed < known.committed
    _count(known, kind, StepSum(1, abs(known.committed - commit.committed), known.committed if is_back else 0))
    if not is_back:
        return
    if kind in _SAWTOOTH and known.last_below is not None and commit.committed >= known.last_below:
        known.continued += 1
        # who sets the offset by a tool may do so twice, and the group reads all of it in one go
        known.alternating |= known.continued >= (1 if kind is StepKind.BACK else 2)
    known.last_below, known.is_below = None, True
    may_be_late = _who(by) == _who(known.by) and disturbed_ms >= commit.timestamp - _AT_ONCE_MS
    known.reader = by if _who(by) != _NOBODY and (kind is StepKind.REMOVED or not may_be_late) else None


def _read_on(known: _Offset, commit: CommitRecord, by: Committer) -> None:
    """Whoever has stepped back, and commits more by and by, reads again; a commit that restores all at once may follow one that was late."""
    step = known.steps[-1]
    assert commit.committed is not None
    if known.reader is None or _who(by) != _who(known.reader):
        # where another one began is not known: only what it commits from here on shows what it reads
        known.reader = by if _who(by) not in (_NOBODY, _who(step.by)) else None
    elif StepKind.REMOVED is step.kind or commit.committed < step.committed_before or known.committed > step.committed:
        read = min(commit.committed, step.committed_before) - known.committed
        _count(known, step.kind, StepSum(read_again=read))


_SAWTOOTH = (StepKind.BACK, StepKind.RESET)


def _count(known: _Offset, kind: StepKind, more: StepSum, sign: int = 1) -> None:
    before = known.sums.get(kind, StepSum())
    known.sums[kind] = StepSum(*(old + sign * new for old, new in zip(astuple(before), astuple(more), strict=True)))
    if not known.sums[kind].times:
        del known.sums[kind]


_Who = tuple[int | None, str | None]
_NOBODY: _Who = (None, None)


def _who(by: Committer) -> _Who:
    return by.producer_id, by.member_id


def _restore(known: _Offset, commit: CommitRecord, by: Committer, disturbed_ms: int) -> None:
    """A commit that is not below the one before may reach what the last step back began from."""
    step = known.steps[-1]
    assert commit.committed is not None
    if commit.committed < step.committed_before:
        return
    known.is_below, known.last_below = False, known.committed
    another = step.by.producer_id is not None and step.by.producer_id != step.before.producer_id
    known.alternating |= another and by.producer_id is not None and by.producer_id == step.before.producer_id
    kind = step.kind
    at_once = known.last.offset == step.offset and commit.timestamp - step.timestamp <= _AT_ONCE_MS
    disturbed = disturbed_ms >= step.timestamp - _AT_ONCE_MS
    if kind is StepKind.BACK and at_once and disturbed and _who(by) == _who(step.before) == _who(step.by):
        kind = StepKind.CORRECTED
        own = StepSum(1, step.committed_before - step.committed, step.committed_before)
        _count(known, StepKind.BACK, own, -1)
        _count(known, kind, own)
    known.steps[-1] = replace(step, kind=kind, restored_offset=commit.offset, restored_timestamp=commit.timestamp)
