"""Record what brokers log of producers without epochs and of coordinators without replicas, a minute each, of 4.0 or later.

    python -m tests.live_brokers.coordinator_logs epochs 4.1.1 4.4.0
    python -m tests.live_brokers.coordinator_logs min-isr 4.1.1

epochs: Three transactional ids are initialised until they are at epoch 32766, and then once more: one that is idle, one whose transaction is open,
one whose transaction timed out in the meantime. An idempotent producer, whose client counts its epochs itself, goes on below epoch 32767.
min-isr: A transactional id is initialised each second; of two brokers one is stopped and started, where __transaction_state needs two.
"""

import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path

from kaudit.model.logged_incidents import MAX_EPOCH
from tests.conformance.recorder.batches import Sent
from tests.live_brokers.cluster import Cluster
from tests.live_brokers.jars import jars_of
from tests.live_brokers.jvm import Broker
from tests.live_brokers.protocol import PRODUCE, Connection, produce_body, read_produced

DATA = Path(__file__).parents[1] / "data" / "server-logs"
TOPIC, IDLE, OPEN, STALLED = "orders", "payments", "refunds", "reports"
_EVERY = 500
"""Of the lines about epochs one in so many is recorded: they are alike."""
_PRODUCE_VERSION = 12
_TIMEOUT_MS = 3000
_BUSY = 51
"""CONCURRENT_TRANSACTIONS"""
_SECONDS = 60
_REFUSED = 5
"""Attempts while a replica is gone."""


def epochs(release: str) -> Mapping[str, bytes]:
    """Play it on one broker; returns its server.log."""
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(release, jars_of(release), Path(folder) / "broker", server_logs="stock")
        try:
            broker.start()
            _play(Connection(broker.port))
            broker.stop(clean=True)
            text = (broker.home / "logs" / "server.log").read_text()
        finally:
            broker.end()
    return {"server.log": "".join(_thinned(text)).encode()}


def _play(client: Connection) -> None:
    _until(lambda: client.create_topic(TOPIC, 1, {}) in {0, 36})
    _until(lambda: client.find_coordinator(IDLE) == 0)
    producers = {name: _exhausted(client, name) for name in (IDLE, OPEN, STALLED)}
    for name in (STALLED, OPEN):
        assert _sent(client, name, producers[name]) == 0
    _initialised(client, IDLE)
    _initialised(client, OPEN)
    _until(lambda: client.transaction_state(STALLED) == "CompleteAbort")
    _initialised(client, STALLED)
    _, producer_id, _ = client.init_producer_id(2, None, _TIMEOUT_MS, (-1, -1))
    answers = [_sent(client, None, (producer_id, epoch)) for epoch in (MAX_EPOCH - 1, MAX_EPOCH, -MAX_EPOCH - 1, 0)]
    assert answers == [0, 0, 47, 47], answers


def min_isr(release: str) -> Mapping[str, bytes]:
    """Play it; returns the server.log of the broker that stayed, and the log of __transaction_state-0."""
    config: dict[str, object] = {
        "offsets.topic.replication.factor": 2, "transaction.state.log.replication.factor": 2, "transaction.state.log.min.isr": 2,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(release, jars_of(release), Path(folder) / "cluster", config, server_logs="stock", nodes=(1,))
        (other,) = cluster.replicas.values()
        try:
            cluster.start()
            cluster.start_replicas()
            client = Connection(cluster.port)
            _until(lambda: len(client.metadata()[0]) == 2)
            _until(lambda: client.find_coordinator(IDLE) == 0)
            client.reassign("__transaction_state", 0, (cluster.node, other.node))
            _until(lambda: client.metadata("__transaction_state")[1][0].in_sync[0] == cluster.node)
            client.elect_preferred(1, "__transaction_state", 0)
            _until(lambda: _is_initialised(client))
            other.stop(clean=True)
            _until(lambda: len(client.metadata("__transaction_state")[1][0].in_sync) == 1)
            for _ in range(_REFUSED):
                assert not _is_initialised(client)
                time.sleep(1)
            other.start()
            _until(lambda: _is_initialised(client))
            other.stop(clean=True)
            cluster.stop(clean=True)
            text = (cluster.home / "logs" / "server.log").read_text()
            (segment,) = cluster.logs.glob("__transaction_state-0/*.log")
            return {
                "server.log": "".join(_thinned(text)).encode(),
                f"__transaction_state-0/{segment.name}": segment.read_bytes(),
            }
        finally:
            cluster.end()


def _is_initialised(client: Connection) -> bool:
    return client.init_producer_id(2, IDLE, _TIMEOUT_MS, (-1, -1))[0] == 0


def _exhausted(client: Connection, name: str) -> tuple[int, int]:
    while True:
        producer = _initialised(client, name)
        if producer[1] == MAX_EPOCH - 1:
            return producer


def _initialised(client: Connection, name: str) -> tuple[int, int]:
    while True:
        error, *producer = client.init_producer_id(2, name, _TIMEOUT_MS, (-1, -1))
        if not error:
            return producer[0], producer[1]
        assert error == _BUSY or 14 <= error <= 16, error
        time.sleep(0.02)


def _sent(client: Connection, name: str | None, producer: tuple[int, int]) -> int:
    batch = Sent(*producer, 0, 1, int(time.time() * 1000), {"txn": name is not None}).encode()
    body = produce_body(_PRODUCE_VERSION, name, -1, TOPIC, {0: batch})
    return read_produced(_PRODUCE_VERSION, client.ask(PRODUCE, _PRODUCE_VERSION, body))[0].error


def _until(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + _SECONDS
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.2)


def _thinned(text: str) -> Iterator[str]:
    """Yield the lines about transactions and partitions, of those about epochs some, without what a broker says of its configuration."""
    for line in text.splitlines(keepends=True):
        epoch = line.partition(" and producer epoch ")[2].partition(" ")[0]
        chosen = ("ransaction", "org.apache.kafka.common.errors", "ReplicaManager", "Partition ")
        if any(word in line for word in chosen) and (
            not epoch or int(epoch) % _EVERY == 0 or int(epoch) > MAX_EPOCH - 10 or int(epoch) < 10
        ):
            yield line


def main() -> None:
    """Record a play with the releases that are named."""
    name, *releases = sys.argv[1:]
    for release in releases:
        path = DATA / f"{name}-{release}.tar.xz"
        with tarfile.open(path, "w:xz") as archive:
            for member, content in {"epochs": epochs, "min-isr": min_isr}[name](release).items():
                info = tarfile.TarInfo(member)
                info.size, info.mtime = len(content), int(time.time())
                archive.addfile(info, BytesIO(content))
        sys.stderr.write(f"{path.name}: {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
