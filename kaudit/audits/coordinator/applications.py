"""What records of __transaction_state show of producer ids that were asked for, and of the applications they belong to."""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.coordinator import (
    ApplicationState,
    CommitDecision,
    MemberState,
    TransactionRecord,
    TransactionStatus,
)
from kaudit.model.internal_topics import GROUPS
from kaudit.model.transactional_ids import CONNECT_LEADER, parse_name

_COMMITTED = (TransactionStatus.PREPARE_COMMIT, TransactionStatus.COMPLETE_COMMIT)
_MOST_COMMITS = 8
"""Commits kept of a producer id: the last ones."""
_MOST_MEMBERS = 100_000
"""Members kept in all (some 25 MB): of those that are first seen later nothing is known."""


class AskedProducers(Struct):
    """Names and decisions of the producer ids that were asked for; when the log of each partition begins, as in CoordinatorView."""

    wanted: frozenset[int]
    names: dict[int, str] = field(default_factory=dict)
    commits: dict[int, list[CommitDecision]] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)

    def take(self, partition: int, offset: int, timestamp: int, record: TransactionRecord) -> None:
        """Take the next record of a partition, at `timestamp` (ms)."""
        if offset == 0:
            self.begun[partition] = min(timestamp, self.begun.get(partition, timestamp))
        value = record.value
        if value is None or value.producer_id not in self.wanted:
            return
        self.names[value.producer_id] = record.transactional_id
        if value.status is TransactionStatus.PREPARE_COMMIT:
            commits = self.commits.setdefault(value.producer_id, [])
            decision = CommitDecision(value.producer_epoch, value.partitions or (), value.last_update_timestamp, offset)
            if decision not in commits:  # another replica shows it too
                commits.append(decision)
                del commits[:-_MOST_COMMITS]


class Applications(Struct):
    """Follows the records of __transaction_state, one replica's partition after the other."""

    connect_groups: list[str] = field(default_factory=list)
    """The groups of Connect whose leaders write in transactions."""
    _found: dict[str, ApplicationState] = field(default_factory=dict)
    _members: int = 0
    _counted: set[int] = field(default_factory=set)
    _counts: bool = True

    def enter(self, partition: int) -> None:
        """The records that follow are of a replica of this partition; another one shows the same commits once more."""
        self._counts = partition not in self._counted
        self._counted.add(partition)

    def take(self, record: TransactionRecord) -> None:
        """Take the next record."""
        name, value = parse_name(record.transactional_id), record.value
        if name is None or value is None:
            return
        application = self._found.get(name.application)
        if application is None:
            application = self._found[name.application] = ApplicationState()
        known = application.members.get(name.ids)
        if known is None:
            if self._members >= _MOST_MEMBERS:
                return
            self._members += 1
            known = MemberState()
            if name.format.program == CONNECT_LEADER:
                self.connect_groups.append(name.application)
        if value.partitions and any(written.topic == GROUPS for written in value.partitions):
            application.sends_offsets = True
        committed = value.last_update_timestamp if value.status in _COMMITTED else NO_TIMESTAMP
        application.members[name.ids] = MemberState(
            max(known.committed_ms, committed),
            max(known.started_ms, value.start_timestamp),
            known.commits + (self._counts and value.status is TransactionStatus.PREPARE_COMMIT),
            known.highest if name.number is None else max(known.highest, name.number),
        )

    def of(self, transactional_ids: Iterable[str]) -> Mapping[str, ApplicationState]:
        """Return the applications of these ids."""
        names = filter(None, map(parse_name, transactional_ids))
        return {name.application: self._found[name.application] for name in names if name.application in self._found}
