"""Transactions of a cluster: their state, the partition of __transaction_state it is written to, and their timeouts.

Decisions are those of kaudit/broker/coordinator. Source: TransactionCoordinator, TransactionStateManager. A timeout fires
on time even while the coordinator moves.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from kaudit.broker import attempts
from kaudit.broker.config import BrokerConfig
from kaudit.broker.coordinator.requests import CoordinatorResult, EndOfTransaction, RequestContext
from kaudit.broker.coordinator.transaction_coordinator import (
    FIRST_END_TXN_OF_VERSION_2,
    TransactionCoordinator,
)
from kaudit.broker.coordinator.transaction_metadata import EXHAUSTED_EPOCH
from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_append_info import TRANSACTION_VERSION_2
from kaudit.broker.producer_state.producer_state_entry import UNKNOWN
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import TopicPartition
from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.coordinator import TransactionStatus
from kaudit.simulate import encoding
from kaudit.simulate.cluster.brokers import Brokers, RunContext
from kaudit.simulate.cluster.partition import ReplicatedPartition
from kaudit.simulate.cluster.producer_id_manager import OnProducerId
from kaudit.simulate.cluster.transaction_marker_channel_manager import TransactionMarkerChannelManager
from kaudit.simulate.producer.transaction_manager import NO_PRODUCER
from kaudit.simulate.requests import (
    AddPartitionsToTxnRequest,
    CoordinatorResponse,
    EndTxnRequest,
    InitProducerIdRequest,
)

TRANSACTION_TOPIC = "__transaction_state"
_RETRY_MS = 100


class EndedTransaction(NamedTuple):
    """A transaction as it ended, for truth.json."""

    transactional_id: str
    producer_id: int
    marker_epoch: int
    commit: bool
    at: int
    partitions: tuple[TopicPartition, ...]
    by_timeout: bool


class TransactionStateManager:
    """Transactions of a cluster and the transaction log, the one partition of __transaction_state."""

    def __init__(
        self,
        profile: Profile,
        config: BrokerConfig,
        markers: TransactionMarkerChannelManager,
        brokers: Brokers,
        context: RunContext,
    ) -> None:
        self._profile = profile
        self._brokers = brokers
        self.with_producer_id: Callable[[OnProducerId], None] = lambda use: use(None)
        """Calls what it is given with a new producer id of the coordinator's broker, with None while there is none."""
        self._clock = context.clock
        self._recorder = context.recorder
        self._trace = context.trace
        self.markers = markers
        markers.on_complete = self._markers_written
        markers.coordinator = lambda: self.broker
        self.log: ReplicatedPartition | None = None
        self.coordinator = TransactionCoordinator(profile, config, self._write_markers, self._allocate)
        self.ended: list[EndedTransaction] = []
        self._check_ms = config.transaction_check_ms
        self._watched: dict[str, tuple[int, int]] = {}
        """By transactional id: start (ms) and number of partitions of the transaction as last written."""
        self._owners: dict[int, str] = {}
        """Transactional ids by producer id."""
        self._timing_out = False
        self._loading = False
        """Whether markers are sent again: the transaction log has the decision already."""
        self._caller_writes_completion = False
        """Whether end_transaction writes the completed state itself, after it has set a new producer id."""
        self._unwritten: list[bytes] = []
        """Records for the transaction log, while it has no leader."""
        self._started = {0}
        """When the broker may have been started last, by what the attempts say, in ms since the run began."""
        self._granted_id: int | None = None
        self._used_id: int | None = None

    @property
    def broker(self) -> int | None:
        """The broker that coordinates."""
        return None if self.log is None else self.log.leader

    def under_way(self) -> Iterator[tuple[TopicPartition, int]]:
        """Yield partition and producer id of the transactions that are to be ended yet: ongoing, or with markers to write."""
        yield from self.markers.waiting()
        for owner in set(self._owners.values()):
            transaction = self.coordinator.transaction(owner)
            if transaction is not None:
                for key in transaction.partitions:
                    yield key, transaction.producer_id

    @property
    def now(self) -> int:
        """The wall clock of the coordinator's broker, ms since 1970."""
        broker = self.broker
        return self._clock.timestamp if broker is None else self._brokers.timestamp(broker)

    @property
    def epoch(self) -> int:
        """The coordinator's epoch: the leader epoch of its partition."""
        return 0 if self.log is None else self.log.leader_epoch

    @property
    def is_replicated(self) -> bool:
        """Whether every in-sync replica of the transaction log can be reached: else nothing written to it is committed."""
        log = self.log
        return log is None or log.leader is None or all(self._brokers.reaches(log.leader, broker) for broker in log.isr)

    def _allocate(self, granted: int | None) -> int:
        producer_id = self._granted_id if granted is None else granted
        assert producer_id is not None
        self._used_id = producer_id
        return producer_id

    # -- requests ----------------------------------------------------------------------------------------------------
    def needs_producer_id(self, request: InitProducerIdRequest) -> bool:
        """Whether the response may need a new producer id."""
        tid = request.transactional_id
        known = None if tid is None else self.coordinator.transaction(tid)
        if known is None:
            return True
        # An open transaction is aborted first, which uses an epoch.
        return known.epoch + (known.state is TransactionStatus.ONGOING) >= EXHAUSTED_EPOCH

    def init_producer_id(self, request: InitProducerIdRequest, granted: int | None) -> CoordinatorResponse:
        """Answer InitProducerId; `granted` is a producer id of the broker's, None where none is needed."""
        tid = request.transactional_id
        self._granted_id, self._used_id = granted, None
        answer = self.coordinator.init_producer_id(
            RequestContext(request.recorded_under, request.api_version, self.now, True, None),
            tid,
            request.timeout_ms,
            request.producer,
        )
        attempt = self._recorder.attempt(
            attempts.InitProducerId,
            request.recorded_under,
            transactional_id=tid,
            api_version=request.api_version,
            timeout_ms=request.timeout_ms,
            granted_producer_id=self._used_id,
        )
        if request.producer != NO_PRODUCER:
            attempt.producer_id, attempt.producer_epoch = request.producer
        self._recorder.record(attempt, answer.fields(with_producer=True))
        if tid is not None and answer.error is KafkaError.NONE:
            self._owners[answer.producer_id] = tid
            self._write_state(tid)
        return _response(answer)

    def add_partitions(self, request: AddPartitionsToTxnRequest) -> CoordinatorResponse:
        """Answer AddPartitionsToTxn."""
        answer = CoordinatorResult(KafkaError.NONE, *request.producer, "")
        for key in request.partitions:
            answer = self.coordinator.add_partitions(
                RequestContext(key, request.api_version, self.now, True),
                request.transactional_id,
                *request.producer,
            )
            attempt = self._recorder.attempt(
                attempts.AddPartitions,
                key,
                transactional_id=request.transactional_id,
                producer_id=request.producer[0],
                producer_epoch=request.producer[1],
                api_version=request.api_version,
            )
            self._recorder.record(attempt, answer.fields())
            if answer.error is not KafkaError.NONE:
                break
        if answer.error is KafkaError.NONE:
            self.partition_added(request.transactional_id)
        return CoordinatorResponse(answer.error, NO_PRODUCER, answer.why)

    def may_need_producer_id(self, request: EndTxnRequest) -> bool:
        """Whether ending the transaction may use up the epochs of its producer id."""
        known = self.coordinator.transaction(request.transactional_id)
        return self._profile.transaction_version2 and known is not None and known.epoch >= EXHAUSTED_EPOCH

    def end_transaction(self, request: EndTxnRequest, granted: int | None) -> CoordinatorResponse:
        """Answer EndTxn: markers are written at once. `granted` is a producer id of the broker's, None where none is needed."""
        tid = request.transactional_id
        bumps = self._profile.transaction_version2 and request.api_version >= FIRST_END_TXN_OF_VERSION_2
        self._granted_id, self._used_id = granted, None
        self._caller_writes_completion = bumps
        ended_before = len(self.ended)
        answer = self.coordinator.end_transaction(
            RequestContext(request.recorded_under, request.api_version, self.now, True, None),
            tid,
            request.producer,
            commit=request.commit,
            transaction_version=TRANSACTION_VERSION_2 if bumps else 0,
        )
        self._caller_writes_completion = False
        attempt = self._recorder.attempt(
            attempts.EndTxn,
            request.recorded_under,
            transactional_id=tid,
            producer_id=request.producer[0],
            producer_epoch=request.producer[1],
            commit=request.commit,
            api_version=request.api_version,
        )
        if bumps and answer.error is KafkaError.NONE and answer.producer_id != request.producer[0]:
            attempt.granted_producer_id = answer.producer_id
        self._recorder.record(attempt, answer.fields(with_producer=bumps and answer.error is KafkaError.NONE))
        if answer.error is not KafkaError.NONE or not bumps:
            return CoordinatorResponse(answer.error, NO_PRODUCER, answer.why)
        self._owners[answer.producer_id] = tid
        if len(self.ended) > ended_before:
            self._write_state(tid)
        return _response(answer)

    # -- time --------------------------------------------------------------------------------------------------------
    def partition_added(self, transactional_id: str) -> None:
        """Write the state of a transaction that a partition was added to, and schedule its timeout."""
        transaction = self.coordinator.transaction(transactional_id)
        if transaction is None or transaction.state is not TransactionStatus.ONGOING:
            return
        assert transaction.started_at is not None
        known, seen = self._watched.get(transactional_id), (transaction.started_at, len(transaction.partitions))
        if known == seen:
            return
        self._watched[transactional_id] = seen
        self._write_state(transactional_id)
        if known is None or known[0] != transaction.started_at:
            self._schedule_timeout(transactional_id, transaction.started_at, transaction.timeout_ms)

    def _schedule_timeout(self, transactional_id: str, started_at: int, timeout_ms: int) -> None:
        """Schedule the check of a transaction's timeout for when it is due by the coordinator's clock."""
        due = self._clock.now + max(started_at + timeout_ms + 1 - self.now, 0)
        check = self._next_check(due, self._scheduled_since)
        first = min(self._next_check(due, since) for since in (self._scheduled_since, *self._started))
        last = max(self._next_check(due, since) for since in (self._scheduled_since, *self._started))
        if first != last:
            self._clock.at(first, partial(self._replay_differs, transactional_id, started_at))
        self._clock.at(check, partial(self._check, transactional_id, started_at))

    @property
    def _scheduled_since(self) -> int:
        """When the coordinator's periodic checks began: the start of its broker, in ms since the run began."""
        broker = self.broker
        return 0 if broker is None else self._brokers.started_at(broker)

    def _next_check(self, due: int, since: int) -> int:
        first = since + self._check_ms
        return first if due <= first else due + (since - due) % self._check_ms

    def _replay_differs(self, transactional_id: str, started_at: int) -> None:
        transaction = self.coordinator.transaction(transactional_id)
        if transaction is not None and transaction.started_at == started_at:
            self._recorder.end(
                "a transaction timed out under a coordinator that was started later than attempts can say"
            )

    def _check(self, transactional_id: str, started_at: int) -> None:
        """Abort a transaction that has timed out, if a periodic check of the coordinator is due now."""
        since = self._clock.now - self._scheduled_since
        if since and since % self._check_ms == 0:
            self._time_out(transactional_id, started_at)

    def clock_changed(self) -> None:
        """Schedule the timeouts of open transactions by the clock that the coordinator has now."""
        for transactional_id, (started_at, _) in self._watched.items():
            transaction = self.coordinator.transaction(transactional_id)
            if transaction is not None and transaction.started_at == started_at:
                self._schedule_timeout(transactional_id, started_at, transaction.timeout_ms)

    def moved(self) -> None:
        """Load the transactions at the broker that coordinates now. Source: TransactionStateManager.loadTransactionMetadata.

        The attempts format knows one coordinator: it cannot express that a previous epoch is forgotten.
        """
        self._loading = True
        self.markers.forget_late()
        if self.coordinator.move(self.now):
            self._recorder.end("the transaction coordinator moved, and knows no producer's previous epoch")
        self._loading = False
        self.clock_changed()

    def restarted(self, partition: TopicPartition, broker: int) -> None:
        """Load the transactions whose requests stand under `partition` again, if `broker` coordinates them.

        That is what the attempts say of a restart, whichever broker it is.
        """
        self._started.add(self._clock.now)
        if self.log is None or self.log.last_leader != broker:
            if self.coordinator.has_transactions:
                self._recorder.end("a broker was restarted that does not coordinate transactions")
            return
        self._loading = True
        self.markers.forget_late()
        self.coordinator.reload(partition, self.now)
        self._loading = False

    def _time_out(self, transactional_id: str, started_at: int, granted: int | None = None) -> None:
        """Abort a transaction that is too old; with version 2 that may take a new producer id, `granted`."""
        transaction = self.coordinator.transaction(transactional_id)
        if transaction is None or transaction.started_at != started_at:
            return
        if transaction.state is not TransactionStatus.ONGOING or self.now <= started_at + transaction.timeout_ms:
            return
        self._granted_id = granted
        if self._profile.transaction_version2 and transaction.epoch >= EXHAUSTED_EPOCH and granted is None:
            self.with_producer_id(partial(self._time_out_with_id, transactional_id, started_at))
            return
        self._timing_out = True
        partitions = tuple(transaction.partitions)
        self._trace.note(
            self._clock.now,
            f"broker {self.broker}",
            f"transaction of {transactional_id} timed out: aborts it",
            *(f"{topic}-{number}" for topic, number in partitions),
        )
        self.coordinator.abort_timed_out(partitions[0], self.now, self.now)
        self._timing_out = False
        for key in partitions:
            # An abort by timeout is not an attempt; the answers after this one show it.
            self._recorder.record(self._recorder.attempt(attempts.Wait, key, ms=0), {"outcome": "ok"})

    def _time_out_with_id(self, transactional_id: str, started_at: int, granted: int | None) -> None:
        if granted is None:
            self._clock.after(_RETRY_MS, partial(self._time_out, transactional_id, started_at))
        else:
            self._time_out(transactional_id, started_at, granted)

    # -- what follows from decisions ---------------------------------------------------------------------------------
    def _write_markers(self, ended: EndOfTransaction) -> bool:
        """Write a transaction's states and markers; return whether no marker was rejected."""
        owner = self._owners[ended.producer_id]
        prepared = TransactionStatus.PREPARE_COMMIT if ended.commit else TransactionStatus.PREPARE_ABORT
        if not self._loading:
            self._write_value(owner, prepared, ended.partitions, ended.marker_epoch)
        if not self.markers.write(ended, self.epoch):
            return False
        self._completed(owner, ended)
        return True

    def _markers_written(self, ended: EndOfTransaction) -> None:
        """Complete a transaction whose last markers were late."""
        owner = self._owners[ended.producer_id]
        if self.coordinator.complete(ended):
            self._completed(owner, ended)

    def _completed(self, owner: str, ended: EndOfTransaction) -> None:
        if not self._caller_writes_completion:
            complete = TransactionStatus.COMPLETE_COMMIT if ended.commit else TransactionStatus.COMPLETE_ABORT
            self._write_value(owner, complete, (), ended.marker_epoch)
        self.ended.append(
            EndedTransaction(
                owner,
                ended.producer_id,
                ended.marker_epoch,
                ended.commit,
                self._clock.now,
                ended.partitions,
                self._timing_out,
            )
        )

    def _write_state(self, transactional_id: str) -> None:
        transaction = self.coordinator.transaction(transactional_id)
        assert transaction is not None
        self._write_value(transactional_id, transaction.state, tuple(transaction.partitions), transaction.epoch)

    def _write_value(
        self, transactional_id: str, status: TransactionStatus, partitions: tuple[TopicPartition, ...], epoch: int
    ) -> None:
        """Append a record to the transaction log; every in-sync replica has it at once."""
        transaction = self.coordinator.transaction(transactional_id)
        if self.log is None or transaction is None:
            return
        watched = self._watched.get(transactional_id)
        value = encoding.TransactionValue(
            transaction.producer_id,
            epoch,
            transaction.timeout_ms,
            int(status),
            partitions,
            self.now,
            # kept until the next transaction's is written (TransactionMetadata.prepareComplete)
            NO_TIMESTAMP if watched is None or status is TransactionStatus.EMPTY else watched[0],
            transaction.last_epoch,
        )
        key = encoding.key(transactional_id)
        flexible = self._profile.transaction_version2
        body = encoding.flexible_value(value) if flexible else encoding.fixed_value(value)
        data = encoding.batch([encoding.record(0, 0, key, body)], (-1, -1, -1), (self.now, self.now))
        self._unwritten.append(data)
        self.write_unwritten()

    def write_unwritten(self) -> None:
        """Write the records that wait for the transaction log to have a leader."""
        log = self.log
        if log is None or log.leader is None or not self._brokers.is_running(log.leader):
            return
        if not self.is_replicated and self._unwritten:
            self._clock.after(_RETRY_MS, self.write_unwritten)
            return
        waiting, self._unwritten = self._unwritten, []
        for data in waiting:
            log.leader_log().memory.log_end += 1
            log.append_internal(data, None, UNKNOWN, self.now)
            log.replicate_at_once()


def _response(answer: CoordinatorResult) -> CoordinatorResponse:
    return CoordinatorResponse(answer.error, (answer.producer_id, answer.producer_epoch), answer.why)
