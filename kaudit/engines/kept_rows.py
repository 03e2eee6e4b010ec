"""The rows that commands beside `scan` keep of each partition, and what the local engine makes of them. Imported on demand."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kaudit.engines.rows import InMemory, Rows, sink_itself
from kaudit.errors import UsageError
from kaudit.listings.producer_histories import HistoryRows, HistoryWriter, PartitionHistory, Piece, RecordedScan
from kaudit.listings.query import Query
from kaudit.listings.timeline import build_timelines, by_replica
from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.batch_export import BatchWriter, segment_tasks, write_segment
from kaudit.partition.replay import KeptRows
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.scanning.audit import Audit
from kaudit.scanning.plan import audit_needs, plan_jobs
from kaudit.scanning.versions import newest_profile
from kaudit.source.schemes import open_segment

if TYPE_CHECKING:
    from kaudit.listings.producer_listing import ListedProducers

__all__ = [
    "ACTIVITY",
    "HISTORIES",
    "build_timelines",
    "listed_producers",
    "recorded",
    "runs_of",
]


class HistoryFiles:
    """Keeps the histories of each partition in a temporary file: no process holds more than one partition's.

    Raises UsageError where there is no directory for them.
    """

    def __init__(self, stack: ExitStack) -> None:
        try:
            tempfile.gettempdir()
        except FileNotFoundError as error:
            raise UsageError(f"{error.strerror}: TMPDIR names another") from error
        self._directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kaudit-")))
        self._files: list[Path] = []

    def take(self, partition: PartitionAudit, kept: HistoryRows) -> None:
        """Write the histories, without the evidence of findings: the audit goes on with that."""
        bare = replace(partition, observations=(), suspects=(), shared=(), damages=())
        self._files.append(self._directory / str(len(self._files)))
        self._files[-1].write_bytes(pack(PartitionHistory.of(bare, kept)))

    def __iter__(self) -> Iterator[PartitionHistory]:
        """Read the histories."""
        return (unpack(file.read_bytes(), PartitionHistory) for file in self._files)


class _Activity(InMemory):
    """Keeps the activity of each partition: what else its sink refers to takes three times as much."""

    def take(self, _: PartitionAudit, sink: Any) -> None:  # noqa: ANN401 - HistoryRows
        super().take(_, sink.activity)


def _activity() -> HistoryRows:
    return HistoryRows(KeptRows(frozenset()))


ACTIVITY = Rows(_activity, PartitionHistory, PartitionHistory.of, _Activity, every_id=True)
"""For a list of producer ids: what each of them did in each partition."""
HISTORIES = Rows(HistoryRows, PartitionHistory, PartitionHistory.of, HistoryFiles)
"""For tables: runs, markers and activity of all producer ids."""


def runs_of(producer_ids: Sequence[int]) -> Rows:
    """Keep runs and markers for timelines of these producer ids, of all if there are none."""
    return Rows(partial(KeptRows, frozenset(producer_ids) or None), KeptRows, sink_itself)


def listed_producers(audit: Audit, kept: Iterable[Any], query: Query) -> "ListedProducers":
    """List the producer ids of partitions of which ACTIVITY was kept."""
    from kaudit.listings.producer_listing import ListedProducers, list_producers  # noqa: PLC0415 - 20 ms, and timelines need none

    return ListedProducers(list_producers(audit, list(kept), query))


def recorded(audit: Audit, result: ScanResult, kept: Iterable[PartitionHistory]) -> RecordedScan:
    """Return a scan with what writes its tables, of the HISTORIES that were kept."""

    def write_histories(writer: HistoryWriter, findings: Sequence[Finding]) -> Iterator[Piece]:
        own, newest = by_replica(findings), newest_profile(result.broker_version)
        for history in kept:
            yield from writer(history, own.get(history.key, ()), newest)

    def write_batches(writer: BatchWriter) -> Iterator[Piece]:
        jobs = plan_jobs(audit.options, audit.layout, audit_needs(audit.options, audit.layout, audit.histories))
        for task in segment_tasks(jobs, result.not_audited):
            yield from write_segment(task, open_segment, writer)

    return RecordedScan(result, write_histories, write_batches, audit.high_watermarks, audit.transactional_ids)
