"""Several brokers of one release: one that never stops, and replicas beside it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.live_brokers.jvm import Broker

CONTROLLER = 4
REPLICAS = (1, 2, 3)
QUICK_CHANGES: dict[str, object] = {
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": 8000,
    "broker.session.timeout.ms": 6000,
    "broker.heartbeat.interval.ms": 500,
    "zookeeper.session.timeout.ms": 6000,
}
"""A follower that is paused briefly stays in sync; a leader that is gone is replaced soon."""


@dataclass
class Cluster(Broker):
    """The broker that never stops, which is the controller, with `nodes` beside it; `leaders` names every topic's leader."""

    node: int = CONTROLLER
    heap: str = "256m"
    nodes: tuple[int, ...] = REPLICAS
    leaders: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.config = {**QUICK_CHANGES, **self.config}
        super().__post_init__()
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            self.replicas = dict(zip(self.nodes, pool.map(self._replica, self.nodes), strict=True))

    def _replica(self, node: int) -> Broker:
        return Broker(
            self.version, self.jars, self.home / f"replica{node}", self.config, self.java, node, self, self.heap,
            server_logs=self.server_logs,
        )  # fmt: skip

    @property
    def recorded_config(self) -> dict[str, object]:
        """What decides about answers: not how soon a leader is replaced."""
        return {name: value for name, value in super().recorded_config.items() if name not in QUICK_CHANGES}

    def start_replicas(self) -> None:
        """Start every replica, side by side."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(Broker.start, self.replicas.values()))

    def end(self) -> None:
        """Stop everything."""
        for replica in self.replicas.values():
            replica.kill()
        super().end()

    def segments(self, topic: str, partition: int) -> list[Path]:
        """The segments of a partition on its leader."""
        leader = self.leaders[topic]
        return (
            super().segments(topic, partition)
            if leader == self.node
            else self.replicas[leader].segments(topic, partition)
        )
