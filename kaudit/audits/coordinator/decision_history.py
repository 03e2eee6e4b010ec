"""What __transaction_state decided over time: its transitions, and how each producer's transactions ended."""

from msgspec import Struct, field

from kaudit.broker.coordinator.state_transitions import why_illegal
from kaudit.model.coordinator import TransactionRecord, TransactionStatus, TransactionValue
from kaudit.model.transactions import IllegalTransition
from kaudit.source.layout import PartitionDirectory

MAX_DECISIONS = 500_000
"""Decisions kept in all; beyond, outcomes are not compared."""

_PREPARED = {TransactionStatus.PREPARE_COMMIT: 1, TransactionStatus.PREPARE_ABORT: 0}


class Decision(Struct, frozen=True):
    """One transaction's end as decided: `type` 1 commit, 0 abort; the (topic, partition) it wrote to; the record's offset."""

    transactional_id: str
    type: int
    partitions: frozenset[tuple[str, int]]
    offset: int


class _Known(Struct):
    offset: int
    value: TransactionValue


class DecisionHistory(Struct):
    """Follows the records of __transaction_state, one replica's partition after the other.

    `decisions` by producer id, of partitions whose records are all there; None of a producer with an unfinished one.
    """

    transitions: list[tuple[str, IllegalTransition]] = field(default_factory=list)
    """Illegal ones, each with the directory of the partition it lies in."""
    decisions: dict[int, list[Decision] | None] = field(default_factory=dict)
    complete: bool = True
    _directory: PartitionDirectory | None = None
    _latest: dict[str, _Known] = field(default_factory=dict)
    _own: dict[int, list[Decision]] = field(default_factory=dict)
    _next: int = 0
    _whole: bool = True
    _count: int = 0

    def enter(self, directory: PartitionDirectory) -> None:
        """The records that follow are of this replica's partition, which is read from its beginning."""
        self.leave()
        self._directory, self._next, self._whole = directory, 0, True
        self._latest, self._own = {}, {}

    def take(self, offset: int, record: TransactionRecord) -> None:
        """Take the next record. Where records are missing (compaction), states before and behind are not neighbours."""
        assert self._directory is not None
        if offset != self._next:
            self._whole = False
            self._latest.clear()
        self._next = offset + 1
        if record.value is None:
            self._latest.pop(record.transactional_id, None)
            return
        before = self._latest.get(record.transactional_id)
        self._latest[record.transactional_id] = _Known(offset, record.value)
        if before is not None:
            reason = why_illegal(before.value, record.value)
            if reason is not None:
                found = IllegalTransition(
                    record.transactional_id, before.offset, before.value, offset, record.value, reason
                )
                self.transitions.append((self._directory.directory, found))
        self._decide(record.transactional_id, offset, record.value)

    def _decide(self, name: str, offset: int, value: TransactionValue) -> None:
        decided = _PREPARED.get(value.status)
        if decided is None or not self._whole:
            return
        if self._count >= MAX_DECISIONS:
            self.complete = False
            return
        self._count += 1
        partitions = frozenset(
            (entry.topic, partition) for entry in value.partitions or () for partition in entry.partitions
        )
        self._own.setdefault(value.producer_id, []).append(Decision(name, decided, partitions, offset))

    def leave(self) -> None:
        """The partition has ended: its decisions count if none of its records was missing and all are carried out."""
        pending = {known.value.producer_id for known in self._latest.values() if known.value.status in _PREPARED}
        if self._whole and self.complete:
            for producer_id, decisions in self._own.items():
                # another replica of the partition says the same: one is enough
                self.decisions.setdefault(producer_id, None if producer_id in pending else decisions)
        self._directory = None
