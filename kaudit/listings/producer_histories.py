"""The history of every producer id of a partition, for tables: kept while reading, written when findings are known.

Histories are kept and written one partition at a time: no process holds those of two partitions.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.audits.sequences.producer_table import ProducerTable
from kaudit.broker.releases.profile import Profile
from kaudit.listings.activity import ActivityRows
from kaudit.listings.partition_join import producer_partition
from kaudit.listings.timeline import partition_histories
from kaudit.model.finding import Finding
from kaudit.model.producer_listing import Producer, ProducerPartition
from kaudit.model.result import ScanResult
from kaudit.model.timeline import Histories
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.batch_export import BatchWriter
from kaudit.partition.replay import KeptRows
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.producer_grouping import Merged
from kaudit.reading.rows import Rows

Piece = tuple[str, bytes]
"""Name of a table, and rows of it as an Arrow IPC stream."""


class HistoryRows(Struct):
    """Keeps a partition's runs, markers and activity of all producer ids."""

    rows: KeptRows = field(default_factory=lambda: KeptRows(None))
    activity: ActivityRows = field(default_factory=ActivityRows)
    _table: ProducerTable = field(default_factory=ProducerTable)

    def add(self, chunk: ChunkRows, merged: Merged, table: ProducerTable) -> None:
        """Take a chunk's rows."""
        self.rows.add(chunk, merged, table)
        self.activity.add(chunk, merged, table)
        self._table = table

    def clear(self) -> None:
        """Drop everything: the partition is read again."""
        self.rows.clear()
        self.activity.clear()
        self._table = ProducerTable()

    @property
    def producer_ids(self) -> NDArray[np.int64]:
        """The ids in the order of the activity's rows."""
        ids: NDArray[np.int64] = self._table.rows["producer_id"]
        return ids


class PartitionHistory(Struct, frozen=True):
    """A partition as it was read, with its rows."""

    partition: PartitionAudit
    rows: KeptRows
    activity: Rows
    producer_ids: NDArray[np.int64]

    @classmethod
    def of(cls, partition: PartitionAudit, kept: HistoryRows) -> "PartitionHistory":
        """Return the history of a partition that has been read."""
        return cls(partition, kept.rows, kept.activity.rows.copy(), kept.producer_ids.copy())

    @property
    def key(self) -> tuple[str, int, str]:
        """Topic, partition and replica."""
        directory = self.partition.directory
        return directory.topic, directory.partition, directory.replica

    def histories(self, findings: Sequence[Finding]) -> Iterator[Histories]:
        """Yield the histories of all producer ids; `findings` are this partition replica's."""
        return partition_histories(self.partition, self.rows, findings)

    def producers(self, *, remembers_markers: bool) -> Iterator[tuple[int, ProducerPartition]]:
        """Yield each producer id with its activity here and the state a broker would rebuild.

        `remembers_markers`: the brokers in question renew a producer's timestamp with a marker (2.4.1 and later).
        """
        for row in np.argsort(self.producer_ids, kind="stable").tolist():
            activity = producer_partition(self.key, self.activity[row], (), remembers_markers=remembers_markers)
            yield int(self.producer_ids[row]), activity


HistoryWriter = Callable[[PartitionHistory, Sequence[Finding], Profile], Iterator[Piece]]
"""Makes rows of tables from a partition's history, its findings, and the rules of the newest release its brokers may have."""


class TableWriter(Protocol):
    """Makes rows of an audit's tables where its partitions are audited."""

    @property
    def looks_up_names(self) -> bool:
        """Whether rows of all producer ids get the transactional ids that __transaction_state names."""

    def tables(self, *, batches: bool) -> Sequence[str]:
        """Return the names of all tables that have pieces; with `batches` that of batches too."""

    def schema(self, table: str) -> Any:  # noqa: ANN401 - pyarrow has no types
        """Return the Arrow schema of a table."""

    def decide(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Apply the team's policy to findings."""

    def of_findings(self, findings: Sequence[Finding]) -> Iterator[Piece]:
        """Yield the rows of findings."""

    def of_scan(self, findings: Sequence[Finding]) -> Iterator[Piece]:
        """Yield the rows that belong to no partition, including these findings."""

    def of_replica(
        self,
        history: PartitionHistory,
        findings: Sequence[Finding],
        newest: Profile,
        /,
    ) -> Iterator[Piece]:
        """Yield the rows of a partition replica, without those of its findings."""

    def of_producers(self, producers: Sequence[Producer]) -> Iterator[Piece]:
        """Yield the rows of `producers`, in their order, where an engine lists producer ids."""


class EngineTables(Protocol):
    """An engine that makes all tables itself, from all findings, where a result lists only some."""

    def pieces(self, writer: TableWriter, batches: BatchWriter | None) -> Iterator[Piece]:
        """Yield all tables in pieces, the rows of each in order."""

    def write_to(
        self, url: str, manifest: Mapping[str, object], writer: TableWriter, batches: BatchWriter | None
    ) -> str:
        """Write all tables to `url`, and return the run's id."""


def _no_names(wanted: Collection[int] | None) -> Mapping[int, str]:  # noqa: ARG001 - no names are known
    return {}


class RecordedScan(Struct, frozen=True):
    """A scan whose producers' histories can be written afterwards, with the findings that are reported."""

    result: ScanResult
    write_histories: Callable[[HistoryWriter, Sequence[Finding]], Iterator[Piece]]
    write_batches: Callable[[BatchWriter], Iterator[Piece]]
    """Reads everything once more, for a row of each batch."""
    high_watermarks: Callable[[], Mapping[tuple[str, int, str], int]] = dict
    """Returns what replication-offset-checkpoint says, by topic, partition and replica."""
    transactional_ids: Callable[[Collection[int] | None], Mapping[int, str]] = _no_names
    """Reads the transactional ids that __transaction_state names of these producer ids, of all if None."""
    tables: EngineTables | None = None
