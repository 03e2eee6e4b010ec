"""What runs in Spark's tasks: Arrow batches in, Arrow batches out. Needs pyarrow, not pyspark.

Workers import this module by name, so kaudit must be installed where they run (`kaudit spark-bundle`).
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
from msgspec import Struct

from kaudit import __version__
from kaudit.analysis.scan.batch_export import BatchWriter, SegmentTask, write_segment
from kaudit.analysis.scan.chunk_plan import ChunkSpec, OpenSource, cut
from kaudit.analysis.scan.partition_assembler import PartitionAssembler, read_planned
from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.analysis.scan.partition_replay import RowSink
from kaudit.analysis.scan.planning import Job
from kaudit.analysis.scan.shuffle_codec import pack, unpack
from kaudit.analysis.timelines.producer_histories import HistoryWriter, Piece
from kaudit.engines.memory import keep_freed_memory
from kaudit.model.finding import Finding
from kaudit.source.layout import SegmentFile

ROWS_SCHEMA = "shuffle_partition int, job_index int, number long, rows binary"
PROBE_SCHEMA = "path string, reason string"
AUDIT_SCHEMA = "job_index int, audit binary, kept binary"
PIECES_SCHEMA = "output_batch int, job_index int, number long, table string, data binary"
_ROWS = pa.schema(
    [("shuffle_partition", pa.int32()), ("job_index", pa.int32()), ("number", pa.int64()), ("rows", pa.binary())]
)
_PROBE = pa.schema([("path", pa.string()), ("reason", pa.string())])
_AUDIT = pa.schema([("job_index", pa.int32()), ("audit", pa.binary()), ("kept", pa.binary())])
_PIECES = pa.schema(
    [
        ("output_batch", pa.int32()),
        ("job_index", pa.int32()),
        ("number", pa.int64()),
        ("table", pa.string()),
        ("data", pa.binary()),
    ]
)
_HEADER_NUMBER = -1
"""Number of a partition's header row: it sorts before its ranges."""
_SLICE_BYTES = 256 << 20
"""What is kept of a large partition goes in slices: a row of Spark holds 2 GiB at most."""

Batches = Iterator[pa.RecordBatch]
ArrowMap = Callable[[Batches], Batches]
Seal = Callable[[PartitionAudit, Any], Any]
"""Makes of a partition and what took its rows what is kept of them."""


class PartitionHeader(Struct, frozen=True):
    """A partition replica to be replayed: what it is, and how many ranges will come."""

    job: Job
    ranges: int


class ByteRangeTask(Struct, frozen=True):
    """Ranges of one segment that lie side by side; `number` is the first one's place in the partition's order."""

    job_index: int
    shuffle_partition: int
    number: int
    spec: ChunkSpec
    chunk_bytes: int


class ReadTask(Struct):
    """What one reading task does: byte ranges to read, and the partitions that begin with them."""

    byte_ranges: list[ByteRangeTask]
    headers: list[tuple[int, int, PartitionHeader]]
    """(job_index, shuffle_partition, header)"""
    version: str = __version__


class VersionMismatchError(RuntimeError):
    """Driver and workers run different kaudits: what one packs the other may misread."""


def probing(open_source: OpenSource) -> ArrowMap:
    """Return the function that opens each row's segment, and yields those that cannot be opened, with the reason."""

    def probe(segments: Batches) -> Batches:
        for batch in segments:
            for data in batch.column("segment"):
                segment: SegmentFile = unpack(data.as_py())
                try:
                    open_source(segment).close()
                except OSError as error:
                    reason = error.strerror or type(error).__name__
                    yield pa.RecordBatch.from_pylist([{"path": segment.path, "reason": reason}], _PROBE)

    return probe


def reading(open_source: OpenSource) -> ArrowMap:
    """Return the function that reads, verifies and compresses the ranges of each row's work.

    One row out per range, one more per partition.
    """

    def read(plan: Batches) -> Batches:
        keep_freed_memory()
        for batch in plan:
            for data in batch.column("work"):
                work: ReadTask = unpack(data.as_py())
                if work.version != __version__:
                    raise VersionMismatchError(f"the driver runs kaudit {work.version}, this worker {__version__}")
                for job_index, shuffle_partition, header in work.headers:
                    yield _row(shuffle_partition, job_index, _HEADER_NUMBER, pack(header))
                for task in work.byte_ranges:
                    for number, spec in enumerate(cut(task.spec, task.chunk_bytes), task.number):
                        outcomes = read_planned(spec, open_source=open_source)
                        yield _row(task.shuffle_partition, task.job_index, number, pack(outcomes))

    return read


def _row(shuffle_partition: int, job_index: int, number: int, rows: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"shuffle_partition": shuffle_partition, "job_index": job_index, "number": number, "rows": rows}], _ROWS
    )


def replayer(make_sink: Callable[[], RowSink | None], seal: Seal, open_source: OpenSource) -> ArrowMap:
    """Return the function that replays partitions from rows sorted by job index and number.

    `make_sink` is asked for each partition what takes its rows beside the audit; what `seal` makes of that comes along.
    """

    def replay(rows: Batches) -> Batches:
        feed, job_index, expected = None, -1, 0
        for batch in rows:
            for at in range(batch.num_rows):
                number, data = batch.column("number")[at].as_py(), batch.column("rows")[at].as_py()
                if number == _HEADER_NUMBER:
                    if feed is not None:
                        yield from _close(feed, job_index, expected, seal)
                    header: PartitionHeader = unpack(data)
                    job_index, expected = batch.column("job_index")[at].as_py(), header.ranges
                    feed = PartitionAssembler(header.job, make_sink(), open_source)
                else:
                    assert feed is not None, f"job {job_index}: a range came before its partition was opened"
                    for outcome in unpack(data):
                        feed.take(outcome)
                    expected -= 1
        if feed is not None:
            yield from _close(feed, job_index, expected, seal)

    return replay


def _close(feed: PartitionAssembler, job_index: int, missing: int, seal: Seal) -> Batches:
    assert missing == 0, f"job {job_index}: {missing} ranges did not arrive"
    audit = feed.close()
    kept = pack(seal(audit, feed.kept))
    for start in range(0, len(kept), _SLICE_BYTES):
        row = {
            "job_index": job_index,
            "audit": None if start else pack(audit),
            "kept": kept[start : start + _SLICE_BYTES],
        }
        yield pa.RecordBatch.from_pylist([row], _AUDIT)


def whole(slices: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Any]]:
    """Put together what was kept of each job; slices of one follow each other."""
    for job_index, own in groupby(slices, key=operator.itemgetter(0)):
        yield job_index, unpack(b"".join(data for _, data in own))


class OutputBatches(Struct, frozen=True):
    """Items 0 to `items` in at most `most` batches of neighbours, each as much as the driver takes at once."""

    items: int
    most: int

    @property
    def count(self) -> int:
        """How many batches there are."""
        return max(min(self.items, self.most), 1)

    def of(self, job_index: int) -> int:
        """Return the batch of an item."""
        return job_index * self.count // max(self.items, 1)


def history_writing(
    writer: HistoryWriter, findings: Mapping[int, bytes], output_batches: OutputBatches, *, remembers_markers: bool
) -> ArrowMap:
    """Return the function that turns histories into pieces of tables. `findings` by job index, packed."""

    def write_histories(histories: Batches) -> Batches:
        slices = (
            (batch.column("job_index")[at].as_py(), batch.column("kept")[at].as_py())
            for batch in histories
            for at in range(batch.num_rows)
        )
        for job_index, history in whole(slices):
            own: Sequence[Finding] = unpack(findings[job_index]) if job_index in findings else ()
            yield from _pieces(output_batches.of(job_index), job_index, writer(history, own, remembers_markers))

    return write_histories


def batch_writing(writer: BatchWriter, output_batches: OutputBatches, open_source: OpenSource) -> ArrowMap:
    """Return the function that reads segments and turns their batches into pieces of a table."""

    def write_histories(segments: Batches) -> Batches:
        for batch in segments:
            for data in batch.column("work"):
                task: SegmentTask = unpack(data.as_py())
                yield from _pieces(
                    output_batches.of(task.number), task.number, write_segment(task, open_source, writer)
                )

    return write_histories


def _pieces(output_batch: int, job_index: int, pieces: Iterable[Piece]) -> Batches:
    for number, (table, data) in enumerate(pieces):
        row = {"output_batch": output_batch, "job_index": job_index, "number": number, "table": table, "data": data}
        yield pa.RecordBatch.from_pylist([row], _PIECES)
