"""Which rows an engine keeps of each partition, and where."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Protocol

from msgspec import Struct

from kaudit.partition.audit import PartitionAudit
from kaudit.partition.replay import RowSink


class RowStore(Protocol):
    """Keeps the rows of all partitions on this machine, in their order."""

    def take(self, partition: PartitionAudit, sink: Any, /) -> None:  # noqa: ANN401 - what `make_sink` made
        """Keep the rows of a partition that has been read."""

    def __iter__(self) -> Iterator[Any]:
        """Yield what was kept of each partition."""


class InMemory:
    """Keeps the sinks of all partitions."""

    def __init__(self, _: ExitStack) -> None:
        self._sinks: list[Any] = []

    def take(self, _: PartitionAudit, sink: object) -> None:
        """Keep a partition's sink."""
        self._sinks.append(sink)

    def __iter__(self) -> Iterator[Any]:
        """Yield the sinks."""
        return iter(self._sinks)


class Rows(Struct, frozen=True):
    """Which rows an engine keeps of each partition, beside those that the audit itself needs.

    `make_sink` is called once for each partition. `seal` makes of a partition and its sink what can leave the process, of type `kind`;
    `open_store` makes what keeps the rows on this machine. `every_id`: the producer ids of every partition are
    wanted.
    """

    make_sink: Callable[[], RowSink | None]
    kind: Any
    seal: Callable[[PartitionAudit, Any], object]
    open_store: Callable[[ExitStack], RowStore] = InMemory
    every_id: bool = False


def _no_sink() -> None:
    return None


def sink_itself(_: PartitionAudit, sink: Any) -> object:  # noqa: ANN401 - any sink
    """Keep a sink as it is."""
    return sink


NO_ROWS = Rows(_no_sink, type(None), sink_itself)
