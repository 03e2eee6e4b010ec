"""Leaders that follow one another before their followers have caught up."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.bugs.recipe import Outcome, outcome_of
from tests.cluster.brokers import HEAP
from tests.conformance.recorder.batches import Sent
from tests.conformance.recorder.failover import FETCH_WAIT_SECONDS
from tests.conformance.recorder.topic import clock
from tests.live_brokers.cluster import Cluster
from tests.live_brokers.jars import jars_of
from tests.live_brokers.protocol import (
    PRODUCE,
    Appended,
    Connection,
    ConnectionClosedError,
    produce_body,
    read_produced,
)

Answer = TypeVar("Answer")
FIRST, SECOND = 1, 2
VERSION, NOT_LEADER = 5, (3, 5, 6)
SECONDS = 90
CONFIG: dict[str, object] = {"unclean.leader.election.enable": "true", "log.index.size.max.bytes": 4096}


def a_leader_between(version: str, home: Path) -> Outcome:
    """Each of two replicas leads without the other; the first leads again, and never heard of the epoch between."""
    cluster = Cluster(version, jars_of(version).resolve(), home / "cluster", CONFIG, heap=HEAP, nodes=(FIRST, SECOND))
    first, second = (cluster.replicas[node] for node in (FIRST, SECOND))
    try:
        cluster.start()
        cluster.start_replicas()
        keeper = Connection(cluster.port)
        _until(lambda: keeper.metadata()[0] >= {FIRST, SECOND})
        _until(lambda: keeper.create_topic("orders", 1, {}, (FIRST, SECOND)) in (0, 36))
        _until(lambda: keeper.metadata("orders")[1][0].in_sync == [FIRST, SECOND])
        for value in "01":
            _write(first.port, -1, value)
        second.pause()
        time.sleep(FETCH_WAIT_SECONDS)
        _write(first.port, 1, "2, first alone")
        _write(first.port, 1, "3, first alone")
        first.kill()
        second.resume()
        _until(lambda: keeper.metadata("orders")[1][0].leader == SECOND)
        between = _write(second.port, 1, "2, second alone")
        second.kill()
        first.start()
        _until(lambda: keeper.metadata("orders")[1][0].leader == FIRST)
        _write(first.port, 1, "4, first again")
        second.start()
        _until(lambda: set(keeper.metadata("orders")[1][0].in_sync) == {FIRST, SECOND})
        keeper.close()
        logs = {f"replica{node}": cluster.replicas[node].logs for node in (FIRST, SECOND)}
        for replica in (first, second):
            replica.kill()
        kept = [path.read_bytes() for node in (FIRST, SECOND) for path in cluster.replicas[node].segments("orders", 0)]
    finally:
        cluster.end()
    differ = kept[0] != kept[1]
    return outcome_of(
        f"the second replica wrote offset {between} as leader of the epoch between; back as follower, when both are in "
        f"sync again, its log {'differs from' if differ else 'equals'} the leader's",
        {"code": "KA009", "topic": "orders", "partition": 0, "offset": between},
        {"command": "diff", "code": "KA601", "topic": "orders", "partition": 0, "offset": between},
        happened=differ, logs=logs, partitions=("orders-0",),
    )  # fmt: skip


def _write(port: int, acks: int, value: str) -> int:
    """Write a record as soon as the broker knows that it leads; return its offset."""
    connection = Connection(port)
    data = Sent(-1, -1, -1, 1, clock(), {"values": [value]}).encode()

    def ask() -> Appended | None:
        try:
            answer = connection.ask(PRODUCE, VERSION, produce_body(VERSION, None, acks, "orders", {0: data}))
        except (ConnectionClosedError, OSError):
            return None
        produced = read_produced(VERSION, answer)[0]
        return None if produced.error in NOT_LEADER else produced

    produced = _until(ask)
    connection.close()
    assert produced.error == 0, produced
    return int(produced.base_offset)


def _until(ask: Callable[[], Answer | None]) -> Answer:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if answer := ask():
            return answer
        time.sleep(0.2)
    raise TimeoutError
