"""Requests to the coordinator and the state machine of a producer. Source: TransactionManager, TxnRequestHandler."""

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from kaudit.broker.errors import KafkaError
from kaudit.broker.response import TopicPartition
from kaudit.simulate.producer.client_switches import RESET_PRODUCER_ID
from kaudit.simulate.producer.network_client import NetworkClient
from kaudit.simulate.producer.recovery import RETRIABLE
from kaudit.simulate.producer.transaction_manager import NO_PRODUCER, TransactionManager
from kaudit.simulate.requests import (
    AddPartitionsToTxnRequest,
    CoordinatorResponse,
    EndTxnRequest,
    InitProducerIdRequest,
    KafkaRequest,
    KafkaResponse,
)

_CONCURRENT_BACKOFF_MS = 20
"""ADD_PARTITIONS_RETRY_BACKOFF_MS: how long to wait while the transaction before is being ended."""
_FIRST_WITH_HELD_ID = 3
"""InitProducerId version that carries the producer id and epoch the client has (KIP-360)."""
_ALWAYS_FATAL = frozenset({KafkaError.PRODUCER_FENCED, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED})
_FATAL_WHEN_ADDING = frozenset({KafkaError.INVALID_TXN_STATE, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED})
_FENCED = frozenset({KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})


class TransactionManagerState(Enum):
    """States of TransactionManager; idempotent producers know the first three."""

    UNINITIALIZED = "UNINITIALIZED"
    INITIALIZING = "INITIALIZING"
    READY = "READY"
    IN_TRANSACTION = "IN_TRANSACTION"
    COMMITTING = "COMMITTING_TRANSACTION"
    ABORTING = "ABORTING_TRANSACTION"
    ABORTABLE_ERROR = "ABORTABLE_ERROR"
    FATAL_ERROR = "FATAL_ERROR"


_VALID_SOURCES = {
    TransactionManagerState.INITIALIZING: {
        TransactionManagerState.UNINITIALIZED,
        TransactionManagerState.COMMITTING,
        TransactionManagerState.ABORTING,
    },
    TransactionManagerState.READY: {
        TransactionManagerState.INITIALIZING,
        TransactionManagerState.COMMITTING,
        TransactionManagerState.ABORTING,
    },
    TransactionManagerState.IN_TRANSACTION: {TransactionManagerState.READY},
    TransactionManagerState.COMMITTING: {TransactionManagerState.IN_TRANSACTION},
    TransactionManagerState.ABORTING: {TransactionManagerState.IN_TRANSACTION, TransactionManagerState.ABORTABLE_ERROR},
    TransactionManagerState.ABORTABLE_ERROR: {
        TransactionManagerState.IN_TRANSACTION,
        TransactionManagerState.COMMITTING,
        TransactionManagerState.ABORTABLE_ERROR,
        TransactionManagerState.INITIALIZING,
    },
}
"""Source: TransactionManager.State.isTransitionValid; FATAL_ERROR can be reached from everywhere."""


class Step(NamedTuple):
    """Whether batches have to wait for a transactional request, and when to look again (ms from now), None for not."""

    holds_batches: bool
    again_in: int | None = None


_NOTHING_TO_DO = Step(holds_batches=False)
_WAITS = Step(holds_batches=True)


class _PendingEndTxn(Struct):
    """An EndTxn that waits until all batches are written."""

    commit: bool


_Pending = InitProducerIdRequest | AddPartitionsToTxnRequest | _PendingEndTxn
_END = 2


def _priority(pending: _Pending) -> int:
    """Return a request's place among those that wait. Source: TransactionManager.Priority."""
    if isinstance(pending, InitProducerIdRequest):
        return 0 if pending.producer == NO_PRODUCER else _END + 1  # the epoch is raised when the transaction has ended
    return 1 if isinstance(pending, AddPartitionsToTxnRequest) else _END


_CAN_FAIL = _VALID_SOURCES[TransactionManagerState.ABORTABLE_ERROR]


class TxnRequestHandler:
    """One producer's requests to the coordinator, at most one in flight."""

    def __init__(
        self,
        client: NetworkClient,
        manager: TransactionManager,
        recorded_under: TopicPartition,
        wake: Callable[[], None],
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._config = client.config
        self._versions = client.versions
        self._manager = manager
        self._recorded_under = recorded_under
        self._can_bump = self._versions.init_producer_id >= _FIRST_WITH_HELD_ID
        self._wake = wake
        self._pending: deque[_Pending] = deque()
        self._in_flight = False
        self._not_before = 0
        self._started = False
        self._bump_required = False
        self._new_partitions: dict[TopicPartition, None] = {}
        self._pending_partitions: dict[TopicPartition, None] = {}
        """Partitions that a request to add them is under way for."""
        self.state = TransactionManagerState.UNINITIALIZED
        self.on_change: Callable[[], None] = lambda: None
        self.last_error: KafkaError | None = None

    # -- calls of the application --------------------------------------------------------------------------------------
    def initialize(self) -> None:
        """Ask for a producer id. Source: initializeTransactions, bumpIdempotentEpochAndResetIdIfNeeded."""
        self._transition_to(TransactionManagerState.INITIALIZING)
        self._enqueue(self._init_request(NO_PRODUCER))
        self._wake()

    def begin(self) -> None:
        """Begin a transaction."""
        self._transition_to(TransactionManagerState.IN_TRANSACTION)

    def add(self, partition: TopicPartition) -> None:
        """Add a partition to the transaction. Source: maybeAddPartition."""
        manager = self._manager
        if self._versions.transaction_version2:
            self._started = True
            manager.partitions_in_transaction[partition] = None  # producing adds it
        elif partition not in manager.partitions_in_transaction and partition not in self._pending_partitions:
            self._new_partitions[partition] = None

    def end(self, *, commit: bool) -> None:
        """Commit or abort, once everything is written."""
        self._transition_to(TransactionManagerState.COMMITTING if commit else TransactionManagerState.ABORTING)
        if not commit:
            self._new_partitions.clear()
        self._enqueue(_PendingEndTxn(commit))
        self._wake()

    # -- calls of the sender -------------------------------------------------------------------------------------------
    @property
    def is_completing(self) -> bool:
        """Whether batches are to be sent without linger."""
        return self.state in (TransactionManagerState.COMMITTING, TransactionManagerState.ABORTING)

    @property
    def is_aborting(self) -> bool:
        """Whether batches that were never sent are to be dropped."""
        return self.state in (TransactionManagerState.ABORTING, TransactionManagerState.ABORTABLE_ERROR)

    def send_next(self, *, has_incomplete: bool) -> Step:
        """Send the next request if its time has come. Source: maybeSendAndPollTransactionalRequest, nextRequest.

        While one is in flight or waits to be sent again nothing else is sent.
        """
        manager = self._manager
        if self._in_flight:
            return _WAITS
        if not manager.transactional and not manager.has_producer_id and not self._pending:
            if self.state is not TransactionManagerState.INITIALIZING:
                self.state = TransactionManagerState.INITIALIZING
            self._enqueue(self._init_request(NO_PRODUCER))
        if self._new_partitions and self.state is not TransactionManagerState.ABORTABLE_ERROR:
            self._pending_partitions.update(self._new_partitions)
            self._new_partitions.clear()
            self._enqueue(self._add_request(tuple(self._pending_partitions)))
        while self._pending:
            following = self._pending[0]
            if isinstance(following, _PendingEndTxn):
                if has_incomplete:
                    return _NOTHING_TO_DO
                if not self._started:
                    self._pending.popleft()
                    self._complete_transaction()
                    continue
            if self._clock.now < self._not_before:
                return Step(holds_batches=True, again_in=self._not_before - self._clock.now)
            request = self._end_request(following) if isinstance(following, _PendingEndTxn) else following
            return self._send(request, following)
        return _NOTHING_TO_DO

    def batch_failed(self, error: KafkaError) -> None:
        """Fail the producer or its transaction because of a batch that failed. Source: maybeTransitionToErrorState."""
        client = self._config.client
        if (
            error in _ALWAYS_FATAL
            or (error is KafkaError.INVALID_PRODUCER_EPOCH and client.fenced_produce_is_fatal)
            or (error is KafkaError.INVALID_PRODUCER_ID_MAPPING and client.unknown_mapping_on_produce_is_fatal)
        ):
            self.fail(KafkaError.PRODUCER_FENCED if error in _FENCED else error)
        elif self._manager.transactional:
            self._abort_because(error, bump=not self.is_completing)

    def leave_unresolved(self) -> None:
        """Give up a transaction because nobody knows whether batches of it were written. Source: maybeResolveSequences."""
        if self._manager.transactional:
            self._abort_if_possible(KafkaError.REQUEST_TIMED_OUT)

    # -- errors ------------------------------------------------------------------------------------------------------
    def _abort_if_possible(self, error: KafkaError) -> None:
        """Let the application abort where that gets it a new epoch, else fail. Source: abortableErrorIfPossible."""
        if self._can_bump or self._versions.transaction_version2:
            self._abort_because(error, bump=True)
        else:
            self.fail(error)

    def _abort_because(self, error: KafkaError, *, bump: bool) -> None:
        """Let the application abort, then raise the epoch if `bump`. Source: transitionToAbortableError."""
        if self.state is TransactionManagerState.FATAL_ERROR:
            return
        if bump and self._can_bump and not self._versions.transaction_version2:
            self._bump_required = True
        if self.state in _CAN_FAIL:
            self.last_error = error
            # what ends the transaction or begins a new epoch waits for the application's abort
            self._pending = deque(item for item in self._pending if _priority(item) < _END)
            if self.state is not TransactionManagerState.ABORTABLE_ERROR:
                self._transition_to(TransactionManagerState.ABORTABLE_ERROR)

    def _enqueue(self, request: _Pending) -> None:
        self._pending.append(request)
        self._pending = deque(sorted(self._pending, key=_priority))

    # -- requests ----------------------------------------------------------------------------------------------------
    def _init_request(self, producer: tuple[int, int]) -> InitProducerIdRequest:
        config = self._config
        return InitProducerIdRequest(
            config.transactional_id,
            config.transaction_timeout_ms,
            producer,
            self._versions.init_producer_id,
            self._recorded_under,
        )

    def _add_request(self, partitions: tuple[TopicPartition, ...]) -> AddPartitionsToTxnRequest:
        assert self._config.transactional_id is not None
        return AddPartitionsToTxnRequest(
            self._config.transactional_id, self._manager.producer, partitions, self._versions.add_partitions
        )

    def _end_request(self, end: _PendingEndTxn) -> EndTxnRequest:
        assert self._config.transactional_id is not None
        return EndTxnRequest(
            self._config.transactional_id,
            self._manager.producer,
            end.commit,
            self._versions.end_txn,
            self._recorded_under,
        )

    def _send(self, request: KafkaRequest, pending: _Pending) -> Step:
        transactional = self._config.transactional_id is not None
        node = self._client.metadata.coordinator if transactional else self._client.least_loaded_broker()
        connection = None if node is None else self._client.connect(node)
        if connection is None or not connection.can_send:
            self._client.metadata.request_update()
            return Step(holds_batches=True, again_in=self._config.retry_backoff_ms)
        self._pending.popleft()
        self._in_flight = True
        connection.send(
            request,
            0,
            self._config.request_timeout_ms,
            lambda response: self._client.process.run(partial(self._received, pending, request, response)),
            lambda: self._client.process.run(partial(self._lost, pending)),
        )
        return _WAITS

    def _lost(self, pending: _Pending) -> None:
        self._in_flight = False
        self._enqueue(pending)
        self._not_before = self._clock.now + self._config.retry_backoff_ms
        self._client.metadata.request_update()
        self._wake()

    def _received(self, pending: _Pending, request: KafkaRequest, response: KafkaResponse | None) -> None:
        assert isinstance(response, CoordinatorResponse)
        self._in_flight = False
        error = response.error
        if error is KafkaError.NONE:
            self._succeeded(request, response)
        elif error in RETRIABLE:
            self._retry(pending, error)
        elif error in _FENCED:
            self.fail(KafkaError.PRODUCER_FENCED)
        else:
            self._refused(request, error)
        self._wake()

    def _retry(self, pending: _Pending, error: KafkaError) -> None:
        """Send a request again later. Source: AddPartitionsToTxnHandler.maybeOverrideRetryBackoffMs."""
        wait = self._config.retry_backoff_ms
        if error is not KafkaError.CONCURRENT_TRANSACTIONS:
            self._client.metadata.request_update()
        elif isinstance(pending, AddPartitionsToTxnRequest) and not self._manager.partitions_in_transaction:
            wait = min(wait, _CONCURRENT_BACKOFF_MS)
        self._not_before = self._clock.now + wait
        self._enqueue(pending)

    def _refused(self, request: KafkaRequest, error: KafkaError) -> None:
        """Abort the transaction, or fail. Source: handleResponse of the handlers of each request."""
        client = self._config.client
        adding = False
        aborting = isinstance(request, EndTxnRequest) and not request.commit
        if isinstance(request, AddPartitionsToTxnRequest):
            adding = True
            for partition in request.partitions:
                self._pending_partitions.pop(partition, None)
        if isinstance(request, InitProducerIdRequest):
            abortable = error is KafkaError.TRANSACTION_ABORTABLE and client.knows_transaction_abortable
            if_possible = False
        else:
            raises_epoch = client.recovery != RESET_PRODUCER_ID
            unknown_id = error is KafkaError.UNKNOWN_PRODUCER_ID and raises_epoch
            unknown_mapping = error is KafkaError.INVALID_PRODUCER_ID_MAPPING
            if_possible = unknown_id or (unknown_mapping and not client.unknown_mapping_is_fatal)
            known = error is KafkaError.TRANSACTION_ABORTABLE and client.knows_transaction_abortable
            abortable = (known and not aborting) or (adding and not unknown_mapping and error not in _FATAL_WHEN_ADDING)
        if if_possible:
            self._abort_if_possible(error)
        elif abortable:
            self._abort_because(error, bump=False)
        else:
            self.fail(error)

    def _succeeded(self, request: KafkaRequest, response: CoordinatorResponse) -> None:
        manager = self._manager
        if isinstance(request, InitProducerIdRequest):
            if request.producer == NO_PRODUCER:
                manager.producer = response.producer
            else:
                manager.adopt(response.producer)
            self._bump_required = False
            self._transition_to(TransactionManagerState.READY)
        elif isinstance(request, AddPartitionsToTxnRequest):
            self._started = True
            for partition in request.partitions:
                self._pending_partitions.pop(partition, None)
                manager.partitions_in_transaction[partition] = None
        else:
            if response.producer != NO_PRODUCER and self._versions.transaction_version2:
                manager.adopt(response.producer)
            self._complete_transaction()

    def _complete_transaction(self) -> None:
        """Get ready for the next transaction, in a new epoch if a batch failed. Source: completeTransaction.

        Where the transaction was committed although the application has begun to abort it, there is nothing to complete: the
        client's I/O thread throws IllegalStateException, and goes on where it was, or fails.
        """
        manager = self._manager
        following = TransactionManagerState.INITIALIZING if self._bump_required else TransactionManagerState.READY
        if self.state not in _VALID_SOURCES[following]:
            self._client.note(f"IllegalStateException in the I/O thread: from {self.state.value} to {following.value}")
            if self._config.client.illegal_state_is_fatal:
                self.fail(KafkaError.UNKNOWN_SERVER_ERROR)
            return
        manager.partitions_in_transaction.clear()
        self._new_partitions.clear()
        self._pending_partitions.clear()
        self._started = False
        self._transition_to(following)
        if self._bump_required:
            self._enqueue(self._init_request(manager.producer))

    def fail(self, error: KafkaError) -> None:
        """Stop for good. Source: transitionToFatalError."""
        if self.state is TransactionManagerState.FATAL_ERROR:
            return
        self.last_error = error
        self.state = TransactionManagerState.FATAL_ERROR
        self._manager.failed = True
        self._pending.clear()
        self._client.note(f"{error.name} is fatal: this producer stops")
        self.on_change()
        self._wake()

    def _transition_to(self, state: TransactionManagerState) -> None:
        """Change state; raises RuntimeError where the client would throw IllegalStateException."""
        if self._manager.transactional and self.state not in _VALID_SOURCES[state]:
            raise RuntimeError(f"{self._config.transactional_id}: from {self.state.value} to {state.value}")
        self.state = state
        self.on_change()
