"""The migration of a cluster's metadata from ZooKeeper to KRaft."""

import signal
import subprocess
import time
from pathlib import Path

from tests.bugs.recipe import Outcome, outcome_of
from tests.cluster.brokers import HEAP, TOPIC_ALREADY_EXISTS
from tests.conformance.recorder.batches import Sent
from tests.conformance.recorder.topic import clock
from tests.live_brokers.jars import jars_of
from tests.live_brokers.java_producer import logging_jars
from tests.live_brokers.jvm import Broker, Jvm, free_port
from tests.live_brokers.protocol import PRODUCE, Appended, Connection, produce_body, read_produced

CONTROLLER, VERSION = 3000, 8
MIGRATED_SECONDS = 90
SMALL_LOGS: dict[str, object] = {"log.index.size.max.bytes": 4096}


def producer_ids_of_zookeeper(version: str, home: Path) -> Outcome:
    """A producer id is granted before the migration, and one after it."""
    jars = jars_of(version).resolve()
    broker = Broker(version, jars, home / "broker", SMALL_LOGS, heap=HEAP, zookeeper=True)
    controller: Jvm | None = None
    try:
        broker.start()
        connection = Connection(broker.port)
        _created(connection)
        first = _granted(connection)
        answers = [_write(connection, first, sequence, "first") for sequence in (0, 1)]
        connection.close()
        broker.stop(clean=True)
        controller = _controller(broker, home / "controller")
        controller.start()
        broker.start()
        _await_migration(home / "controller" / "controller.out")
        connection = Connection(broker.port)
        second = _granted(connection)
        answers += [_write(connection, second, sequence, "second") for sequence in (0, 1, 2)]
        connection.close()
        broker.stop(clean=True)
    finally:
        if controller is not None:
            controller.stop(signal.SIGTERM)
        broker.end()
    return outcome_of(
        f"the first producer was granted producer id {first} and wrote two batches; after the migration another was "
        f"granted {second}: its batches of sequences 0 to 2: {', '.join(map(_answer, answers[2:]))}",
        {"code": "KA402"},
        happened=first == second,
        logs={"broker": broker.logs, "controller": home / "controller" / "data"},
        partitions=("orders-0", "__cluster_metadata-0"),
        zookeeper=broker.home / "zookeeper",
    )  # fmt: skip


def _answer(answer: Appended) -> str:
    return f"error {answer.error}" if answer.error else f"offset {answer.base_offset}"


def _created(connection: Connection) -> None:
    deadline = time.monotonic() + MIGRATED_SECONDS
    while connection.create_topic("orders", 1, {}) not in (0, TOPIC_ALREADY_EXISTS) and time.monotonic() < deadline:
        time.sleep(0.2)


def _granted(connection: Connection) -> int:
    deadline = time.monotonic() + MIGRATED_SECONDS
    while time.monotonic() < deadline:
        error, producer_id, _ = connection.init_producer_id(1, None, 1000, (-1, -1))
        if not error:
            return producer_id
        time.sleep(0.2)
    raise TimeoutError("no producer id")


def _write(connection: Connection, producer_id: int, sequence: int, value: str) -> Appended:
    data = Sent(producer_id, 0, sequence, 1, clock(), {"values": [value]}).encode()
    deadline = time.monotonic() + MIGRATED_SECONDS
    while time.monotonic() < deadline:
        body = produce_body(VERSION, None, -1, "orders", {0: data})
        answer = read_produced(VERSION, connection.ask(PRODUCE, VERSION, body))[0]
        if answer.error not in (3, 5, 6):
            return answer
        time.sleep(0.2)
    raise TimeoutError("no leader")


def _controller(broker: Broker, home: Path) -> Jvm:
    """A KRaft controller that takes over the cluster of a broker with ZooKeeper; adds what the broker needs for it."""
    home.mkdir()
    _, zookeeper = broker.control
    port = free_port()
    shared = {
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    own = {
        "process.roles": "controller",
        "node.id": CONTROLLER,
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "zookeeper.connect": f"127.0.0.1:{zookeeper}",
        "log.dirs": home / "data",
    }
    with (broker.home / "server.properties").open("a") as properties:
        properties.writelines(f"{name}={value}\n" for name, value in shared.items())
    settings = home / "controller.properties"
    settings.write_text("".join(f"{name}={value}\n" for name, value in {**shared, **own}.items()))
    known = dict(
        line.split("=", 1) for line in (broker.logs / "meta.properties").read_text().splitlines() if "=" in line
    )
    java = [
        broker.java,
        "-Xmx256m",
        f"-Dlog4j.configuration=file:{_logging(home)}",
        "-cp",
        f"{logging_jars()}:{broker.jars}/*",
    ]
    format_ = [*java, "kafka.tools.StorageTool", "format", "-t", known["cluster.id"], "-c", str(settings)]
    subprocess.run(format_, check=True, cwd=home, stdout=subprocess.DEVNULL)
    return Jvm([*java, "kafka.Kafka", str(settings)], home / "controller.out")


def _logging(home: Path) -> Path:
    logging = home / "log4j.properties"
    logging.write_text(
        "log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
    )
    return logging


def _await_migration(log: Path) -> None:
    deadline = time.monotonic() + MIGRATED_SECONDS
    while time.monotonic() < deadline:
        if "Completed migration of metadata from Zookeeper to KRaft" in log.read_text(errors="replace"):
            return
        time.sleep(0.5)
    raise TimeoutError("the migration")
