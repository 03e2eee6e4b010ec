"""The transaction coordinator, as far as producers see it.

Source: TransactionCoordinator, TransactionMetadata. Everything a coordinator does later - markers, retries after
CONCURRENT_TRANSACTIONS - is done at once: an attempt's answer is the one its client ends up with.
"""

from collections.abc import Callable

from kaudit.broker.config import BrokerConfig
from kaudit.broker.coordinator.requests import (
    DONE,
    CoordinatorResult,
    EndOfTransaction,
    RequestContext,
    busy,
    cannot_write,
    check_owner,
    ended_before,
    rejected,
    retried_end,
)
from kaudit.broker.coordinator.transaction_metadata import (
    COMPLETE,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EXHAUSTED_EPOCH,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    TransactionMetadata,
)
from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_append_info import MAX_EPOCH, TRANSACTION_VERSION_2
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import TopicPartition
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kaudit.model.coordinator import TransactionStatus

_EMPTY_ID = "an empty transactional id"

ProducerIdAndEpoch = tuple[int, int]
NO_PRODUCER: ProducerIdAndEpoch = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

FIRST_END_TXN_OF_VERSION_2 = 5
_FENCED_INIT = 4
_FENCED_ADD = 2
_FENCED_END = 2
"""Versions of InitProducerId, AddPartitionsToTxn and EndTxn from which PRODUCER_FENCED is sent as such (KIP-588)."""


WriteMarkers = Callable[[EndOfTransaction], bool]
"""Writes the markers; returns whether every partition accepted its own."""
Allocate = Callable[[int | None], int]
"""Allocates a producer id: the recorded one, or the next of its own."""


class TransactionCoordinator:
    """All transactional ids of a cluster."""

    def __init__(self, profile: Profile, config: BrokerConfig, write_markers: WriteMarkers, allocate: Allocate) -> None:
        self._profile = profile
        self._config = config
        self._running_since: int | None = None
        self._write_markers = write_markers
        self._allocate = allocate
        self._transactions: dict[str, TransactionMetadata] = {}
        self._open: dict[TopicPartition, list[TransactionMetadata]] = {}
        self.timeouts: dict[TopicPartition, int] = {}
        """No open transaction with this partition times out before (ms); none where no transaction is open."""

    # -- requests ----------------------------------------------------------------------------------------------------
    def init_producer_id(
        self, request: RequestContext, transactional_id: str | None, timeout_ms: int, held: ProducerIdAndEpoch
    ) -> CoordinatorResult:
        """Grant a producer id and epoch; `held` is what the client says it has, NO_PRODUCER for nothing (KIP-360)."""
        expected = held if self._profile.coordinator_epoch_bump and held != NO_PRODUCER else None
        rejection = self._check_init(transactional_id, timeout_ms, expected)
        if rejection is not None:
            return rejection
        if transactional_id is None:
            producer_id = self._allocate(request.granted_producer_id)
            return CoordinatorResult(DONE, producer_id, 0, "a new producer id, epoch 0")
        transaction = self._find(request, transactional_id)
        if transaction is None:
            transaction = TransactionMetadata(transactional_id, self._allocate(request.granted_producer_id), timeout_ms)
            transaction.home = request.partition
            self._touch(transaction, request.now)
            self._transactions[transactional_id] = transaction
        rejection = self._prepare_init(request, transaction, expected)
        if rejection is not None:
            return rejection
        result = self._next_epoch(request, transaction, expected)
        if result.error is DONE:
            transaction.timeout_ms = timeout_ms
            self._touch(transaction, request.now)
        return result

    def _check_init(
        self, transactional_id: str | None, timeout_ms: int, expected: ProducerIdAndEpoch | None
    ) -> CoordinatorResult | None:
        """Check what InitProducerId asks for by itself."""
        if expected is not None and NO_PRODUCER_ID in expected:
            return rejected(KafkaError.INVALID_REQUEST, "a producer id without an epoch, or an epoch without an id")
        if transactional_id == "":
            return rejected(KafkaError.INVALID_REQUEST, _EMPTY_ID)
        if transactional_id is not None and not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            return rejected(
                KafkaError.INVALID_TRANSACTION_TIMEOUT,
                f"a timeout of {timeout_ms} ms, the broker allows 1 to {self._config.transaction_max_timeout_ms}",
            )
        return None

    def _prepare_init(
        self, request: RequestContext, transaction: TransactionMetadata, expected: ProducerIdAndEpoch | None
    ) -> CoordinatorResult | None:
        """Check InitProducerId against its transactional id, and abort a transaction that is open."""
        if transaction.transition_pending:
            return busy(transaction)
        if expected is not None and not transaction.may_be_of(*expected):
            return self._fenced(request, _FENCED_INIT, transaction, expected)
        if transaction.state is ONGOING:
            self._fence(transaction, request.now, request.granted_producer_id)
        return busy(transaction) if transaction.state in PREPARED else None

    def add_partitions(
        self,
        request: RequestContext,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        transaction_version: int = 0,
    ) -> CoordinatorResult:
        """Make the request's partition part of the producer's transaction; one begins if none is open.

        `transaction_version` is that of the client: 2 where a produce request or offset commit adds the partition.
        """
        if transactional_id == "":
            return rejected(KafkaError.INVALID_REQUEST, _EMPTY_ID)
        transaction = self._find(request, transactional_id)
        if transaction is not None and transaction.transition_pending and self._profile.checks_pending_transition_first:
            return busy(transaction)
        rejection = check_owner(transaction, producer_id, transactional_id)
        if rejection is not None:
            return rejection
        assert transaction is not None
        partition = request.partition
        if transaction.epoch != producer_epoch:
            rejection = self._fenced(request, _FENCED_ADD, transaction, (producer_id, producer_epoch))
        elif transaction.state in PREPARED:
            rejection = busy(transaction)
        elif transaction.state is not ONGOING or partition not in transaction.partitions:
            rejection = cannot_write(transaction, transaction_version, self._config.transaction_version)
        if rejection is not None:
            return rejection
        if transaction.state is not ONGOING:
            transaction.state = ONGOING
            transaction.started_at = request.now if request.knows_now else None
        if partition not in transaction.partitions:
            transaction.partitions[partition] = None
            self._open.setdefault(partition, []).append(transaction)
            due = transaction.due
            self.timeouts[partition] = min(self.timeouts.get(partition, due), due)
        return CoordinatorResult(DONE, producer_id, producer_epoch, "the partition is part of the transaction")

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partition: TopicPartition
    ) -> tuple[KafkaError, str]:
        """Answer a partition leader that asks whether `partition` is part of the transaction (KIP-890)."""
        if transactional_id == "":
            return KafkaError.INVALID_REQUEST, _EMPTY_ID
        transaction = self._transactions.get(transactional_id)
        rejection = check_owner(transaction, producer_id, transactional_id)
        if rejection is not None:
            return KafkaError.INVALID_PRODUCER_ID_MAPPING, "the transactional id does not belong to this producer id"
        assert transaction is not None
        if transaction.epoch != producer_epoch:
            return (
                KafkaError.INVALID_PRODUCER_EPOCH,
                f"the coordinator's epoch is {transaction.epoch}, the batch's {producer_epoch}",
            )
        if transaction.state in PREPARED:
            # Partition leaders make this retriable for their clients (KAFKA-15459).
            return KafkaError.NOT_ENOUGH_REPLICAS, f"the transaction is {transaction.state.label}"
        if partition not in transaction.partitions:
            return KafkaError.TRANSACTION_ABORTABLE, "the partition was not added to the transaction"
        return DONE, ""

    def end_transaction(
        self,
        request: RequestContext,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        *,
        commit: bool,
        transaction_version: int,
    ) -> CoordinatorResult:
        """Commit or abort; under transaction version 2 the answer carries the next epoch."""
        if transactional_id == "":
            return rejected(KafkaError.INVALID_REQUEST, _EMPTY_ID)
        transaction = self._find(request, transactional_id)
        if transaction is None:
            return rejected(KafkaError.INVALID_PRODUCER_ID_MAPPING, "an unknown transactional id")
        if transaction_version >= TRANSACTION_VERSION_2:
            return self._end_version2(request, transaction, producer, commit=commit)
        owner = check_owner(transaction, producer[0], transactional_id)
        return owner or self._end_version1(request, transaction, producer, commit=commit)

    def _end_version1(
        self, request: RequestContext, transaction: TransactionMetadata, producer: ProducerIdAndEpoch, *, commit: bool
    ) -> CoordinatorResult:
        producer_epoch = producer[1]
        exact = producer_epoch == transaction.epoch
        if producer_epoch < transaction.epoch or (not exact and self._profile.end_txn_needs_exact_epoch):
            return self._fenced(request, _FENCED_END, transaction, producer)
        if transaction.transition_pending:
            return busy(transaction)
        if transaction.state is not ONGOING:
            return ended_before(transaction, commit=commit)
        if not exact:
            transaction.state = PREPARE_COMMIT if commit else PREPARE_ABORT
            return self._fenced(request, _FENCED_END, transaction, producer)
        self._end(transaction, transaction.epoch, request.now, commit=commit, transaction_version=0)
        return CoordinatorResult(DONE, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, "the transaction ended")

    @property
    def has_transactions(self) -> bool:
        """Whether it knows any transactional id."""
        return bool(self._transactions)

    def transaction(self, transactional_id: str) -> TransactionMetadata | None:
        """Return the entry of a transactional id, read-only."""
        return self._transactions.get(transactional_id)

    # -- what happens by itself --------------------------------------------------------------------------------------
    def abort_timed_out(self, partition: TopicPartition, now: int, checked_at: int | None) -> None:
        """Abort the transactions with `partition` that were older than their timeout at `checked_at`.

        That is when the coordinator looked last, at `now` or before; None if it has not yet.
        """
        for transaction in tuple(self._open.get(partition, ())):
            if transaction.state is not ONGOING or transaction.transition_pending:
                continue
            if transaction.started_at is None:
                transaction.started_at = now
            if checked_at is None or transaction.due >= checked_at:
                continue
            if self._profile.timeout_bumps_epoch:
                self._fence(transaction, checked_at, None)
            else:
                self._end(transaction, transaction.epoch, checked_at, commit=False, transaction_version=0)
        open_still = [other for other in self._open.get(partition, ()) if other.state is ONGOING]
        if open_still:
            self.timeouts[partition] = min(other.due for other in open_still)
        else:
            self.timeouts.pop(partition, None)

    def reload(self, partition: TopicPartition, now: int) -> None:
        """Restart with the broker of `partition`: the previous epoch is not in the coordinator's log, decisions are.

        Markers of a transaction that was decided but not ended are sent again.
        """
        for transaction in self._transactions.values():
            if transaction.home == partition:
                self._load(transaction, now, partition)

    def move(self, now: int) -> bool:
        """Load all transactions at another broker, as after a restart; return whether a previous epoch was forgotten."""
        transactions = tuple(self._transactions.values())
        forgets = any(transaction.last_epoch != NO_PRODUCER_EPOCH for transaction in transactions)
        for transaction in transactions:
            self._load(transaction, now, None)
        return forgets

    def _load(self, transaction: TransactionMetadata, now: int, restarted: TopicPartition | None) -> None:
        transaction.last_epoch = NO_PRODUCER_EPOCH
        transaction.transition_pending = False
        if transaction.state in PREPARED:
            self._send_markers(transaction, now, restarted)

    # -- steps -------------------------------------------------------------------------------------------------------
    def _find(self, request: RequestContext, transactional_id: str) -> TransactionMetadata | None:
        """Return the transactional id's entry, unless it expired: idle, and the hourly cleanup came by since."""
        if self._running_since is None and request.knows_now:
            self._running_since = request.now
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            return None
        ended = transaction.state not in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT)
        if ended and transaction.updated_at is not None and self._running_since is not None:
            cleaned_at = request.now - (request.now - self._running_since) % self._config.transactional_id_check_ms
            if transaction.updated_at + self._config.transactional_id_expiration_ms <= cleaned_at:
                del self._transactions[transactional_id]
                return None
        transaction.home = request.partition
        return transaction

    def _touch(self, transaction: TransactionMetadata, now: int) -> None:
        """Take note of when a transactional id changed last, once the clock is known: else it would expire at once."""
        if self._running_since is not None:
            transaction.updated_at = now

    def _fenced(
        self, request: RequestContext, since: int, transaction: TransactionMetadata, incoming: ProducerIdAndEpoch
    ) -> CoordinatorResult:
        knows = request.api_version >= since
        error = self._profile.coordinator_fenced_error if knows else KafkaError.INVALID_PRODUCER_EPOCH
        return rejected(
            error,
            f"producer {incoming[0]} comes with epoch {incoming[1]}, "
            f"the coordinator remembers producer {transaction.producer_id} with epoch {transaction.epoch}",
        )

    def _fence(self, transaction: TransactionMetadata, at: int, granted_producer_id: int | None) -> None:
        """Abort an open transaction with a higher epoch, so that its producer is fenced.

        Under transaction version 2 that may use up the epochs, and a new producer id is allocated at once.
        """
        profile = self._profile
        old = transaction.epoch
        # the cluster's level counts here, not what the client's requests say
        version = min(self._config.transaction_version, TRANSACTION_VERSION_2)
        lowered = profile.transaction_version2 and version < TRANSACTION_VERSION_2
        steps = 2 if profile.fence_bumps_twice and not lowered else 1
        epoch = min(old + steps, MAX_EPOCH)
        self._end(transaction, epoch, at, commit=False, transaction_version=version)
        if profile.fence_keeps_last_epoch and not lowered:
            transaction.last_epoch = old
        elif steps > 1:
            transaction.last_epoch = old + 1
        else:
            transaction.last_epoch = NO_PRODUCER_EPOCH
        if version == TRANSACTION_VERSION_2 and old >= EXHAUSTED_EPOCH:
            self._change_producer_id(transaction, granted_producer_id)

    def _change_producer_id(self, transaction: TransactionMetadata, granted_producer_id: int | None) -> None:
        transaction.previous_producer_id = transaction.producer_id
        transaction.producer_id = self._allocate(granted_producer_id)
        transaction.epoch = 0

    def _end(
        self, transaction: TransactionMetadata, epoch: int, at: int, *, commit: bool, transaction_version: int
    ) -> None:
        transaction.epoch = epoch
        transaction.state = PREPARE_COMMIT if commit else PREPARE_ABORT
        transaction.transaction_version = transaction_version
        transaction.started_at = None
        self._touch(transaction, at)
        self._send_markers(transaction, at)

    def _send_markers(self, transaction: TransactionMetadata, at: int, restarted: TopicPartition | None = None) -> None:
        """Write the markers of a decided transaction; it is over when every partition took its own."""
        commit = PREPARED[transaction.state]
        transaction.transition_pending = True
        partitions = tuple(transaction.partitions)
        ended = EndOfTransaction(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.epoch,
            commit,
            transaction.transaction_version,
            at,
            partitions,
            restarted,
        )
        if self._write_markers(ended):
            self._complete(transaction)

    def complete(self, ended: EndOfTransaction) -> bool:
        """Complete a transaction whose last marker was written late; return False if that has happened already."""
        transaction = self._transactions[ended.transactional_id]
        is_it = (transaction.producer_id, transaction.epoch) == (ended.producer_id, ended.marker_epoch)
        if transaction.state not in PREPARED or not (is_it or transaction.previous_producer_id == ended.producer_id):
            return False
        self._complete(transaction)
        return True

    def _complete(self, transaction: TransactionMetadata) -> None:
        for partition in transaction.partitions:
            still_open = [other for other in self._open[partition] if other is not transaction]
            if still_open:
                self._open[partition] = still_open
            else:
                del self._open[partition]
        transaction.state = COMPLETE_COMMIT if PREPARED[transaction.state] else COMPLETE_ABORT
        transaction.partitions = {}
        transaction.transition_pending = False

    def _next_epoch(
        self, request: RequestContext, transaction: TransactionMetadata, expected: ProducerIdAndEpoch | None
    ) -> CoordinatorResult:
        current = transaction.epoch
        if current >= EXHAUSTED_EPOCH and (expected is None or expected[1] == current):
            self._change_producer_id(transaction, request.granted_producer_id)
            transaction.last_epoch = NO_PRODUCER_EPOCH if expected is None else current
            why = "the epochs of the producer id are used up: a new one, epoch 0"
        elif expected is None or current == NO_PRODUCER_EPOCH or expected[1] == current:
            transaction.last_epoch = NO_PRODUCER_EPOCH if expected is None else current
            transaction.epoch = current + 1
            why = "the next epoch"
        elif expected[1] == transaction.last_epoch:
            why = "a retry with the previous epoch gets the current one"
        else:
            return self._fenced(request, _FENCED_INIT, transaction, expected)
        transaction.state = TransactionStatus.EMPTY
        return CoordinatorResult(DONE, transaction.producer_id, transaction.epoch, why)

    def _end_version2(
        self, request: RequestContext, transaction: TransactionMetadata, incoming: ProducerIdAndEpoch, *, commit: bool
    ) -> CoordinatorResult:
        producer_id, epoch = incoming
        if transaction.transition_pending:
            return busy(transaction)
        completed = transaction.state in COMPLETE
        overflowed = (
            transaction.previous_producer_id == producer_id and epoch == EXHAUSTED_EPOCH and transaction.epoch == 0
        )
        if transaction.producer_id != producer_id and not overflowed:
            return rejected(
                KafkaError.INVALID_PRODUCER_ID_MAPPING,
                f"the transactional id belongs to producer id {transaction.producer_id}, not to {producer_id}",
            )
        if completed and (transaction.epoch == epoch + 1 or overflowed):
            return retried_end(transaction, commit=commit)
        if epoch != transaction.epoch:
            rejection: CoordinatorResult | None = self._fenced(request, _FENCED_END, transaction, incoming)
        elif commit and transaction.state is not ONGOING:
            rejection = rejected(KafkaError.INVALID_TXN_STATE, f"the transaction is {transaction.state.label}")
        else:
            rejection = cannot_write(transaction, TRANSACTION_VERSION_2, self._config.transaction_version)
        if rejection is not None:
            return rejection
        self._end(transaction, epoch + 1, request.now, commit=commit, transaction_version=TRANSACTION_VERSION_2)
        transaction.last_epoch = epoch
        why = "the transaction ended, the next one has the next epoch"
        if epoch >= EXHAUSTED_EPOCH:
            self._change_producer_id(transaction, request.granted_producer_id)
            why = "the transaction ended with the last epoch, the next one has a new producer id"
        return CoordinatorResult(DONE, transaction.producer_id, transaction.epoch, why)
