"""The producer states of one replica of one partition: what ProducerStateManager holds in memory.

Also open and aborted transactions, which follow from the same batches.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from msgspec import Struct

from kaudit.broker.producer_state.append_result import CompletedTransaction, Origin
from kaudit.broker.producer_state.producer_append_info import add_batch, append_end_txn_marker, validate_end_txn_marker
from kaudit.broker.producer_state.producer_state_entry import UNKNOWN, DataBatch, MarkerBatch, ProducerStateEntry
from kaudit.broker.releases.profile import Profile
from kaudit.model.batch_fields import NO_OFFSET


class AbortedTransaction(Struct, frozen=True, gc=False):
    """A row of the transaction index: first data offset, the abort marker's, and the last stable offset after it."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class ProducerStateManager:
    """States by producer id, open transactions by first offset, aborted ones in order of their markers."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.states: dict[int, ProducerStateEntry] = {}
        self.ongoing: dict[int, int] = {}
        """First offset to producer id."""
        self.aborted: list[AbortedTransaction] = []

    def get(self, producer_id: int) -> ProducerStateEntry:
        """Return a producer's state, UNKNOWN when there is none."""
        return self.states.get(producer_id, UNKNOWN)

    def put(self, producer_id: int, state: ProducerStateEntry) -> None:
        """Replace a producer's state after an appended batch."""
        self.states[producer_id] = state
        if state.current_txn_first_offset != NO_OFFSET:
            self.ongoing[state.current_txn_first_offset] = producer_id

    def complete(self, completed: CompletedTransaction | None) -> None:
        """Take note of a transaction's end.

        Since KAFKA-7866 the index is written before the transaction is completed, so only those of other producers count
        for the last stable offset: as a producer has one open transaction at most, that is the same offset.
        """
        if completed is None:
            return
        self.ongoing.pop(completed.first_offset, None)
        if completed.aborted:
            stable = min(self.ongoing, default=completed.last_offset + 1)
            self.aborted.append(
                AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable)
            )

    @property
    def first_undecided(self) -> int | None:
        """First offset of the oldest open transaction."""
        return min(self.ongoing, default=None)

    def replicate(self, batches: Iterable[DataBatch | MarkerBatch]) -> None:
        """Take over what a log holds, as a follower or a loading broker does: nothing is refused.

        A marker that would stop such a broker (KA803) is adopted all the same: what it would hold if it went on.
        """
        profile = self._profile
        for batch in batches:
            state = self.states.get(batch.producer_id, UNKNOWN)
            if isinstance(batch, DataBatch):
                self.put(batch.producer_id, add_batch(state, batch, profile))
                continue
            after, _, completed = validate_end_txn_marker(state, batch, profile, Origin.REPLICATION)
            if after is state:
                after = append_end_txn_marker(state, batch, profile)
            self.states[batch.producer_id] = after
            self.complete(completed)

    def expire(self, now: int, limit: int) -> None:
        """Drop the entries that are idle at `now`, by their records' time (both in ms)."""
        for producer_id in list(self.states):
            self.expire_producer(producer_id, now, limit)

    def expire_producer(self, producer_id: int, now: int, limit: int) -> None:
        """Drop one entry if it is idle at `now`, by its records' time (both in ms)."""
        state = self.states.get(producer_id)
        if state is not None and state.is_expired(now, limit):
            del self.states[producer_id]

    def forget_producer(self, producer_id: int) -> None:
        """Drop one entry."""
        self.states.pop(producer_id, None)

    def advance_log_start(self, log_start: int) -> None:
        """Forget what a release forgets when the log start moves up (ProducerStateManager.truncateHead)."""
        if self._profile.forgets_on_log_start_advance:
            for producer_id in [pid for pid, state in self.states.items() if state.last_offset < log_start]:
                state = self.states.pop(producer_id)
                self.ongoing.pop(state.current_txn_first_offset, None)

    def reloaded(self, log_start: int, now: int, limit: int) -> "ProducerStateManager":
        """Return what a snapshot of this brings back: the newest batch of every producer that is not expired.

        On releases that forget below the log start, producers whose data lies there are left out.
        """
        loaded = ProducerStateManager(self._profile)
        for producer_id, state in self.states.items():
            if state.is_expired(now, limit):
                continue
            if self._profile.forgets_on_log_start_advance and state.last_offset < log_start:
                continue
            loaded.put(producer_id, state.from_snapshot(self._profile))
        return loaded

    def aborted_between(self, log_start: int, end: int) -> Iterator[AbortedTransaction]:
        """Yield the aborted transactions that end at or after `log_start` and begin before `end`."""
        first = bisect_left(self.aborted, log_start, key=lambda transaction: transaction.last_offset)
        for transaction in self.aborted[first:]:
            if transaction.first_offset < end:
                yield transaction
