"""What a client knows about the cluster: which broker leads which partition. Source: Metadata, MetadataUpdater."""

from collections.abc import Callable
from typing import Protocol

from kaudit.broker.response import TopicPartition
from kaudit.simulate.clock import Clock

_REFRESH_BACKOFF_MS = 100


class ClusterMetadata(Protocol):
    """What any broker answers about the cluster. Source: MetadataResponse, FindCoordinatorResponse."""

    def leaders(self) -> dict[TopicPartition, int | None] | None:
        """Return the leaders of all partitions, None when no broker can be asked."""
        ...

    @property
    def coordinator(self) -> int | None:
        """The broker that coordinates transactions, None while there is none."""
        ...


class Metadata:
    """A client's copy of the cluster's metadata, as old as its last update."""

    def __init__(self, clock: Clock, cluster: ClusterMetadata, delay: Callable[[], int]) -> None:
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
