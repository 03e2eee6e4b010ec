"""The connections to one cluster's brokers: a request to a node, its decoded answer back. One thread at a time."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import kafka.errors as kafka_errors
from kafka.net import KafkaConnectionManager, NetworkSelector
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from kaudit.model.limits import ANSWER_BYTES
from kaudit.source.kafka.answers import Node
from kaudit.source.kafka.command_config import ClientSettings
from kaudit.source.kafka.failures import RetriableError, broker_error
from kaudit.source.kafka.fetched_segment import BrokerError
from kaudit.source.uri import UrlError

CLIENT_ID = "kaudit"
CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 30.0
LARGEST_ANSWER = ANSWER_BYTES
"""Longest answer in bytes."""
_LONGEST_THROTTLE_SECONDS = 60.0
_MOST_NODES = 10_000
_PORTS = range(1, 1 << 16)
_HUNG_UP = "the broker closed the connection during the login: user, password or mechanism are not the broker's"
_POLL_SECONDS = 0.02

Answer = Any
"""A decoded message of kafka.protocol; the library has no types."""

# errors are raised: the user gets one line of text, not the library's log
logging.getLogger("kafka").addHandler(logging.NullHandler())
logging.getLogger("kafka").propagate = False


class Connections:
    """Connections by node id, made when they are needed and made again when they broke."""

    def __init__(self, servers: str, settings: ClientSettings, largest_answer: int = LARGEST_ANSWER) -> None:
        self.servers = parse_servers(servers or settings.bootstrap_servers)
        self._net = NetworkSelector(client_id=CLIENT_ID, slow_task_threshold_secs=0)
        options = {
            "client_id": CLIENT_ID,
            "client_software_name": CLIENT_ID,
            "reconnect_backoff_ms": 50,
            "reconnect_backoff_max_ms": 1000,
            "request_timeout_ms": int(REQUEST_SECONDS * 1000),
            "socket_connection_setup_timeout_ms": int(CONNECT_SECONDS * 1000),
            "receive_message_max_bytes": largest_answer,
            **settings.options,
        }
        self._manager = KafkaConnectionManager(self._net, bootstrap_servers=self.servers, **options)
        self._addresses = {
            node.node_id: f"{node.host}:{node.port}" for node in self._manager.cluster.bootstrap_brokers()
        }
        self._nodes: dict[int, Node] = {}

    def close(self) -> None:
        """Close all connections."""
        self._manager.close()
        self._net.close()

    @property
    def nodes(self) -> Sequence[Node]:
        """The brokers that the last answer of Metadata listed."""
        return tuple(self._nodes.values())

    def address(self, node: int) -> str:
        """Return the host and port of a broker."""
        return self._nodes[node].address if node in self._nodes else f"node {node}"

    def ask(self, node: int, request: Any) -> Answer:  # noqa: ANN401 - the library has no types
        """Send a request to a broker and return its answer.

        Raises:
            BrokerError: it cannot be reached, or its answer cannot be read; RetriableError where a retry may help.

        """
        if node not in self._nodes:
            raise RetriableError(f"node {node}", "the cluster lists no broker of this id")
        return self._run(node, self.address(node), request)

    def ask_any(self, request: Callable[[], Any]) -> Answer:
        """Send a request to the first broker that answers, those known by Metadata first; `request` makes a new one for each.

        Raises as `ask` does, for the first broker asked.
        """
        first: OSError | None = None
        bootstrap = [node.node_id for node in self._manager.cluster.bootstrap_brokers()]
        for node in (*self._nodes, *bootstrap):
            place = self._nodes[node].address if node in self._nodes else self._addresses[node]
            try:
                return self._run(node, place, request())
            except RetriableError as error:
                first = first or error
        assert first is not None, "there is a bootstrap server"
        raise first

    def refresh(self, topics: Iterable[str] | None) -> Answer:
        """Ask for the metadata of topics by name (None: of all), keep the brokers listed and return the answer."""
        names = None if topics is None else list(topics)

        def request() -> Any:  # noqa: ANN401 - the library has no types
            wanted = (
                MetadataRequest.ALL_TOPICS
                if names is None
                else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
            )
            return MetadataRequest(
                # below version 4 a request may create the topic
                topics=wanted, allow_auto_topic_creation=False, min_version=4, max_version=12
            )  # fmt: skip

        answer = self.ask_any(request)
        brokers = answer.brokers or []
        if not brokers or len(brokers) > _MOST_NODES:
            raise RetriableError(self.servers[0], f"the answer lists {len(brokers)} brokers")
        for node in brokers:
            if node.node_id < 0 or not node.host or not node.host.isprintable() or node.port not in _PORTS:
                raise BrokerError(
                    self.servers[0], f"the answer lists a broker {node.node_id} at {node.host!r:.60}:{node.port}"
                )
        self._nodes = {node.node_id: Node(node.node_id, node.host, node.port, node.rack) for node in brokers}
        # the library connects to the brokers of its cluster metadata; topics are kept here
        self._manager.cluster.update_metadata(MetadataResponse(version=1, brokers=brokers, controller_id=-1, topics=[]))
        return answer

    def _run(self, node: "int | str", place: str, request: Any) -> Answer:  # noqa: ANN401 - the library has no types
        try:
            return self._net.run(self._exchange, node, place, request)
        except UrlError:
            raise
        except Exception as error:  # noqa: BLE001 - the library's own errors, and any of the codecs and the TLS below it
            raise broker_error(place, error) from None

    async def _exchange(self, node: "int | str", place: str, request: Any) -> Answer:  # noqa: ANN401
        connection = await self._connected(node)
        throttled_until = time.monotonic() + _LONGEST_THROTTLE_SECONDS
        while connection.paused and not connection.closed:
            if time.monotonic() > throttled_until:
                raise BrokerError(place, f"throttled by a quota for more than {_LONGEST_THROTTLE_SECONDS:.0f} seconds")
            await self._net.sleep(_POLL_SECONDS)
        return await connection.send_request(request)

    async def _connected(self, node: "int | str") -> Any:  # noqa: ANN401 - the library has no types
        deadline = time.monotonic() + CONNECT_SECONDS
        while self._manager.connection_delay(node) > 0 and time.monotonic() < deadline:
            await self._net.sleep(_POLL_SECONDS)
        connection = self._manager.get_connection(node, refresh_metadata_on_err=False)
        if not connection.connected:
            _guard(connection)
            try:
                # a TLS handshake has no timeout of its own
                await self._manager.wait_for(connection.init_future, CONNECT_SECONDS * 1000)
            except kafka_errors.KafkaTimeoutError:
                connection.close(kafka_errors.KafkaConnectionError("Connection timed out"))
                raise
            except kafka_errors.KafkaConnectionError:
                if connection.sasl_enabled and connection.broker_version is not None:
                    # the library drops a refusal that comes together with the end of the connection
                    raise kafka_errors.SaslAuthenticationFailedError(_HUNG_UP) from None
                raise
        return connection


def parse_servers(text: str) -> list[str]:
    """Return the hosts and ports of a list as in bootstrap.servers.

    Raises:
        UrlError: there is none, or one is not HOST:PORT.

    """
    servers = [server.strip() for server in text.split(",") if server.strip()]
    if not servers:
        raise UrlError(
            "kafka:// needs brokers: kafka://HOST:PORT[,HOST:PORT]/TOPIC, or bootstrap.servers in --command-config"
        )
    for server in servers:
        host, _, port = server.rpartition(":")
        if not host or not port.isdecimal() or int(port) not in _PORTS or (":" in host and not host.startswith("[")):
            raise UrlError(f"kafka://{text}: {server} is not HOST:PORT")
    return servers


def _guard(connection: Any) -> None:  # noqa: ANN401 - the library has no types
    """End the connection at once when an answer cannot be decoded.

    The library lets only its own errors end it; any other would leave the request to its timeout.
    """
    decode = connection.data_received

    def data_received(data: bytes) -> None:
        try:
            decode(data)
        except Exception as error:  # noqa: BLE001 - hostile bytes fail in any of the codecs
            known = isinstance(error, kafka_errors.KafkaProtocolError)
            connection.close(error if known else kafka_errors.KafkaProtocolError(type(error).__name__))

    connection.data_received = data_received
