"""The sender: drains batches to brokers and settles what comes back. Source: Sender."""

from collections.abc import Callable
from functools import partial

from kaudit.broker.errors import KafkaError
from kaudit.simulate.clock import Clock
from kaudit.simulate.network import Connection
from kaudit.simulate.producer.accumulator import RecordAccumulator
from kaudit.simulate.producer.batch import ProducerBatch
from kaudit.simulate.producer.config import ApiVersions, ProducerConfig
from kaudit.simulate.producer.metadata import Metadata
from kaudit.simulate.producer.process import Process
from kaudit.simulate.producer.recovery import RETRIABLE, Recovery
from kaudit.simulate.producer.sequences import TransactionManager
from kaudit.simulate.producer.transactions import TransactionalRequests
from kaudit.simulate.requests import PartResult, ProducedPart, ProduceRequest, ProduceResponse, Response

_STALE_METADATA = frozenset(
    {
        KafkaError.NOT_LEADER_OR_FOLLOWER,
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError.NETWORK_EXCEPTION,
    }
)
"""Errors whose exceptions are InvalidMetadataException."""
_DELIVERY_FAILED = KafkaError.REQUEST_TIMED_OUT
"""TimeoutException: what an expired batch fails with."""

Settled = Callable[[ProducerBatch], None]
"""Told of every batch that is finished, with its offset or error."""


class Sender:
    """One producer's sending thread, as events."""

    def __init__(
        self,
        clock: Clock,
        config: ProducerConfig,
        versions: ApiVersions,
        accumulator: RecordAccumulator,
        metadata: Metadata,
        connect: Callable[[int], Connection],
        manager: TransactionManager | None,
        recovery: Recovery | None,
        requests: TransactionalRequests | None,
        process: Process,
        next_request: Callable[[], int],
        settled: Settled,
        say: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._config = config
        self._versions = versions
        self._accumulator = accumulator
        self._metadata = metadata
        self._connect = connect
        self._manager = manager
        self._recovery = recovery
        self._requests = requests
        self._process = process
        self._next_request = next_request
        self._settled = settled
        self._say = say
        self._in_flight: dict[int, ProducerBatch] = {}
        self._wake_at: int | None = None

    # -- when it runs ------------------------------------------------------------------------------------------------
    def wake(self) -> None:
        """Let it look for work now."""
        self._wake(self._clock.now)

    def _wake(self, when: int) -> None:
        if self._wake_at is None or when < self._wake_at:
            self._wake_at = when
            self._clock.at(when, partial(self._run, when))

    def _run(self, when: int) -> None:
        if when != self._wake_at:
            return
        self._wake_at = None
        self._process.do(self._run_once)

    def _run_once(self) -> None:
        """One turn of the loop, as often as it finds something to send. Source: runOnce."""
        if self._recovery is not None:
            assert self._manager is not None
            before = self._manager.producer
            self._recovery.resolve()
            self._recovery.renew()
            if self._manager.producer != before:
                self._say(f"goes on with {_producer(self._manager.producer)}")
        if self._requests is not None:
            assert self._manager is not None
            if self._manager.failed:
                self._abort_all(KafkaError.UNKNOWN_SERVER_ERROR)
                return
            if self._requests.is_aborting:
                for batch in self._accumulator.abort_undrained():
                    self._finish(batch, KafkaError.INVALID_TXN_STATE)
            wait = self._requests.send_next(has_incomplete=bool(self._accumulator.incomplete))
            if wait is not None:
                self._wake(self._clock.now + wait)
        while self._send_producer_data():
            pass

    def _send_producer_data(self) -> bool:
        """Send one request to each broker that is ready; tell whether any was sent. Source: sendProducerData."""
        now = self._clock.now
        flush = self._requests is not None and self._requests.is_completing
        leaders = self._metadata.leaders
        ready = self._accumulator.ready(leaders, now, flush=flush)
        if ready.unknown_leaders:
            self._metadata.request_update()
        sent = False
        for node in ready.nodes:
            connection = self._connect(node)
            if not connection.can_send:
                if connection.reconnect_at > now:
                    self._wake(connection.reconnect_at)
                    self._metadata.request_update()
                continue
            rules = self._manager
            batches = self._accumulator.drain(leaders, node, rules, now)
            if not batches:
                continue
            if self._config.guarantees_order:
                self._accumulator.mute(batches)
            self._in_flight.update((id(batch), batch) for batch in batches)
            self._send(connection, batches)
            sent = True
        self._expire(now)
        if ready.next_check is not None:
            self._wake(now + ready.next_check)
        return sent

    def _expire(self, now: int) -> None:
        limit = self._config.delivery_timeout_ms
        gone = []
        if limit is not None:
            gone = [batch for batch in self._in_flight.values() if batch.has_reached(limit, now)]
            for batch in gone:
                del self._in_flight[id(batch)]
        gone += self._accumulator.expired(now)
        for batch in gone:
            self._fail(batch, _DELIVERY_FAILED, adjust=False)
            if self._manager is not None and batch.in_retry and batch.has_sequence:
                self._manager.mark_unresolved(batch)
        due = self._accumulator.next_expiry()
        if limit is not None and self._in_flight:
            oldest = min(batch.created_at for batch in self._in_flight.values()) + limit
            due = oldest if due is None else min(due, oldest)
        if gone:
            self.wake()
        if due is not None:
            self._wake(max(due, now + 1))

    def _send(self, connection: Connection, batches: list[ProducerBatch]) -> None:
        config = self._config
        parts = tuple(
            ProducedPart(
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
        version = self._versions.produce
        if not self._versions.transaction_version2:
            version = min(version, _LAST_BEFORE_VERSION_2)
        request = ProduceRequest(parts, config.acks, config.request_timeout_ms, config.transactional_id, version)
        connection.send(
            request,
            self._next_request(),
            config.request_timeout_ms,
            lambda response: self._process.do(partial(self._received, request, response)),
            lambda: self._process.do(partial(self._lost, request)),
        )

    # -- what comes back ---------------------------------------------------------------------------------------------
    def _received(self, request: ProduceRequest, response: Response | None) -> None:
        if response is None:
            for part in request.parts:
                self._complete(PartResult(part, KafkaError.NONE, -1, -1))
        else:
            assert isinstance(response, ProduceResponse)
            for result in response.results:
                self._complete(result)
        self.wake()

    def _lost(self, request: ProduceRequest) -> None:
        for part in request.parts:
            self._complete(PartResult(part, KafkaError.NETWORK_EXCEPTION, -1, -1))
        self.wake()

    def _complete(self, result: PartResult) -> None:
        """Settle one batch of a response. Source: completeBatch."""
        batch, error = result.part.batch, result.error
        self._in_flight.pop(id(batch), None)
        if error is KafkaError.NONE or error is KafkaError.DUPLICATE_SEQUENCE_NUMBER:
            if not batch.finished or batch.error is not None:
                batch.offset = result.base_offset if error is KafkaError.NONE else -1
            if self._manager is not None:
                self._manager.completed(batch)
            self._finish(batch, None)
        elif error is KafkaError.MESSAGE_TOO_LARGE and batch.record_count > 1 and not batch.finished:
            self._split(batch)
        else:
            batch.refused = error
            if self._can_retry(batch, error, result.log_start_offset):
                self._reenqueue(batch)
            else:
                self._fail(batch, error, adjust=batch.attempts < self._config.retries)
            if error in _STALE_METADATA:
                self._metadata.request_update()
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
        self._say(f"splits the batch of {batch.record_count} records into {len(parts)}")

    def _can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Tell whether a batch is sent again. Source: Sender.canRetry."""
        limit = self._config.delivery_timeout_ms
        if batch.finished or batch.attempts >= self._config.retries:
            return False
        if limit is not None and batch.has_reached(limit, self._clock.now):
            return False
        if self._recovery is None:
            return error in RETRIABLE
        return self._recovery.can_retry(error, batch, log_start_offset)

    def _reenqueue(self, batch: ProducerBatch) -> None:
        """Send a batch again later. Source: reenqueueBatch; before 2.5 only under the producer id it had."""
        if self._recovery is not None and not self._recovery.keeps(batch):
            self._fail(batch, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, adjust=False)
            return
        self._accumulator.reenqueue(batch, batch.has_sequence, self._clock.now)

    def _fail(self, batch: ProducerBatch, error: KafkaError, *, adjust: bool) -> None:
        """Give a batch up. Source: failBatch."""
        if batch.finished:
            return
        self._in_flight.pop(id(batch), None)
        if self._recovery is not None and batch.has_sequence:
            self._recovery.failed(error, batch, adjust=adjust)
        if self._requests is not None:
            self._requests.batch_failed(error)
        self._finish(batch, error)

    def _finish(self, batch: ProducerBatch, error: KafkaError | None) -> None:
        if batch.finished:
            return
        batch.finished = True
        batch.error = error
        self._accumulator.complete(batch)
        self._settled(batch)

    def _abort_all(self, error: KafkaError) -> None:
        for batch in list(self._accumulator.incomplete.values()):
            self._finish(batch, error)


_LAST_BEFORE_VERSION_2 = 11


def _producer(producer: tuple[int, int]) -> str:
    return "a new producer id" if producer[0] < 0 else f"id {producer[0]}, epoch {producer[1]}"
