"""What a broker remembers of one producer id in one partition, and what comes in.

Source: ProducerStateEntry, BatchMetadata, VerificationStateEntry. One of each is made for every batch, so they are out
of the garbage collector's sight (gc=False): none of them can be part of a cycle.
"""

from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.producer_state.rules import is_expired
from kaudit.broker.releases.profile import Profile
from kaudit.model.batch_fields import NO_COORDINATOR_EPOCH, NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from kaudit.model.sequence import subtract as subtract_sequence


class BatchMetadata(Struct, frozen=True, gc=False):
    """A remembered batch: its end, and how long it was in offsets.

    `offset_delta` is what the release took for the length; before 2.1.1 that went wrong where sequences wrap.
    """

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    def first_sequence(self, profile: Profile) -> int:
        """Sequence of its first record, as the release computes it."""
        if profile.offset_delta_from_sequences:
            return self.last_sequence - self.offset_delta
        return (
            self.last_sequence if self.offset_delta == 0 else subtract_sequence(self.last_sequence, self.offset_delta)
        )

    @property
    def first_offset(self) -> int:
        """Offset of its first record."""
        return self.last_offset - self.offset_delta


class ProducerStateEntry(Struct, frozen=True, gc=False):
    """One producer's entry: epochs -1 while unknown, batches oldest first, offset -1 while no transaction is open."""

    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    batches: tuple[BatchMetadata, ...] = ()
    current_txn_first_offset: int = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        """Last remembered sequence, -1 when no batch is remembered."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Offset of the last remembered batch's end, -1 when none is remembered."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.current_txn_first_offset != NO_OFFSET

    def from_snapshot(self, profile: Profile) -> "ProducerStateEntry":
        """Return what is left after writing this to a producer snapshot and reading it again: the newest batch.

        Source: ProducerStateManager.writeSnapshot / readSnapshot.
        """
        newest = self.batches[-1:]
        if not newest and profile.marker_only_snapshot_loads_a_batch:
            newest = (BatchMetadata(NO_SEQUENCE, NO_OFFSET, 0, NO_TIMESTAMP),)
        return replace(self, batches=newest)

    def is_expired(self, now: int, limit: int) -> bool:
        """Return whether the entry is dropped at `now` (ms): idle for `limit` ms by record time, no transaction open."""
        return not self.in_transaction and bool(is_expired(self.last_timestamp, now, limit))


UNKNOWN = ProducerStateEntry()
"""The entry of a producer id without one."""


class DataBatch(Struct, frozen=True, gc=False):
    """A batch of records as it is checked and appended; offsets are those it gets in the log."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    is_transactional: bool


class MarkerBatch(Struct, frozen=True, gc=False):
    """An end of transaction marker at `offset`."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    offset: int
    timestamp: int
    commit: bool
    transaction_version: int = 0


class VerificationStateEntry(Struct, frozen=True, gc=False):
    """What a leader keeps of a transaction it asked the coordinator about (KIP-890): lowest sequence of its epoch."""

    lowest_sequence: int
    producer_epoch: int
    created_at: int
    transaction_version: int

    def lowered(self, sequence: int, epoch: int) -> "VerificationStateEntry":
        """Return the entry after another request of this producer. Source: VerificationStateEntry."""
        if epoch > self.producer_epoch:
            return replace(self, lowest_sequence=sequence, producer_epoch=epoch)
        if epoch == self.producer_epoch and sequence < self.lowest_sequence:
            return replace(self, lowest_sequence=sequence)
        return self
