"""Plans and reads Kafka logs for Spark: a reader shares the input in parts on the driver, and reads each part in a task."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from kaudit.broker.releases.profile import Profile
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.listings.producer_histories import PartitionHistory, Piece
from kaudit.model.batch import Batches, concatenate, first_timestamps, last_offsets
from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.range_reader import read_range
from kaudit.reading.segment import ByteRange
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.reading.unread_segments import Failure, require_whole
from kaudit.report.machine.parquet import table_to_ipc
from kaudit.scanning.plan import find_input
from kaudit.source.bytes import ByteSource
from kaudit.source.schemes import open_segment
from kaudit.spark.comparisons import DedupReader, DiffReader, LedgerReader
from kaudit.spark.composition import history_rows, incomplete, require_complete
from kaudit.spark.finding_rows import Stamp
from kaudit.spark.options import COMPARED, RESULTS, ReadOptions, read_options
from kaudit.spark.plan import Chosen, SegmentRead, chosen_by, segment_reads
from kaudit.spark.record_rows import record_rows
from kaudit.spark.rows import batch_rows, run_rows
from kaudit.spark.tasks import prepare_worker

_ROWS_AT_ONCE = 1 << 16


class ResultReader:
    """Audits with the local engine, in one task. What cannot be read is an error, unless the options allow it."""

    def __init__(self, table: str, options: ReadOptions) -> None:
        self.table = table
        self.options = options

    def parts(self) -> list[bytes]:
        """Return the one task; a path that is not there is said before it starts."""
        find_input(self.options.scan_options())
        return [b""]

    def read(self, part: bytes) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - there is one
        """Audit and yield the rows."""
        asked = self.options.scan_options(since=self.options.since, until=self.options.until, jobs=1)
        if self.table == "findings":
            result = self._required(local.scan(asked, SilentProgress()))
            yield from Stamp().rows(result.findings)
            return
        with local.record(asked, SilentProgress()) as recorded:
            result = self._required(recorded.result)
            for _, stream in recorded.write_histories(self._pieces, result.findings):
                yield from pa.ipc.open_stream(stream)

    def _required(self, result: ScanResult) -> ScanResult:
        return result if self.options.allow_incomplete else require_complete(result)

    def _pieces(
        self,
        history: PartitionHistory,
        findings: Sequence[Finding],
        newest: Profile,
    ) -> Iterator[Piece]:
        for rows in history_rows(self.table, history, findings, newest=newest):
            yield self.table, table_to_ipc(pa.Table.from_batches([rows]))


class SegmentReader:
    """Lists the input and shares the segments among tasks, where Spark plans; reads them in tasks."""

    def __init__(self, table: str, options: ReadOptions) -> None:
        self.table = table
        self.options = options
        self.chosen = chosen_by(options)

    def choose(self, chosen: Chosen) -> None:
        """Read only what is chosen; a task skips a segment by its time index where the options say so."""
        self.chosen = chosen
        if chosen.since is not None:
            self.options = replace(self.options, since=chosen.since)

    def parts(self) -> list[bytes]:
        """Return what each task reads: the driver keeps some 100 bytes a segment.

        Raises:
            UnreadableInputError: not all of the input could be listed, and the options do not allow that.

        """
        layout, reads = segment_reads(self.options, self.chosen)
        if layout.unreadable and not self.options.allow_incomplete:
            raise incomplete(layout.unreadable)
        return [pack(group) for group in reads]

    def read(self, part: bytes) -> Iterator[pa.RecordBatch]:
        """Read the segments of a task."""
        prepare_worker()
        for read in unpack(part, list[SegmentRead]):
            yield from READERS[self.table](read, self.options)


Reader = ResultReader | SegmentReader | DiffReader | DedupReader | LedgerReader
_COMPARING: Mapping[str, Callable[[ReadOptions], Reader]] = {
    "diff": DiffReader,
    "dedup": DedupReader,
    "ledger": LedgerReader,
}


def reader_of(table: str, given: Mapping[str, Any]) -> Reader:
    """Return what plans and reads a table: batches, runs, records, findings, timelines, producers, diff, dedup or ledger. Raises UsageError."""
    if table in READERS:
        return SegmentReader(table, read_options(given))
    if table in _COMPARING:
        return _COMPARING[table](read_options(given, COMPARED[table]))
    return ResultReader(table, read_options(given, RESULTS))


def read_parts(batches: Iterable[pa.RecordBatch], reader: Reader) -> Iterator[pa.RecordBatch]:
    """Read the parts of a column `work` in a task."""
    for part in (part for batch in batches for part in batch.column("work")):
        yield from reader.read(part.as_py())


def read_batches(read: SegmentRead, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield a segment's valid batches. Raises OSError: Spark tries the task again, and says why the last attempt failed."""
    for _, batches in _pieces(read, options):
        yield batch_rows(read.task, batches, options.origin)


def read_records(read: SegmentRead, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield a segment's records of data, decompressed. Raises as `read_batches` does."""
    for source, batches in _pieces(read, options):
        yield from record_rows(read.task, source, batches, options)


def read_runs(read: SegmentRead, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield a segment's runs, markers and chunk. A file that cannot be read is a chunk too, if the options allow that.

    Raises:
        UnreadableInputError: it cannot be read, and the options do not allow that.

    """
    if options.since is not None and read.ends_before(options.since):
        return
    outcome = read_range(read.task.spec)
    if isinstance(outcome, Failure) and not options.allow_incomplete:
        raise incomplete([outcome])
    yield run_rows(read.task, [outcome], options.origin)


READERS: Mapping[str, Callable[[SegmentRead, ReadOptions], Iterator[pa.RecordBatch]]] = {
    "batches": read_batches,
    "runs": read_runs,
    "records": read_records,
}


def _pieces(read: SegmentRead, options: ReadOptions) -> Iterator[tuple[ByteSource, Batches]]:
    """Yield the batches asked for, some ten thousand at a time, with the source that they are read from."""
    if options.since is not None and read.ends_before(options.since):
        return
    spec = read.task.spec
    where = ByteRange(spec.start, spec.stop, spec.end)
    held: list[Batches] = []
    count = 0
    with closing(open_segment(spec.file)) as source:
        for piece in stream_batches(source, where, expected_offset=spec.file.base_offset, verify=spec.verify):
            held.append(_wanted(piece.batches, options))
            count += len(held[-1])
            if count >= _ROWS_AT_ONCE:
                yield source, concatenate(held)
                held, count = [], 0
        require_whole(spec.file, source)
        if count:
            yield source, concatenate(held)


def _wanted(batches: Batches, options: ReadOptions) -> Batches:
    """Leave the batches that overlap the offsets and times asked for."""
    bounds = (options.first_offset, options.last_offset, options.since, options.until)
    if bounds == (None, None, None, None) or not len(batches):
        return batches
    chosen = np.ones(len(batches), dtype=bool)
    if options.first_offset is not None:
        chosen &= last_offsets(batches) >= options.first_offset
    if options.last_offset is not None:
        chosen &= batches["base_offset"] <= options.last_offset
    if options.since is not None:
        chosen &= batches["max_timestamp"] >= options.since
    if options.until is not None:
        firsts = first_timestamps(batches)
        chosen &= np.where(firsts < 0, batches["max_timestamp"], firsts) <= options.until
    return batches[chosen]
