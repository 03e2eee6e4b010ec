"""Live brokers of several releases for the tests of kafka://; `conftest.py` makes a fixture of each."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kaudit.broker.releases.version import RELEASES
from tests.conformance.recorder.script import Recorder
from tests.conformance.recorder.topic import Line, Step, Topic
from tests.live_brokers import security
from tests.live_brokers.cluster import REPLICAS, Cluster
from tests.live_brokers.jars import jars_of
from tests.live_brokers.jvm import Broker
from tests.live_brokers.protocol import Connection
from tests.live_brokers.security import Certificate
from tests.live_brokers.server_logs import Levels

WITH_ZOOKEEPER, WITH_EITHER, NEWEST = "2.8.2", "3.9.2", str(RELEASES[-1])
"""The releases that are started: 3.9 is the last that can do without KRaft, and is started with it."""
HEAP = "256m"
TOPIC_ALREADY_EXISTS = 36
FIRST, *OTHERS = REPLICAS
EXPIRY: dict[str, object] = {
    "producer.id.expiration.ms": 4000,
    "producer.id.expiration.check.interval.ms": 500,
    "transaction.partition.verification.enable": "false",
}
"""Producers are soon forgotten; what a forgotten one sends again is appended again. A late write may open a transaction."""
IDLE_MS = 8000
ID_EXPIRY: dict[str, object] = {
    "transactional.id.expiration.ms": IDLE_MS,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
}
"""Transactional ids expire that have been idle for so long."""


class _Player(Recorder):
    """Plays scenarios, also in a topic that an earlier one has made."""

    def _create_with(self, topic: Topic, config: dict[str, str]) -> int:
        error = super()._create_with(topic, config)
        return 0 if error == TOPIC_ALREADY_EXISTS else error


class Live:
    """A running broker, alone or one of several, and what tests do to it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.connection = Connection(broker.port)
        self._recorder = _Player(broker, broker.beside)

    def address(self, protocol: str | None = None) -> str:
        """HOST:PORT of the plain listener, or of that of `protocol`."""
        return f"127.0.0.1:{self.broker.port if protocol is None else self.broker.ports[protocol]}"

    def url(self, topic: str, partition: int | None = None, protocol: str | None = None) -> str:
        """kafka:// URL of a topic or a partition, at the plain listener or at that of `protocol`."""
        return f"kafka://{self.address(protocol)}/{topic}" + ("" if partition is None else f"/{partition}")

    def directory(self, topic: str, partition: int = 0) -> Path:
        """A partition's directory on the broker's disk."""
        return self.broker.logs / f"{topic}-{partition}"

    def play(self, *scenarios: Step) -> list[Line]:
        """Start the broker unless it runs, make each scenario's topic unless it is there, play its steps.

        Returns what was asked and answered.

        A scenario is {"name": topic, "partitions": 1, "topic_config": {}, "replicas": [node, ..], "steps": [..]}; the
        steps are those of tests/conformance/recorder/steps.py.
        """
        return list(self._recorder.record(scenarios))

    def close(self) -> None:
        """Hang up; the next request connects again, to a broker that was started again for instance."""
        self._recorder.close()
        self.connection.close()


@contextmanager
def live(
    version: str, home: Path, config: dict[str, object] | None = None, *, server_logs: Levels | None = None
) -> Iterator[Live]:
    """A broker of `version` with a plain listener."""
    broker = Broker(version, jars_of(version).resolve(), home, config or {}, heap=HEAP, server_logs=server_logs)
    with _running(broker) as running:
        yield running


@contextmanager
def live_secured(version: str, home: Path, certificate: Certificate) -> Iterator[Live]:
    """A broker with listeners for SSL and SASL_SSL too; the users of `security.USERS` may do what ACLs grant them.

    Transactional ids expire on it soon.
    """
    broker = Broker(
        version, jars_of(version).resolve(), home, security.AUTHORIZER | ID_EXPIRY, heap=HEAP,
        listeners=security.listeners(certificate), scram=security.USERS,
    )  # fmt: skip
    with _running(broker) as running:
        yield running


@contextmanager
def live_replicas(version: str, home: Path) -> Iterator[dict[int, Live]]:
    """Brokers 1, 2 and 3; the first is the controller and the transaction coordinator, and is never stopped."""
    cluster = Cluster(version, jars_of(version).resolve(), home, node=FIRST, nodes=tuple(OTHERS))
    with _running(cluster) as first, ExitStack() as others:  # one after the other: the coordinator is on the first
        cluster.start_replicas()
        yield {FIRST: first, **{node: others.enter_context(_running(each)) for node, each in cluster.replicas.items()}}


@contextmanager
def _running(broker: Broker) -> Iterator[Live]:
    running = Live(broker)
    try:
        running.play()
        yield running
    finally:
        running.close()
        broker.kill()  # nothing is left to be kept: a clean stop takes seconds
        broker.end()
