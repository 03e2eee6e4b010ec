"""What Spark's tasks do with a log until its partitions are replayed: Arrow batches in, Arrow batches out.

Rows of CHUNKS say which partitions there are and what reading their ranges gave. They are shuffled by partition replica, sorted, and
replayed; what comes of that are rows of STEPS. The command line and the functions of kaudit.spark use the same rows and functions.
Workers import this module by name, so kaudit must be installed where they run (`kaudit spark-bundle`).
"""

import gc
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from itertools import chain, groupby
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec import Struct
from pyspark import TaskContext

from kaudit import __version__
from kaudit.engines.memory import keep_freed_memory
from kaudit.engines.rows import Rows
from kaudit.partition.assembler import PartitionAssembler
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.find_repeats import find_repeats
from kaudit.partition.job import Job
from kaudit.partition.replay import RowSink
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_codec import pack_chunk, unpack_chunk
from kaudit.reading.chunk_plan import ChunkSpec, OpenSource, cut
from kaudit.reading.chunk_rows import ChunkRows, Outcome
from kaudit.reading.range_joining import join_ranges
from kaudit.reading.range_reader import read_planned, read_range
from kaudit.reading.segment import ByteRange
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.reading.unread_segments import Failure
from kaudit.source.layout import PartitionDirectory
from kaudit.spark.schemas import unplanned

Batches = Iterator[pa.RecordBatch]
ArrowMap = Callable[[Batches], Batches]

KEY = ("topic", "partition", "replica")
CHUNKS = (
    "shuffle_partition int, job_index int, topic string, partition int, replica string, kind int, segment_number int, "
    "place long, ranges int, data binary"
)
"""The layout of the input, the header of each partition replica, and what reading its ranges gave.

`place` ascends within a segment, `ranges` is the number of ranges in a row. Chunks of the DataFrame `runs` know neither
`shuffle_partition` nor `job_index`.
"""
LAYOUT, HEADER, CHUNK = range(3)
"""Kinds of these rows, in the order of a partition's rows."""
CHUNK_ORDER = ("kind", "segment_number", "place")
"""What a partition's rows are sorted by."""
STEPS = "shard int, job_index int, kind int, data binary, audit binary, kept binary"
"""What comes of partitions. Shard 0 is what all partitions together show, a topic partition has one of the others."""
SCAN_WIDE, SHARDS = 0, 256
WHOLE = -1
"""The job index of rows about the whole scan, before those of all partitions."""
OUTLINE, LEFT_OUT, EVIDENCE, AUDIT, RESULT, FINDINGS = range(1, 7)
"""Kinds of these rows; LAYOUT is one more."""
_SLICE_BYTES = 256 << 20
"""What is kept of a large partition goes in slices: a row of Spark holds 2 GiB at most."""
_ARROW_TYPES = {"int": pa.int32(), "long": pa.int64(), "string": pa.string(), "binary": pa.binary()}


@cache
def arrow_schema(columns: str) -> pa.Schema:
    """Return what Spark writes as `name type, name type` as an Arrow schema."""
    return pa.schema([(name, _ARROW_TYPES[kind]) for name, kind in (column.split() for column in columns.split(", "))])


def row(columns: str, *values: object) -> pa.RecordBatch:
    """Return one row of these columns; those that have no value are null."""
    schema = arrow_schema(columns)
    return pa.RecordBatch.from_pylist([dict(zip(schema.names, values, strict=False))], schema)


def step(shard: int, job_index: int, kind: int, value: object = None) -> pa.RecordBatch:
    """Return one row of STEPS."""
    return row(STEPS, shard, job_index, kind, pack(value))


def shard_of(directory: PartitionDirectory) -> int:
    """Return the shard of a topic partition."""
    return 1 + zlib.crc32(f"{directory.topic}-{directory.partition}".encode()) % SHARDS


@cache
def prepare_worker() -> None:
    """Keep freed memory; in a worker of Spark, leave what it has imported by now out of garbage collections.

    Spark's daemon collects after every task, which takes 45 ms with pyarrow, pandas and kaudit imported: more than
    reading 128 MiB.
    """
    keep_freed_memory()
    if TaskContext.get() is not None:
        gc.freeze()


def answering(questions: Batches, answer: Callable[[Any], object], kind: type[Any]) -> Batches:
    """Answer each row's question, which is of type `kind`; one row out for one row in."""
    prepare_worker()
    for batch in questions:
        for number, data in zip(batch.column("number"), batch.column("question"), strict=True):
            yield row(ANSWERS, number.as_py(), pack(answer(unpack(data.as_py(), kind))))


ANSWERS = "number long, answer binary"


class PartitionHeader(Struct, frozen=True):
    """A partition replica to be replayed, and how many ranges of it will come; None: whatever a filter has left."""

    job_index: int
    job: Job
    ranges: int | None


class ByteRangeTask(Struct, frozen=True):
    """Ranges of one segment that lie side by side; `number` is the first one's place in the partition's order.

    `snapshot_offsets`: those of the segment's producer snapshots, ascending.
    """

    job_index: int
    shuffle_partition: int
    number: int
    spec: ChunkSpec
    chunk_bytes: int
    key: tuple[str, int, str]
    snapshot_offsets: Sequence[int] = ()


class ReadTask(Struct):
    """What one reading task does: byte ranges to read, and the partitions that begin with them."""

    byte_ranges: list[ByteRangeTask]
    headers: list[tuple[int, PartitionHeader]]
    """Shuffle partition and header."""
    version: str = __version__


class VersionMismatchError(RuntimeError):
    """Driver and workers run different kaudits: what one packs the other may misread."""


class TransientReadError(OSError):
    """A range could not be read: Spark is to try the task again, elsewhere perhaps, before that counts."""


Count = Callable[[Sequence[Outcome]], None]


def reading(plan: Batches, open_source: OpenSource, retries: int, count: Count) -> Batches:
    """Read, verify and compress the ranges of each row's work; yield rows of CHUNKS.

    A task that cannot read a file that is still there fails, `retries` times; then the range counts as unreadable. `count` is
    called with what each range gave.
    """
    prepare_worker()
    may_fail = _attempt() < retries
    for batch in plan:
        for data in batch.column("work"):
            yield from read_task(unpack(data.as_py(), ReadTask), open_source, count, may_fail=may_fail)


def read_task(
    work: ReadTask, open_source: OpenSource, count: Count | None = None, *, may_fail: bool = False
) -> Batches:
    """Yield the headers of partitions, and a row per range, or per series of ranges whose rows could be joined.

    Raises:
        VersionMismatchError: another kaudit has planned it.
        TransientReadError: a file that is still there cannot be read, and the task `may_fail`.

    """
    if work.version != __version__:
        raise VersionMismatchError(f"the driver runs kaudit {work.version}, this worker {__version__}")
    for shuffle_partition, header in work.headers:
        place = header.job.directory
        key = place.topic, place.partition, place.replica
        yield row(CHUNKS, shuffle_partition, header.job_index, *key, HEADER, -1, -1, 0, pack(header))
    for task in work.byte_ranges:
        read = partial(_outcomes, open_source=open_source, count=count, may_fail=may_fail)
        number, mine = task.number, (task.shuffle_partition, task.job_index, *task.key)
        for joined in join_ranges(map(read, cut(task.spec, task.chunk_bytes)), task.snapshot_offsets):
            yield row(CHUNKS, *mine, CHUNK, task.spec.segment, number, joined.ranges, pack_chunk(joined.outcomes))
            number += joined.ranges


def _outcomes(spec: ChunkSpec, open_source: OpenSource, count: Count | None, *, may_fail: bool) -> Sequence[Outcome]:
    outcomes = read_planned(spec, open_source=open_source)
    for outcome in outcomes if may_fail else ():
        if isinstance(outcome, Failure) and not outcome.vanished and outcome.log_start is None:
            raise TransientReadError(5, outcome.reason, outcome.path)
    if count is not None:
        count(outcomes)
    return outcomes


def _attempt() -> int:
    """Return how often the task has failed before."""
    task = TaskContext.get()
    return 0 if task is None else task.attemptNumber()


Intervals = Sequence[tuple[int, int]]
Given = Mapping[int, Intervals]
"""The bytes of each segment, by its number, that were among the rows where a filter left out others."""


class Replayed(Struct, frozen=True):
    """A partition that was replayed. `given` is None where nothing was left out of it."""

    partition: PartitionAudit
    given: Given | None = None


class Chunk(NamedTuple):
    """A row of CHUNKS, once it is known whose it is."""

    segment: int
    ranges: int | None
    data: bytes


def replay(rows: Batches, keeps: Rows, open_source: OpenSource, by: Sequence[str] = KEY) -> Batches:
    """Replay partitions from rows of CHUNKS, sorted by the columns `by`, which say whose they are, and CHUNK_ORDER; yield STEPS.

    What must be read twice of a partition is read here too.

    Raises:
        UsageError: rows are of a partition or a segment that was not planned: of another log, or the log has changed since.

    """
    prepare_worker()
    for _, own in groupby(chain.from_iterable(map(partial(_cells, by=by), rows)), key=lambda cells: cells[0]):
        key, kind, first = next(own)
        if kind == LAYOUT:
            yield row(STEPS, SCAN_WIDE, WHOLE, LAYOUT, first.data)
        elif kind == HEADER:
            yield from _replayed(
                unpack(first.data, PartitionHeader), (chunk for _, _, chunk in own), keeps, open_source
            )
        else:
            assert first.ranges is None, "ranges came before their partition was opened"
            raise unplanned("-".join(str(part) for part in key[:2]), f"({key[-1]})")


def _cells(batch: pa.RecordBatch, by: Sequence[str]) -> Iterator[tuple[list[object], int, Chunk]]:
    columns = [batch.column(name) for name in ("kind", "segment_number", "ranges", "data", *by)]
    for at in range(batch.num_rows):
        kind, segment, ranges, data, *key = (column[at].as_py() for column in columns)
        yield key, kind, Chunk(segment, ranges, data)


def _replayed(header: PartitionHeader, chunks: Iterator[Chunk], keeps: Rows, open_source: OpenSource) -> Batches:
    job, job_index, sink = header.job, header.job_index, keeps.make_sink()
    if header.ranges is None:
        replayed = replay_given(job, chunks, sink, open_source)
    else:
        feed = PartitionAssembler(job, sink, open_source)
        missing = header.ranges
        for chunk in chunks:
            for outcome in unpack_chunk(chunk.data):
                feed.take(outcome)
            missing -= chunk.ranges or 0
        assert missing == 0, f"job {job_index}: {missing} ranges did not arrive"
        replayed = Replayed(feed.close())
    if replayed is None:
        yield step(SCAN_WIDE, job_index, LEFT_OUT)
        return
    part = replayed.partition
    find_repeats(part, open_source)
    yield step(SCAN_WIDE, job_index, OUTLINE, part.outline())
    shard, kept = shard_of(job.directory), pack(keeps.seal(part, sink))
    for start in range(0, len(kept), _SLICE_BYTES):
        audit = None if start else pack(replayed)
        yield row(STEPS, shard, job_index, AUDIT, None, audit, kept[start : start + _SLICE_BYTES])


def replay_given(job: Job, chunks: Iterator[Chunk], sink: RowSink | None, open_source: OpenSource) -> Replayed | None:
    """Put a partition together; None where it has batches and no row of it was given: a filter left all of it out.

    The result is that of reading the whole partition: a segment of which not every byte is covered by chunks is read again.
    """
    feed = PartitionAssembler(job, sink, open_source)
    given: dict[int, Intervals] = {}
    left_out = False
    numbered = groupby(chunks, key=lambda chunk: chunk.segment)
    waiting = next(numbered, None)
    if waiting is None and job.in_pieces and _has_batches(job.plan, open_source):
        return None
    for spec in job.in_pieces:
        outcomes: list[Outcome] = []
        while waiting is not None and waiting[0] <= spec.segment:
            if waiting[0] == spec.segment:  # a lower number: of a segment that is empty now
                outcomes = _distinct(outcome for chunk in waiting[1] for outcome in unpack_chunk(chunk.data))
            waiting = next(numbered, None)
        given[spec.segment] = [(chunk.start, chunk.read_to) for chunk in outcomes if isinstance(chunk, ChunkRows)]
        if not _covers(spec, outcomes):
            before = _batches(outcomes)
            outcomes = [read_range(part, open_source=open_source) for part in cut(spec, job.chunk_bytes)]
            left_out = left_out or (spec.file.text is None and _batches(outcomes) > before)
        for outcome in outcomes:
            feed.take(outcome)
    if waiting is not None:
        raise unplanned(job.directory.name, f"segment {waiting[0]}")
    return Replayed(feed.close(), given if left_out else None)


def _distinct(outcomes: Iterator[Outcome]) -> list[Outcome]:
    """Return outcomes in the order of the file; of chunks that came twice one, failures last."""
    chunks: dict[tuple[int, int], ChunkRows] = {}
    failures: list[Failure] = []
    for outcome in outcomes:
        if isinstance(outcome, ChunkRows):
            known = chunks.setdefault((outcome.start, outcome.stop), outcome)
            if _content(known) != _content(outcome):
                raise unplanned(outcome.segment, f"bytes {outcome.start}..{outcome.stop}")
        else:
            failures.append(outcome)
    return [*(chunks[key] for key in sorted(chunks)), *failures]


def _content(chunk: ChunkRows) -> tuple[object, ...]:
    return chunk.first_offset, chunk.last_offset, chunk.counts.batches, chunk.counts.records, chunk.counts.max_timestamp


def _covers(spec: ChunkSpec, outcomes: Sequence[Outcome]) -> bool:
    """Return whether chunks hold every byte of a segment, read as it is asked for; a failure to read is an outcome too."""
    if any(isinstance(outcome, Failure) for outcome in outcomes):
        return True
    at = spec.start
    for chunk in outcomes:
        if not isinstance(chunk, ChunkRows) or chunk.start != at or chunk.stop != chunk.read_to:
            return False
        if chunk.decoded != spec.decode:
            return False
        at = chunk.read_to
    return bool(outcomes) and at == spec.stop


def _batches(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.counts.batches for outcome in outcomes if isinstance(outcome, ChunkRows))


def _has_batches(plan: Sequence[ChunkSpec], open_source: OpenSource) -> bool:
    """Return whether a partition has a valid batch; damage alone cannot have been filtered out."""
    for spec in plan:
        try:
            with closing(open_source(spec.file)) as source:
                where = ByteRange(spec.start, spec.stop, spec.end)
                for piece in stream_batches(source, where, expected_offset=spec.file.base_offset, verify=spec.verify):
                    if len(piece.batches):
                        return True
        except OSError:
            return False  # the audit says that it cannot be read
    return False
