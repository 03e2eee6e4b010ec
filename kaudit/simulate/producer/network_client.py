"""One producer's connections, metadata and process. Source: NetworkClient."""

import random
from collections.abc import Mapping
from typing import Protocol

from kaudit.simulate.network import BrokerEndpoint, Connection, Network
from kaudit.simulate.producer.config import ApiVersions, ProducerConfig
from kaudit.simulate.producer.metadata import ClusterMetadata, Metadata
from kaudit.simulate.producer.process import ClientProcess


class BootstrapCluster(ClusterMetadata, Protocol):
    """A cluster as a client finds it: metadata, and brokers to connect to."""

    @property
    def brokers(self) -> Mapping[int, BrokerEndpoint]:
        """The brokers by node id."""
        ...


class NetworkClient:
    """What a producer's sender and its transactional requests share.

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
        """End the process: what was not sent never will be, responses are ignored."""
        self.process.kill()
        for connection in self._connections.values():
            connection.abandon()
