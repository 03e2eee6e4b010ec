"""The sender: drains batches to brokers and completes them by the responses. Source: Sender."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from kaudit.broker.errors import KafkaError
from kaudit.simulate.network import Connection
from kaudit.simulate.producer.accumulator import RecordAccumulator
from kaudit.simulate.producer.network_client import NetworkClient
from kaudit.simulate.producer.recovery import RETRIABLE, Recovery
from kaudit.simulate.producer.transaction_manager import TransactionManager
from kaudit.simulate.producer.txn_request_handler import TxnRequestHandler
from kaudit.simulate.producer_batch import ProducerBatch
from kaudit.simulate.requests import (
    KafkaResponse,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)

_STALE_METADATA = frozenset(
    {
        KafkaError.NOT_LEADER_OR_FOLLOWER,
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError.NETWORK_EXCEPTION,
    }
)
"""Errors whose exceptions are InvalidMetadataException."""
_DELIVERY_FAILED = KafkaError.REQUEST_TIMED_OUT
"""The error of an expired batch (TimeoutException)."""


class Idempotence(NamedTuple):
    """The parts of a producer that make its sender idempotent."""

    manager: TransactionManager
    recovery: Recovery
    requests: TxnRequestHandler


class Sender:
    """One producer's sending thread, as events.

    `request_numbers` count the produce requests, from 1; `on_complete` is called once with every batch that is finished,
    which then has an offset or an error.
    """

    def __init__(
        self,
        client: NetworkClient,
        accumulator: RecordAccumulator,
        idempotence: Idempotence | None,
        request_numbers: Iterator[int],
        on_complete: Callable[[ProducerBatch], None],
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._config = client.config
        self._accumulator = accumulator
        self._idempotence = idempotence
        self._manager = None if idempotence is None else idempotence.manager
        self._tracks_in_flight = self._config.client.tracks_in_flight
        self._request_numbers = request_numbers
        self._on_complete = on_complete
        self.in_flight: dict[int, ProducerBatch] = {}
        """Batches sent and neither answered nor lost, by identity, in the order sent."""
        self._wake_at: int | None = None

    # -- when it runs ------------------------------------------------------------------------------------------------
    def wake(self) -> None:
        """Look for work now."""
        self._wake(self._clock.now)

    def _wake(self, when: int) -> None:
        if self._wake_at is None or when < self._wake_at:
            self._wake_at = when
            self._clock.at(when, partial(self._run, when))

    def _run(self, when: int) -> None:
        if when != self._wake_at:
            return
        self._wake_at = None
        self._client.process.run(self._run_once)

    def _run_once(self) -> None:
        """Run the loop once, and send as long as there is something to send. Source: runOnce."""
        if self._idempotence is not None and not self._prepare_idempotence(*self._idempotence):
            return
        while self._send_producer_data():
            pass

    def _prepare_idempotence(
        self, manager: TransactionManager, recovery: Recovery, requests: TxnRequestHandler
    ) -> bool:
        """Resolve sequences, bump the epoch, send transactional requests; return whether batches may be sent."""
        if recovery.resolve():
            requests.leave_unresolved()
        if manager.failed:
            requests.fail(KafkaError.UNKNOWN_SERVER_ERROR)
            self._abort_all(requests.last_error)
            return False
        before = manager.producer
        recovery.renew(in_flight=bool(self.in_flight))
        if manager.producer != before:
            self._client.note(f"continues with {_producer(manager.producer)}")
        if requests.is_aborting:
            for batch in self._accumulator.abort_undrained():
                self._finish(batch, KafkaError.INVALID_TXN_STATE)
        step = requests.send_next(has_incomplete=bool(self._accumulator.incomplete))
        if step.again_in is not None:
            self._wake(self._clock.now + step.again_in)
        return not step.holds_batches

    def _send_producer_data(self) -> bool:
        """Send one request to each broker that is ready; return whether any was sent. Source: sendProducerData."""
        now = self._clock.now
        flush = self._idempotence is not None and self._idempotence.requests.is_completing
        leaders = self._client.metadata.leaders
        nodes, next_check, unknown_leaders = self._accumulator.ready(leaders, now, flush=flush)
        if unknown_leaders:
            self._client.metadata.request_update()
        sent = False
        for node in nodes:
            connection = self._client.connect(node)
            if not connection.can_send:
                if connection.reconnect_at > now:
                    self._wake(connection.reconnect_at)
                    self._client.metadata.request_update()
                continue
            batches = self._accumulator.drain(leaders, node, self._manager, now)
            if not batches:
                continue
            if self._config.guarantees_order:
                self._accumulator.mute(batches)
            self.in_flight.update((id(batch), batch) for batch in batches)
            self._send(connection, batches)
            sent = True
        self._expire(now)
        if next_check is not None:
            self._wake(now + next_check)
        return sent

    def _expire(self, now: int) -> None:
        limit = self._config.delivery_timeout_ms
        gone = []
        if limit is not None:
            gone = [batch for batch in self.in_flight.values() if batch.has_reached(limit, now)]
            for batch in gone:
                del self.in_flight[id(batch)]
        gone += self._accumulator.expired(now)
        for batch in gone:
            self._fail(batch, _DELIVERY_FAILED, adjust=False)
            if self._manager is not None and batch.in_retry and batch.has_sequence:
                self._manager.mark_unresolved(batch)
        due = self._accumulator.next_expiry()
        if limit is not None and self.in_flight:
            oldest = min(batch.created_at for batch in self.in_flight.values()) + limit
            due = oldest if due is None else min(due, oldest)
        if due is not None:
            self._wake(max(due, now + 1))

    def _send(self, connection: Connection, batches: list[ProducerBatch]) -> None:
        config = self._config
        parts = tuple(
            PartitionProduceData(
                batch.partition,
                batch,
                batch.encoded(),
                batch.producer_id,
                batch.epoch,
                batch.base_sequence,
                batch.record_count,
                max(batch.timestamps),
                batch.transactional,
            )
            for batch in batches
        )
        version = self._client.versions.produce
        request = ProduceRequest(parts, config.acks, config.request_timeout_ms, config.transactional_id, version)
        connection.send(
            request,
            next(self._request_numbers),
            config.request_timeout_ms,
            lambda response: self._client.process.run(partial(self._received, request, response)),
            lambda: self._client.process.run(partial(self._lost, request)),
        )

    # -- what comes back ---------------------------------------------------------------------------------------------
    def _received(self, request: ProduceRequest, response: KafkaResponse | None) -> None:
        if response is None:
            for part in request.parts:
                self._complete(PartitionProduceResponse(part, KafkaError.NONE, -1, -1))
            self.wake()
            return
        assert isinstance(response, ProduceResponse)
        for result in response.results:
            self._complete(result)
        self._run_once()  # poll() brings one response of a connection, then the loop runs

    def _lost(self, request: ProduceRequest) -> None:
        for part in request.parts:
            self._complete(PartitionProduceResponse(part, KafkaError.NETWORK_EXCEPTION, -1, -1))
        self.wake()

    def _complete(self, result: PartitionProduceResponse) -> None:
        """Complete, retry or fail one batch of a response. Source: completeBatch."""
        batch, error = result.part.batch, result.error
        self.in_flight.pop(id(batch), None)
        if error is KafkaError.NONE or (error is KafkaError.DUPLICATE_SEQUENCE_NUMBER and self._tracks_in_flight):
            batch.offset = result.base_offset if error is KafkaError.NONE else -1
            if self._manager is not None:
                self._manager.completed(batch)
            self._finish(batch, None)
        elif error is KafkaError.MESSAGE_TOO_LARGE and batch.record_count > 1 and not batch.finished:
            self._split(batch)
        else:
            batch.last_error = error
            if self._can_retry(batch, error, result.log_start_offset):
                self._reenqueue(batch)
            else:
                self._fail(batch, error, adjust=batch.attempts < self._config.retries or not self._tracks_in_flight)
            if error in _STALE_METADATA:
                self._client.metadata.request_update()
        if self._config.guarantees_order:
            self._accumulator.unmute(batch.partition)

    def _split(self, batch: ProducerBatch) -> None:
        if self._manager is not None:
            self._manager.of(batch.partition).untrack(batch)
        parts = self._accumulator.split_and_reenqueue(batch, self._clock.now)
        if self._manager is not None:
            for part in parts:
                if part.has_sequence:
                    self._manager.of(part.partition).track(part)
        batch.finished = True
        self._client.note(f"splits the batch of {batch.record_count} records into {len(parts)}")

    def _can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Whether a batch is sent again. Source: Sender.canRetry."""
        limit = self._config.delivery_timeout_ms
        if batch.finished or batch.attempts >= self._config.retries:
            return False
        if limit is not None and batch.has_reached(limit, self._clock.now):
            return False
        if self._idempotence is None:
            return error in RETRIABLE
        return self._idempotence.recovery.can_retry(error, batch, log_start_offset)

    def _reenqueue(self, batch: ProducerBatch) -> None:
        """Send a batch again later. Source: reenqueueBatch; before 2.5 only under the producer id it had."""
        if self._idempotence is not None and not self._idempotence.recovery.keeps(batch):
            self._fail(batch, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, adjust=False)
            return
        self._accumulator.reenqueue(batch, batch.has_sequence, self._clock.now)

    def _fail(self, batch: ProducerBatch, error: KafkaError, *, adjust: bool) -> None:
        """Fail a batch. Source: failBatch."""
        if batch.finished and not self._config.client.fails_batches_again:
            return
        self.in_flight.pop(id(batch), None)
        if self._idempotence is not None:
            if batch.has_sequence:
                self._idempotence.recovery.failed(error, batch, adjust=adjust)
            self._idempotence.requests.batch_failed(error)
        self._finish(batch, error)

    def _finish(self, batch: ProducerBatch, error: KafkaError | None) -> None:
        if batch.finished:
            return
        batch.finished = True
        batch.error = error
        self._accumulator.complete(batch)
        self._on_complete(batch)

    def _abort_all(self, error: KafkaError | None) -> None:
        for batch in list(self._accumulator.incomplete.values()):
            self._finish(batch, error)


def _producer(producer: tuple[int, int]) -> str:
    return "a new producer id" if producer[0] < 0 else f"id {producer[0]}, epoch {producer[1]}"
