"""A producer put together from its parts. Source: KafkaProducer."""

from collections.abc import Callable, Iterator

from kaudit.broker.response import TopicPartition
from kaudit.simulate.producer.accumulator import RecordAccumulator
from kaudit.simulate.producer.network_client import NetworkClient
from kaudit.simulate.producer.recovery import RECOVERIES
from kaudit.simulate.producer.sender import Idempotence, Sender
from kaudit.simulate.producer.transaction_manager import TransactionManager
from kaudit.simulate.producer.txn_request_handler import TxnRequestHandler
from kaudit.simulate.producer_batch import Payload, ProducerBatch


class KafkaProducer:
    """One session of a producer: from being opened until it is closed or its process dies."""

    def __init__(
        self,
        client: NetworkClient,
        recorded_under: TopicPartition,
        request_numbers: Iterator[int],
        on_complete: Callable[[ProducerBatch], None],
        first_sequence: int = 0,
    ) -> None:
        """`recorded_under` is the partition under which its InitProducerId and EndTxn stand in the attempts.

        `first_sequence`: the sequence with which each partition begins.
        """
        config = client.config
        self._client = client
        self.accumulator = RecordAccumulator(config, client.source)
        self.transactions: TxnRequestHandler | None = None
        self.manager: TransactionManager | None = None
        idempotence: Idempotence | None = None
        if config.idempotent:
            self.manager = TransactionManager(
                transactional=config.transactional_id is not None,
                first_sequence=first_sequence,
                bump_restarts_idle_partitions=config.client.bump_restarts_idle_partitions,
            )
            recovery = RECOVERIES[config.client.recovery](self.manager, config.client)
            self.transactions = TxnRequestHandler(client, self.manager, recorded_under, self.wake)
            idempotence = Idempotence(self.manager, recovery, self.transactions)
        self._sender = Sender(client, self.accumulator, idempotence, request_numbers, on_complete)
        client.metadata.on_update = self.wake
        self.clock_offset_ms = 0
        """How far the wall clock of its machine is ahead."""

    def send(self, partition: TopicPartition, payload: Payload, number: int) -> None:
        """Hand a record over to be sent."""
        client = self._client
        if self.transactions is not None and client.config.transactional_id is not None:
            self.transactions.add(partition)
        clock = client.clock
        if self.accumulator.append(partition, payload, number, clock.timestamp + self.clock_offset_ms, clock.now):
            self.wake()

    def run(self, action: Callable[[], None]) -> None:
        """Run an action in the producer's process, after its pause if there is one."""
        self._client.process.run(action)

    def jump_clock(self, by_ms: int) -> None:
        """Set the wall clock: batches have waited that much longer, or less. Source: Time.SYSTEM.milliseconds."""
        self.clock_offset_ms += by_ms
        for batch in self.accumulator.incomplete.values():
            batch.created_at -= by_ms
            batch.last_appended_at -= by_ms
            batch.last_attempt_at -= by_ms
            batch.retry_at -= by_ms
        self._client.clock_jumped(by_ms)
        self.wake()

    def wake(self) -> None:
        """Let the sender look for work."""
        self._sender.wake()

    def note(self, text: str) -> None:
        """Add what the producer does to the sequence diagram."""
        self._client.note(text)

    @property
    def is_running(self) -> bool:
        """Whether its process runs: it is neither paused nor gone."""
        return self._client.process.is_running

    @property
    def in_flight(self) -> list[ProducerBatch]:
        """The batches sent and neither answered nor lost, in the order sent."""
        return list(self._sender.in_flight.values())

    @property
    def is_idle(self) -> bool:
        """Whether every record is acknowledged or failed."""
        return not self.accumulator.incomplete

    def incomplete(self) -> list[ProducerBatch]:
        """Return the batches that are neither acknowledged nor failed."""
        return list(self.accumulator.incomplete.values())

    def kill(self) -> None:
        """End the process: unsent batches are never sent, responses are ignored."""
        self._client.kill()

    def pause(self) -> None:
        """Stop the process for a while, as a long garbage collection does: it neither sends nor reads."""
        self._client.process.pause()

    def resume(self) -> None:
        """Go on."""
        self._client.process.resume()
        self.wake()
