"""A producer put together from its parts. Source: KafkaProducer."""

import random
from collections.abc import Callable

from kaudit.broker.response import TopicPartition
from kaudit.simulate.clock import Clock
from kaudit.simulate.network import Connection, Endpoint, Network
from kaudit.simulate.payload import Payload
from kaudit.simulate.producer.accumulator import RecordAccumulator
from kaudit.simulate.producer.batch import ProducerBatch
from kaudit.simulate.producer.config import ApiVersions, ProducerConfig
from kaudit.simulate.producer.metadata import ClusterView, Metadata
from kaudit.simulate.producer.process import Process
from kaudit.simulate.producer.recovery import BumpEpoch, Recovery, ResetProducerId
from kaudit.simulate.producer.sender import Sender
from kaudit.simulate.producer.sequences import TransactionManager
from kaudit.simulate.producer.transactions import TransactionalRequests


class Producer:
    """One session of a producer: from being opened until it is closed or its process dies."""

    def __init__(
        self,
        name: str,
        config: ProducerConfig,
        versions: ApiVersions,
        clock: Clock,
        network: Network,
        cluster: ClusterView,
        brokers: dict[int, Endpoint],
        home: TopicPartition,
        chance: random.Random,
        next_request: Callable[[], int],
        settled: Callable[[ProducerBatch], None],
    ) -> None:
        self.name = name
        self._clock = clock
        self._brokers = brokers
        self._network = network
        self._config = config
        self._connections: dict[int, Connection] = {}
        self._next_broker = int(chance.random() * len(brokers))
        metadata = Metadata(clock, cluster, network.delay)
        self._process = Process()
        self._accumulator = RecordAccumulator(config)
        self._manager: TransactionManager | None = None
        recovery: Recovery | None = None
        self.transactions: TransactionalRequests | None = None
        if config.idempotent:
            self._manager = TransactionManager(transactional=config.transactional_id is not None)
            recovery = (BumpEpoch if config.client.bumps_epoch else ResetProducerId)(self._manager)
            self.transactions = TransactionalRequests(
                clock,
                config,
                versions,
                self._manager,
                metadata,
                self._connect,
                self._any_broker,
                home,
                self._process,
                self.wake,
                self.say,
            )
        self._sender = Sender(
            clock,
            config,
            versions,
            self._accumulator,
            metadata,
            self._connect,
            self._manager,
            recovery,
            self.transactions,
            self._process,
            next_request,
            settled,
            self.say,
        )
        metadata.on_update = self.wake

    def send(self, partition: TopicPartition, payload: Payload, number: int) -> None:
        """Hand a record over to be sent."""
        if self.transactions is not None and self._config.transactional_id is not None:
            self.transactions.add(partition)
        clock = self._clock
        if self._accumulator.append(partition, payload, number, clock.timestamp, clock.now):
            self.wake()

    def do(self, action: Callable[[], None]) -> None:
        """Let something happen in the producer's process, after its pause if there is one."""
        self._process.do(action)

    def wake(self) -> None:
        """Let the sender look for work."""
        self._sender.wake()

    def say(self, text: str) -> None:
        """Tell the ladder what the producer does."""
        self._network.trace.note(self._clock.now, self.name, text)

    @property
    def is_idle(self) -> bool:
        """Whether every record is acknowledged or failed."""
        return not self._accumulator.incomplete

    def incomplete(self) -> list[ProducerBatch]:
        """Return the batches nobody knows the end of."""
        return list(self._accumulator.incomplete.values())

    def die(self) -> None:
        """End the process: what was not sent never will be, answers find nobody."""
        self._process.die()
        for connection in self._connections.values():
            connection.abandon()

    def pause(self) -> None:
        """Stop the process for a while, as a long garbage collection does: it neither sends nor reads."""
        self._process.pause()

    def resume(self) -> None:
        """Go on."""
        self._process.resume()
        self.wake()

    # -- connections -------------------------------------------------------------------------------------------------
    def _connect(self, broker: int) -> Connection:
        connection = self._connections.get(broker)
        if connection is None:
            config = self._config
            connection = self._connections[broker] = self._network.connection(
                self.name, self._brokers[broker], config.max_in_flight, config.reconnect_backoff_ms
            )
        return connection

    def _any_broker(self) -> int | None:
        """Return a broker to ask for a producer id, the same one while it is up, None while none is."""
        numbers = sorted(self._brokers)
        for _ in numbers:
            number = numbers[self._next_broker % len(numbers)]
            if self._brokers[number].is_up:
                return number
            self._next_broker += 1
        return None
