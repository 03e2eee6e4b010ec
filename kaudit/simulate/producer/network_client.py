"""The client's process and its connections: running, paused or gone; metadata and requests. Source: NetworkClient."""

import random
from collections.abc import Callable, Mapping
from typing import Protocol

from kaudit.broker.response import TopicPartition
from kaudit.simulate.clock import Clock
from kaudit.simulate.network import BrokerEndpoint, Connection, Network
from kaudit.simulate.producer.config import ApiVersions, ProducerConfig


class ClientProcess:
    """Runs actions of the client: at once, after a pause, or never."""

    def __init__(self) -> None:
        self.is_running = True
        self._is_dead = False
        self._deferred: list[Callable[[], None]] = []

    def run(self, action: Callable[[], None]) -> None:
        """Run an action: at once, after the pause if the process is paused, never if it is dead."""
        if self.is_running:
            action()
        elif not self._is_dead:
            self._deferred.append(action)

    def pause(self) -> None:
        """Stop it, as a long garbage collection or SIGSTOP does."""
        self.is_running = False

    def resume(self) -> None:
        """Resume, first with what arrived meanwhile."""
        if self._is_dead:
            return
        self.is_running = True
        waiting, self._deferred = self._deferred, []
        for action in waiting:
            self.run(action)

    def kill(self) -> None:
        """End the process."""
        self.is_running = False
        self._is_dead = True
        self._deferred.clear()


_REFRESH_BACKOFF_MS = 100


class BootstrapCluster(Protocol):
    """A cluster as a client finds it. Source: MetadataResponse, FindCoordinatorResponse."""

    @property
    def brokers(self) -> Mapping[int, BrokerEndpoint]:
        """The brokers to connect to, by node id."""
        ...

    def leaders(self) -> dict[TopicPartition, int | None] | None:
        """Return the leaders of all partitions, None when no broker can be asked."""
        ...

    @property
    def coordinator(self) -> int | None:
        """The broker that coordinates transactions, None while there is none."""
        ...


class Metadata:
    """A client's copy of the cluster's metadata, as old as its last update."""

    def __init__(self, clock: Clock, cluster: BootstrapCluster, delay: Callable[[], int]) -> None:
        self._clock = clock
        self._cluster = cluster
        self._delay = delay
        self._pending = False
        self._updated_at = -_REFRESH_BACKOFF_MS
        self.leaders: dict[TopicPartition, int | None] = cluster.leaders() or {}
        self.coordinator: int | None = cluster.coordinator
        self.on_update: Callable[[], None] = lambda: None

    def request_update(self) -> None:
        """Ask a broker, at most once every 100 ms (retry.backoff.ms)."""
        if self._pending:
            return
        self._pending = True
        wait = max(self._updated_at + _REFRESH_BACKOFF_MS - self._clock.now, 0)
        self._clock.after(wait + self._delay(), self._ask)

    def _ask(self) -> None:
        leaders = self._cluster.leaders()
        coordinator = self._cluster.coordinator
        self._clock.after(self._delay(), lambda: self._receive(leaders, coordinator))

    def _receive(self, leaders: dict[TopicPartition, int | None] | None, coordinator: int | None) -> None:
        self._pending = False
        self._updated_at = self._clock.now
        if leaders is not None:
            self.leaders, self.coordinator = leaders, coordinator
        self.on_update()


class NetworkClient:
    """The process, metadata and connections that a producer's sender and its transactional requests share.

    `source` gives the jitter of backoffs, and where the search for the least loaded broker begins.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - independent parts of a client
        self,
        name: str,
        config: ProducerConfig,
        versions: ApiVersions,
        cluster: BootstrapCluster,
        network: Network,
        source: random.Random,
    ) -> None:
        self.name = name
        self.config = config
        self.versions = versions
        self.clock = network.clock
        self.process = ClientProcess()
        self.metadata = Metadata(network.clock, cluster, network.delay)
        self._network = network
        self._brokers = dict(cluster.brokers)
        self._connections: dict[int, Connection] = {}
        self.source = source

    def note(self, text: str) -> None:
        """Add what the producer does to the sequence diagram."""
        self._network.trace.note(self.clock.now, self.name, text)

    def connect(self, broker: int) -> Connection:
        """Return the connection to a broker."""
        connection = self._connections.get(broker)
        if connection is None:
            config = self.config
            connection = self._connections[broker] = self._network.connection(
                self.name, self._brokers[broker], config.max_in_flight, config.reconnect_backoff_ms
            )
            connection.on_close = self.metadata.request_update
        return connection

    def least_loaded_broker(self) -> int | None:
        """Return a broker to ask for a producer id, None while none can be. Source: NetworkClient.leastLoadedNode.

        Of those connected, the first with nothing in flight, or the one with least; else one that can be connected to.
        """
        numbers = sorted(self._brokers)
        start = int(self.source.random() * len(numbers))
        least: tuple[int, int] | None = None
        unconnected: int | None = None
        for number in numbers[start:] + numbers[:start]:
            connection = self._connections.get(number)
            if connection is None or not connection.is_open:
                if self._brokers[number].is_up and unconnected is None:
                    unconnected = number
            elif connection.can_send:
                load = (len(connection.in_flight), number)
                if load[0] == 0:
                    return number
                least = load if least is None or load[0] < least[0] else least
        return unconnected if least is None else least[1]

    def clock_jumped(self, by_ms: int) -> None:
        """Close the connections whose oldest request is too old by the new clock. Source: handleTimedOutRequests."""
        limit = self.clock.now + by_ms - self.config.request_timeout_ms
        for connection in list(self._connections.values()):
            if connection.in_flight and connection.in_flight[0].sent_at <= limit:
                self.note("request.timeout.ms by the new clock: closes the connection")
                connection.close()

    def kill(self) -> None:
        """End the process: unsent batches are never sent, responses are ignored."""
        self.process.kill()
        for connection in self._connections.values():
            connection.abandon()
