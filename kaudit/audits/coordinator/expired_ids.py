"""Which transactional ids __transaction_state says have expired, and which producer ids they had before and after."""

from heapq import nsmallest

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.model.coordinator import ExpiredTransactionalId, TransactionRecord
from kaudit.model.limits import PRODUCERS

_Key = tuple[int, int, str]
"""Partition, offset and transactional id of a record: the same in all replicas."""


class ExpiredIds(Struct):
    """Follows the records of __transaction_state, one replica's partition after the other.

    A record without a value says that its id has expired (TransactionStateManager.enableTransactionalIdExpiration). Each is
    `kept` once, whatever the replicas; of more than PRODUCERS the newest are, and the others only counted: `counts` has
    those of each partition, by the replica with the most.
    """

    kept: dict[_Key, ExpiredTransactionalId] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    _partition: int = -1
    _count: int = 0
    _used: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Producer id, epoch and last update of the ids that have not expired, up to here."""
    _gone: dict[str, _Key] = field(default_factory=dict)
    """The ids that have expired and not come back, of those kept."""

    def enter(self, partition: int) -> None:
        """The records that follow are of a replica of this partition, from its beginning."""
        self.leave()
        self._partition = partition

    def take(self, offset: int, timestamp: int, record: TransactionRecord) -> None:
        """Take the next record; `timestamp` in ms."""
        name, value = record.transactional_id, record.value
        if value is not None:
            key = self._gone.pop(name, None)
            if key is not None:
                self._keep(replace(self.kept[key], next_producer_id=value.producer_id))
            self._used[name] = value.producer_id, value.producer_epoch, value.last_update_timestamp
        elif name not in self._gone:  # a coordinator whose write seemed to fail writes it again
            producer_id, epoch, updated = self._used.pop(name, (None, None, None))
            self._count += 1
            self._counted(self._partition, self._count)
            self._gone[name] = self._partition, offset, name
            entry = ExpiredTransactionalId(name, producer_id, epoch, updated, timestamp, self._partition, offset)
            self._keep(entry)

    def leave(self) -> None:
        """The replica's partition has ended."""
        self._count, self._used, self._gone = 0, {}, {}

    def add(self, others: "ExpiredIds") -> None:
        """Take what was found elsewhere, in other replicas for instance."""
        for partition, count in others.counts.items():
            self._counted(partition, count)
        for entry in others.kept.values():
            self._keep(entry)

    def newest(self) -> list[ExpiredTransactionalId]:
        """Return those that are listed, the last to expire first."""
        return nsmallest(PRODUCERS, self.kept.values(), key=_newest_first)

    @property
    def omitted(self) -> int:
        """How many there are beside those that are listed."""
        return max(sum(self.counts.values()), len(self.kept)) - min(len(self.kept), PRODUCERS)

    def _counted(self, partition: int, count: int) -> None:
        self.counts[partition] = max(self.counts.get(partition, count), count)

    def _keep(self, entry: ExpiredTransactionalId) -> None:
        known = self.kept.get(_key_of(entry))
        self.kept[_key_of(entry)] = entry if known is None else _together(known, entry)
        if len(self.kept) >= 2 * PRODUCERS:  # the oldest are dropped many at a time: to find them takes a look at all
            self.kept = {_key_of(one): one for one in self.newest()}
            self._gone = {name: key for name, key in self._gone.items() if key in self.kept}


def _key_of(entry: ExpiredTransactionalId) -> _Key:
    return entry.partition, entry.offset, entry.transactional_id


def _newest_first(entry: ExpiredTransactionalId) -> tuple[int, int, int]:
    return -entry.expired_timestamp, entry.partition, entry.offset


def _together(known: ExpiredTransactionalId, entry: ExpiredTransactionalId) -> ExpiredTransactionalId:
    """Put together what two replicas say: in either, records before and behind may have been compacted away."""
    following = known.next_producer_id if known.next_producer_id is not None else entry.next_producer_id
    return replace(entry if known.producer_id is None else known, next_producer_id=following)
