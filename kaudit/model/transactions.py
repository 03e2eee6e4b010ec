"""Transactions as the partitions and the coordinator's log show them."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.model.coordinator import TransactionValue
from kaudit.model.producer_state import NO_SEGMENT


class OpenTransaction(Struct, frozen=True):
    """A transaction without an end marker at the end of the log; times in ms, `position` a byte in `segment`.

    `began_after_marker`: the producer's transaction before it ended in the same epoch, at `marker_offset`. `stable_offset` is the
    last stable offset while no older transaction is open. `snapshot` is the producer snapshot that says where the transaction began,
    if that lies before the first segment: first timestamp and first records are unknown then. With no batch left in the log,
    `segment` is -1, and `position` is the entry's byte in the snapshot.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    stable_offset: int
    first_timestamp: int
    last_timestamp: int
    records: int
    position: int
    segment: int
    coordinator_epoch: int
    began_after_marker: bool
    marker_offset: int
    marker_timestamp: int
    snapshot: str = ""
    appended_by: int = -1
    """A time by which its newest batch was there, as a broker wrote it: ms, -1 where no broker's time shows one."""

    @property
    def snapshot_offset(self) -> int:
        """The offset that the snapshot was taken at, by its name."""
        return int(self.snapshot.partition(".")[0])

    @property
    def in_log(self) -> bool:
        """Whether the log holds a batch of it."""
        return self.segment != NO_SEGMENT

    @property
    def begins_remotely(self) -> bool:
        """Whether its first records are in remote storage: only a snapshot shows them, and the log start is not above them."""
        return bool(self.snapshot) and self.stable_offset == self.first_offset


class EmptyMarker(Struct, frozen=True):
    """The first end marker whose record compaction removed, and how many there are."""

    offset: int
    producer_id: int
    producer_epoch: int
    segment: int
    position: int
    count: int


class MismatchedMarker(Struct, frozen=True, tag=True):
    """A marker of the other type than its transaction's decision. Types: 1 commit, 0 abort.

    `agreeing` are other partitions of the transaction whose marker is as decided, `decided_at` the decision's offset.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    offset: int
    position: int
    segment: int
    written: int
    decided: int
    decided_at: int
    agreeing: Sequence[str]


class IllegalTransition(Struct, frozen=True, tag=True):
    """Two states of one transactional id that cannot follow one another; `offset` of the second's record."""

    transactional_id: str
    before_offset: int
    before: TransactionValue
    offset: int
    after: TransactionValue
    reason: str
