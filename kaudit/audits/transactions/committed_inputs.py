"""The inputs of transactions: what groups commit in them, and what that shows of inputs processed twice or never.

A record OffsetCommit says where a group goes on. What a transaction has of a partition's inputs begins where the group went on
before: at the offset committed before it, or where the same producer's commit before it ended. An application is
expected to go on there (KIP-98, KIP-447); that it did not is shown by commits that go back or that no transaction has.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.audits.coordinator.commit_history import are_two_topics
from kaudit.audits.coordinator.group_log import (
    CommitKey,
    CommitRecord,
    GroupLogEntry,
    MissingRecords,
    TransactionEnd,
)
from kaudit.audits.coordinator.group_members import GroupMembers
from kaudit.model.batch_fields import NO_OFFSET, NO_PRODUCER_ID, NO_TIMESTAMP
from kaudit.model.exactly_once import (
    CommitsOutside,
    CommitTimes,
    EndOfTransaction,
    GroupInputs,
    InputRange,
    InputTransaction,
    Outcome,
    ProcessedTwice,
    SameOffset,
    Skipped,
    WentOn,
)

_MOST_LISTED = 1000
"""Entries of each list of a partition of __consumer_offsets."""
_MOST_RANGES = 64
"""Committed ranges of an input partition that are remembered."""
_MOST_PRODUCERS = 10_000
"""Producer ids whose groups are remembered."""
_MOST_KEYS = 200_000
"""Input partitions of groups that are followed; of those that come later nothing is said."""
_MOST_READ = 8
"""Input partitions of a group without transactions whose committed offsets are remembered."""
_TOGETHER_MS = 10
"""Commits of several partitions within this time are one."""
_MOST_OPEN = 10_000
"""Transactions that are open at the same time."""


class _Range(Struct, gc=False):
    first: int
    end: int
    by: EndOfTransaction


class _Place(Struct):
    """Where a group stands in one input partition: `record` is the offset of the commit that says so, by `producer` (-1: none).

    `own`: where the last commit of each producer ended. `ranges` were committed in transactions. `jumped`: inputs passed over by
    a commit outside any. `aborted`: the aborted ranges since the last commit.
    """

    position: int | None = None
    record: int = NO_OFFSET
    producer: int = NO_PRODUCER_ID
    topic_id: str | None = None
    own: dict[int, int] = field(default_factory=dict)
    ranges: "deque[_Range]" = field(default_factory=lambda: deque(maxlen=_MOST_RANGES))
    jumped: Skipped | None = None
    aborted: list[tuple[InputRange, EndOfTransaction]] = field(default_factory=list)
    covered: int = 0
    """No range ends above."""
    pending: int | None = None
    """The last offset that a transaction has which is not yet ended."""
    twice: int | None = None
    """The number of its last entry among those of inputs processed twice."""

    def cover(self, own: _Range) -> None:
        """Remember inputs that were committed."""
        self.ranges.append(own)
        self.covered = max(self.covered, own.end)


_NOWHERE = NO_OFFSET, NO_TIMESTAMP


class _Group(Struct):
    in_transactions: int = 0
    outside: int = 0
    waiting: int = 0
    """Commits outside since the last one in a transaction: a group that commits outside from now on has been changed."""
    topics: dict[str, None] = field(default_factory=dict)
    first: tuple[int, int] = _NOWHERE
    last: tuple[int, int] = _NOWHERE
    newest: tuple[int, int] = _NOWHERE
    times: "deque[int]" = field(default_factory=lambda: deque(maxlen=_MOST_RANGES))
    plain: int = 0
    """Commits outside, with members, before the first one in a transaction."""
    read: dict[CommitKey, tuple[int, int]] = field(default_factory=dict)
    """The first and the last offset that they commit, of a few partitions."""

    def take_plain(self, commit: CommitRecord) -> None:
        """Take a commit outside, with members, before the first one in a transaction."""
        assert commit.committed is not None
        self.plain += 1
        known = self.read.get(commit.key)
        if known is not None:
            self.read[commit.key] = known[0], commit.committed
        elif len(self.read) < _MOST_READ:
            self.read[commit.key] = commit.committed, commit.committed
        if not self.times or self.times[-1] + _TOGETHER_MS < commit.timestamp:
            self.times.append(commit.timestamp)


class _Open(Struct):
    epoch: int
    begun_ms: int
    commits: dict[CommitKey, tuple[CommitRecord, int | None]] = field(default_factory=dict)
    """The last commit of each input partition, and where the group stood there when it was written."""


class CommittedInputs(Struct):
    """Follows the entries of one partition of __consumer_offsets (`group_log.Follower`); `result` when all were taken.

    `members` follows the same entries before this. `listed`: how many transactions, the newest, are listed.
    """

    members: GroupMembers
    listed: int
    _found: GroupInputs = field(default_factory=GroupInputs)
    _places: dict[CommitKey, _Place] = field(default_factory=dict)
    _outside_only: dict[CommitKey, CommitRecord] = field(default_factory=dict)
    """The last commit of input partitions that no transaction has committed."""
    _groups: dict[str, _Group] = field(default_factory=dict)
    _waiting: dict[str, _Group] = field(default_factory=dict)
    _open: dict[int, _Open] = field(default_factory=dict)
    _newest: "deque[InputTransaction]" = field(default_factory=deque)
    _has_gap: bool = False

    def take(self, entry: GroupLogEntry) -> None:
        """Take the next entry."""
        if isinstance(entry, MissingRecords):
            self._lose(entry)
        elif self._has_gap:
            self._has_gap, self._found.since_ms = False, entry.timestamp
        if isinstance(entry, CommitRecord):
            if entry.producer_id < 0:
                self._take_plain(entry)
            else:
                self._take_pending(entry)
        elif isinstance(entry, TransactionEnd):
            self._end(entry)

    def result(self) -> GroupInputs:
        """Return what was found; transactions that no marker ended are open."""
        found = self._found
        for producer_id, pending in self._open.items():
            found.counts.open += 1
            ends = ((commit.key, before, commit.committed or 0) for commit, before in pending.commits.values())
            ranges = [_range(key, _known(before, end), end) for key, before, end in ends]
            self._list(InputTransaction(producer_id, pending.epoch, pending.begun_ms, None, Outcome.OPEN, ranges))
        found.outside = list(self._outside())
        found.plain = list(islice(self._plain(), _MOST_LISTED))
        found.listed = list(self._newest)
        return found

    def _take_plain(self, commit: CommitRecord) -> None:
        key, name = commit.key, commit.key[0]
        group = self._group(name)
        place = self._place(commit) if group.in_transactions or key in self._places else None
        if place is None and not self._take_outside(commit):
            return
        is_transactional = place is not None and (group.in_transactions > 0 or place.pending is not None)
        known = self.members.groups.get(name)
        if commit.committed is None or known is None or not known.members:
            # a reset, or a consumer that no group assigns its partitions
            if place is not None:
                self._restart(commit, place)
            return
        if is_transactional and not group.outside + group.waiting:
            # what came before its first transaction is another matter
            group.topics.clear()
            group.first = _NOWHERE
        group.topics[key[1]] = None
        group.newest = commit.offset, commit.timestamp
        if group.first == _NOWHERE:
            group.first = group.newest
        if place is None or not is_transactional:
            group.take_plain(commit)
            if place is not None:
                self._restart(commit, place)
            return
        group.waiting += 1
        self._waiting[name] = group
        # the producer learns that its transaction is committed before the markers are written
        before = place.position if place.pending is None else place.pending
        if before is None:
            self._restart(commit, place)
            return
        if commit.committed > before:
            place.jumped = Skipped(_range(commit.key, before, commit.committed), commit.offset, commit.timestamp)
        place.position, place.record, place.producer = commit.committed, commit.offset, NO_PRODUCER_ID

    def _restart(self, commit: CommitRecord, place: _Place) -> None:
        """Begin again: what is processed from here on is meant to be."""
        self._places[commit.key] = _Place(
            commit.committed, commit.offset, topic_id=place.topic_id, pending=place.pending
        )

    def _take_outside(self, commit: CommitRecord) -> bool:
        """Remember a commit of an input partition that no transaction has committed; return False for a partition too many."""
        before = self._outside_only.get(commit.key)
        if before is None and self._is_full():
            return False
        if before is not None and commit.topic_id is None:
            commit = replace(commit, topic_id=before.topic_id)
        self._outside_only[commit.key] = commit
        return True

    def _take_pending(self, commit: CommitRecord) -> None:
        place = self._place(commit)
        if place is None or (commit.producer_id not in self._open and len(self._open) >= _MOST_OPEN):
            return
        pending = self._open.setdefault(commit.producer_id, _Open(commit.producer_epoch, commit.timestamp))
        pending.commits[commit.key] = commit, place.position
        place.pending = commit.committed

    def _end(self, marker: TransactionEnd) -> None:
        pending = self._open.pop(marker.producer_id, None)
        if pending is None:
            return
        end = EndOfTransaction(marker.producer_id, marker.producer_epoch, marker.timestamp, marker.offset)
        counts, ranges = self._found.counts, list[InputRange]()
        for key, (commit, before) in pending.commits.items():
            if commit.committed is None:
                continue
            self._remember(marker.producer_id, key[0])
            place = self._places[key]
            place.pending = None
            if marker.commits:
                ranges.append(self._commit(place, commit, before, end))
            else:
                ranges.append(_range(key, _known(before, commit.committed), commit.committed))
                if len(place.aborted) < _MOST_RANGES:
                    place.aborted.append((ranges[-1], end))
        inputs = sum(each.end - each.first for each in ranges if each.first is not None)
        outcome = Outcome.COMMITTED if marker.commits else Outcome.ABORTED
        if marker.commits:
            counts.committed, counts.inputs_committed = counts.committed + 1, counts.inputs_committed + inputs
        else:
            counts.aborted, counts.inputs_aborted = counts.aborted + 1, counts.inputs_aborted + inputs
        if self.listed:
            self._list(InputTransaction(marker.producer_id, pending.epoch, pending.begun_ms, end, outcome, ranges))

    def _commit(self, place: _Place, commit: CommitRecord, seen: int | None, end: EndOfTransaction) -> InputRange:
        """Apply a commit of a transaction; return the inputs that it has."""
        key, to = commit.key, commit.committed
        assert to is not None
        self._counted(key[0])
        own = place.own.get(end.producer_id)
        is_late = commit.offset <= place.record
        # a commit that was written before another one that counts already began where the group stood then
        before = seen if is_late else place.position
        if before is not None and own is not None:
            before = max(before, own)  # another one has gone back since; this producer goes on
        found = self._compared(place, key, to, before, own, end)
        place.own[end.producer_id] = to
        if len(place.own) > _MOST_RANGES:
            del place.own[next(iter(place.own))]
        if found.first is None:
            place.cover(_Range(max(to - 1, 0), to, end))
        elif found.first < to:
            place.cover(_Range(found.first, to, end))
        if not is_late:
            self._after_jump(place, found)
            self._after_abort(place, found, end)
            place.position, place.record, place.producer = to, commit.offset, end.producer_id
        return found

    def _compared(  # noqa: PLR0913, PLR0917 - what a commit is compared with
        self, place: _Place, key: CommitKey, to: int, before: int | None, own: int | None, end: EndOfTransaction
    ) -> InputRange:
        if before is None:
            return _range(key, before, to)
        if to > before:
            self._overlap(place, _range(key, before, to), end)
            return _range(key, before, to)
        first = own if own is not None and own < to else None
        held = next((each for each in reversed(place.ranges) if each.first < to <= each.end), None)
        if to == before:
            # the same offset once more: of a producer that has read nothing, or of two that have read the same
            if held is not None and end.producer_id not in (held.by.producer_id, place.producer):
                self._note("same_offset", SameOffset(_range(key, first, to), held.by, end))
            return _range(key, to, to)
        if own == to:
            return _range(key, to, to)  # what it had committed before: it has read nothing since
        if held is not None:
            inputs = _range(key, None if first is None else max(first, held.first), to)
            self._note_twice(place, inputs, before, held.by, end)
        return _range(key, first, to)

    def _overlap(self, place: _Place, found: InputRange, end: EndOfTransaction) -> None:
        """Note inputs that were committed before, by the ranges that have them."""
        assert found.first is not None
        for known in place.ranges if found.first < place.covered else ():
            first, stop = max(known.first, found.first), min(known.end, found.end)
            if first < stop:
                key = found.group, found.topic, found.partition
                self._note_twice(place, _range(key, first, stop), found.first, known.by, end)

    def _note_twice(
        self, place: _Place, inputs: InputRange, committed: int, before: EndOfTransaction, again: EndOfTransaction
    ) -> None:
        """Note inputs that were processed twice; those that the same producer goes on with are one entry."""
        known = None if place.twice is None else self._found.twice[place.twice]
        if (
            known is None
            or inputs.first is None
            or known.again.producer_id != again.producer_id
            or not (known.inputs.first or 0) <= inputs.first <= known.inputs.end
        ):
            place.twice = len(self._found.twice) if len(self._found.twice) < _MOST_LISTED else None
            self._note("twice", ProcessedTwice(inputs, committed, before, again, again))
            return
        assert place.twice is not None
        self._found.twice[place.twice] = replace(
            known,
            inputs=replace(known.inputs, end=max(known.inputs.end, inputs.end)),
            last=again,
            transactions=known.transactions + (known.last != again),
        )

    def _after_jump(self, place: _Place, found: InputRange) -> None:
        jump, place.jumped = place.jumped, None
        if jump is not None and found.first == jump.inputs.end and found.end > jump.inputs.end:
            self._note("skipped", jump)

    def _after_abort(self, place: _Place, found: InputRange, end: EndOfTransaction) -> None:
        for inputs, aborted in place.aborted:
            if inputs.first is not None and inputs.first == found.first and inputs.end < found.end:
                self._note("went_on", WentOn(inputs, aborted, end))
        place.aborted.clear()

    def _counted(self, name: str) -> None:
        group = self._group(name)
        group.in_transactions += 1
        if group.waiting:
            group.outside, group.waiting, group.last = group.outside + group.waiting, 0, group.newest

    def _outside(self) -> Iterator[CommitsOutside]:
        chosen = ((name, group) for name, group in self._groups.items() if group.outside)
        for number, (name, group) in enumerate(chosen):
            if number >= _MOST_LISTED:
                self._found.more["outside"] = self._found.more.get("outside", 0) + 1
                continue
            yield CommitsOutside(
                name, group.outside, group.in_transactions, sorted(group.topics), *group.first, *group.last
            )

    def _plain(self) -> Iterator[CommitTimes]:
        for name, group in self._groups.items():
            if not group.in_transactions and len(group.times) > 1:
                places = group.first[0], group.newest[0]
                read = [(topic, partition, *ends) for (_, topic, partition), ends in group.read.items()]
                yield CommitTimes(name, sorted(group.topics), group.plain, list(group.times), *places, read)

    def _group(self, name: str) -> _Group:
        group = self._groups.get(name)
        if group is None:
            group = _Group()
            if len(self._groups) < _MOST_KEYS:
                self._groups[name] = group
        return group

    def _remember(self, producer_id: int, group: str) -> None:
        producers = self._found.producers
        if producer_id in producers or len(producers) < _MOST_PRODUCERS:
            groups = producers.setdefault(producer_id, [])
            if group not in groups and len(groups) < _MOST_RANGES:
                groups.append(group)

    def _place(self, commit: CommitRecord) -> _Place | None:
        """Return where the group stands, from its beginning for a topic that was created again; None of a key too many."""
        place = self._places.get(commit.key)
        if place is None:
            before = self._outside_only.pop(commit.key, None)
            if before is None and self._is_full():
                return None
            place = self._places[commit.key] = _Place()
            if before is not None:
                place.position, place.record, place.topic_id = before.committed, before.offset, before.topic_id
        if are_two_topics({place.topic_id, commit.topic_id}):
            place = self._places[commit.key] = _Place()
        place.topic_id = commit.topic_id or place.topic_id
        return place

    def _is_full(self) -> bool:
        return len(self._places) + len(self._outside_only) >= _MOST_KEYS

    def _lose(self, missing: MissingRecords) -> None:
        """What was there is not known: neither where groups stood, nor what was committed."""
        self._found.missing += missing.last - missing.first + 1
        self._has_gap = True
        self._places.clear()
        self._outside_only.clear()
        self._open.clear()
        for group in self._waiting.values():
            group.waiting = 0
        self._waiting.clear()

    def _list(self, transaction: InputTransaction) -> None:
        if not self.listed:
            return
        if len(self._newest) >= self.listed:
            self._newest.popleft()
            self._found.unlisted += 1
        self._newest.append(transaction)

    def _note(self, name: str, entry: object) -> None:
        known: list[object] = getattr(self._found, name)
        if len(known) < _MOST_LISTED:
            known.append(entry)
        else:
            self._found.more[name] = self._found.more.get(name, 0) + 1


def _range(key: CommitKey, first: int | None, end: int) -> InputRange:
    return InputRange(*key, first, end)


def _known(before: int | None, end: int) -> int | None:
    return before if before is not None and before <= end else None
