"""What tasks make of a partition's rows: what is judged of it, its timelines, its producers."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kaudit.broker.releases.profile import Profile
from kaudit.listings.producer_histories import HistoryRows, PartitionHistory
from kaudit.model.finding import Finding
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.report.machine.streamed_tables import producer_table_rows, timeline_table_rows
from kaudit.spark.assembling import JOB, KEY, Part, assemble, parts
from kaudit.spark.judging import Judged, row
from kaudit.spark.schemas import to_batches


def assembled_rows(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Put partitions together, and yield what is kept of each."""
    for part in parts(rows):
        assembled = assemble(part, None)
        if assembled is not None:
            directory = part.job.directory
            yield row(tuple(getattr(directory, name) for name in KEY), JOB, pack(assembled))


def history_rows(
    table: str, history: PartitionHistory, findings: Sequence[Finding], *, newest: Profile
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `timelines` or `producers` of one partition replica, `findings` being its own."""
    if table == "timelines":
        return to_batches(table, timeline_table_rows(history, findings))
    return to_batches(table, producer_table_rows(history, findings, newest=newest))


def rows_of_histories(rows: Iterator[pa.RecordBatch], table: str) -> Iterator[pa.RecordBatch]:
    """Put partitions together once more, and yield their rows of `timelines` or `producers`."""
    for history, judged in _histories(rows):
        yield from history_rows(table, history, judged.findings, newest=judged.newest)


def _histories(rows: Iterator[pa.RecordBatch]) -> Iterator[tuple[PartitionHistory, Judged]]:
    for part in parts(rows):
        history = _history(part)
        if history is not None:
            yield history


def _history(part: Part) -> tuple[PartitionHistory, Judged] | None:
    kept = HistoryRows()
    assembled = assemble(part, kept)
    if assembled is None or part.judged is None:
        return None
    return PartitionHistory.of(assembled.partition, kept), unpack(part.judged)
