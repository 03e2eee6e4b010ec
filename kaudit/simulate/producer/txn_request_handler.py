"""Requests to the coordinator and the state machine of a producer. Source: TransactionManager, TxnRequestHandler."""

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial

from msgspec import Struct

from kaudit.broker.errors import KafkaError
from kaudit.broker.response import TopicPartition
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


class _PendingEndTxn(Struct):
    """An EndTxn that waits until all batches are written."""

    commit: bool


_Pending = InitProducerIdRequest | AddPartitionsToTxnRequest | _PendingEndTxn


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
        self.state = TransactionManagerState.UNINITIALIZED
        self.on_change: Callable[[], None] = lambda: None
        self.last_error: KafkaError | None = None

    # -- calls of the application --------------------------------------------------------------------------------------
    def initialize(self) -> None:
        """Ask for a producer id. Source: initializeTransactions, bumpIdempotentEpochAndResetIdIfNeeded."""
        self._transition_to(TransactionManagerState.INITIALIZING)
        self._pending.append(self._init_request(NO_PRODUCER))
        self._wake()

    def begin(self) -> None:
        """Begin a transaction."""
        self._transition_to(TransactionManagerState.IN_TRANSACTION)

    def add(self, partition: TopicPartition) -> None:
        """Add a partition to the transaction. Source: maybeAddPartition."""
        manager = self._manager
        if partition in manager.partitions_in_transaction or partition in self._new_partitions:
            return
        self._started = True
        if self._versions.transaction_version2:
            manager.partitions_in_transaction[partition] = None  # producing adds it
        else:
            self._new_partitions[partition] = None

    def end(self, *, commit: bool) -> None:
        """Commit or abort, once everything is written."""
        self._transition_to(TransactionManagerState.COMMITTING if commit else TransactionManagerState.ABORTING)
        if not commit:
            self._new_partitions.clear()
        self._pending.append(_PendingEndTxn(commit))
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

    def send_next(self, *, has_incomplete: bool) -> int | None:
        """Send the next request if its time has come. Returns the ms to wait if it has to be tried again later.

        Source: maybeSendAndPollTransactionalRequest, nextRequest.
        """
        manager = self._manager
        if self.state is TransactionManagerState.FATAL_ERROR or self._in_flight:
            return None
        if not manager.transactional and not manager.has_producer_id and not self._pending:
            if self.state is not TransactionManagerState.INITIALIZING:
                self.state = TransactionManagerState.INITIALIZING
            self._pending.append(self._init_request(NO_PRODUCER))
        if self._new_partitions and self.state is not TransactionManagerState.ABORTABLE_ERROR:
            partitions = tuple(self._new_partitions)
            self._new_partitions.clear()
            self._pending.appendleft(self._add_request(partitions))
        if not self._pending:
            return None
        if self._clock.now < self._not_before:
            return self._not_before - self._clock.now
        following = self._pending[0]
        if isinstance(following, _PendingEndTxn):
            return self._send_end(following, has_incomplete=has_incomplete)
        return self._send(following, following)

    def batch_failed(self, error: KafkaError) -> None:
        """Fail the transaction because of a batch that failed. Source: maybeTransitionToErrorState."""
        if not self._manager.transactional or self.state is TransactionManagerState.FATAL_ERROR:
            return
        fatal = error in (
            KafkaError.PRODUCER_FENCED,
            KafkaError.INVALID_PRODUCER_ID_MAPPING,
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ) or (error is KafkaError.INVALID_PRODUCER_EPOCH and self._config.client.fenced_produce_is_fatal)
        if fatal:
            self._fail(error)
        elif self.state in (TransactionManagerState.IN_TRANSACTION, TransactionManagerState.COMMITTING):
            self.last_error = error
            self._bump_required = self._can_bump
            self._pending = deque(item for item in self._pending if not isinstance(item, _PendingEndTxn))
            self._transition_to(TransactionManagerState.ABORTABLE_ERROR)

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

    def _send_end(self, end: _PendingEndTxn, *, has_incomplete: bool) -> int | None:
        if has_incomplete:
            return None
        if not self._started:
            self._pending.popleft()
            self._complete_transaction()
            return None
        assert self._config.transactional_id is not None
        request = EndTxnRequest(
            self._config.transactional_id,
            self._manager.producer,
            end.commit,
            self._versions.end_txn,
            self._recorded_under,
        )
        return self._send(request, end)

    def _send(self, request: KafkaRequest, pending: _Pending) -> int | None:
        transactional = self._config.transactional_id is not None
        node = self._client.metadata.coordinator if transactional else self._client.least_loaded_broker()
        connection = None if node is None else self._client.connect(node)
        if connection is None or not connection.can_send:
            self._client.metadata.request_update()
            return self._config.retry_backoff_ms
        self._pending.remove(pending)
        self._in_flight = True
        connection.send(
            request,
            0,
            self._config.request_timeout_ms,
            lambda response: self._client.process.run(partial(self._received, pending, request, response)),
            lambda: self._client.process.run(partial(self._lost, pending)),
        )
        return None

    def _lost(self, pending: _Pending) -> None:
        self._in_flight = False
        self._pending.appendleft(pending)
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
            concurrent = error is KafkaError.CONCURRENT_TRANSACTIONS
            wait = _CONCURRENT_BACKOFF_MS if concurrent else self._config.retry_backoff_ms
            self._not_before = self._clock.now + wait
            self._pending.appendleft(pending)
            if not concurrent:
                self._client.metadata.request_update()
        elif error is KafkaError.INVALID_PRODUCER_ID_MAPPING and self._can_bump:
            self.last_error = error
            self._transition_to(TransactionManagerState.ABORTABLE_ERROR)
        else:
            self._fail(KafkaError.PRODUCER_FENCED if error in _FENCED else error)
        self._wake()

    def _succeeded(self, request: KafkaRequest, response: CoordinatorResponse) -> None:
        manager = self._manager
        if isinstance(request, InitProducerIdRequest):
            manager.producer = response.producer
            if manager.transactional:
                for sequences in manager.partitions.values():
                    sequences.start_again(manager.producer)
            self._bump_required = False
            self._transition_to(TransactionManagerState.READY)
        elif isinstance(request, AddPartitionsToTxnRequest):
            manager.partitions_in_transaction.update(dict.fromkeys(request.partitions))
        else:
            if response.producer != NO_PRODUCER and self._versions.transaction_version2:
                manager.producer = response.producer
                for sequences in manager.partitions.values():
                    sequences.start_again(manager.producer)
            self._complete_transaction()

    def _complete_transaction(self) -> None:
        """Get ready for the next transaction, in a new epoch if a batch failed. Source: completeTransaction."""
        manager = self._manager
        manager.partitions_in_transaction.clear()
        self._started = False
        if self._bump_required and not self._versions.transaction_version2:
            self._transition_to(TransactionManagerState.INITIALIZING)
            self._pending.append(self._init_request(manager.producer))
        else:
            self._bump_required = False
            self._transition_to(TransactionManagerState.READY)

    def _fail(self, error: KafkaError) -> None:
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
