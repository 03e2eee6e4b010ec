"""What Spark's tasks do with a log until its partitions are replayed: Arrow batches in, Arrow batches out.

Rows of CHUNKS say which partitions there are and what reading their ranges gave. They are shuffled by partition replica, sorted, and
replayed; what comes of that are rows of STEPS. The command line and the functions of kaudit.spark use the same rows and functions.
Workers import this module by name, so kaudit must be installed where they run (`kaudit spark-bundle`).
"""

import gc
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import Any, TypeVar

import pyarrow as pa
import zstandard
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
from kaudit.reading.chunk_codec import pack_chunk, unpack_chunk
from kaudit.reading.chunk_plan import ChunkSpec, OpenSource, cut
from kaudit.reading.chunk_rows import Outcome
from kaudit.reading.range_joining import join_ranges
from kaudit.reading.range_reader import read_planned
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.reading.unread_segments import Failure
from kaudit.source.layout import PartitionDirectory

Work = TypeVar("Work")
Batches = Iterator[pa.RecordBatch]
ArrowMap = Callable[[Batches], Batches]

CHUNKS = "shuffle_partition int, job_index int, kind int, segment_number int, place long, ranges int, data binary"
"""The header of each partition replica, and what reading its ranges gave: `place` ascends within a segment, `ranges` is their number."""
HEADER, CHUNK = range(2)
"""Kinds of these rows, in the order of a partition's rows."""
CHUNK_ORDER = ("job_index", "kind", "segment_number", "place")
"""What the rows of a replaying task are sorted by."""
STEPS = "shard int, job_index int, kind int, data binary, audit binary, kept binary"
"""What comes of partitions. Shard 0 is what all partitions together show, a topic partition has one of the others."""
SCAN_WIDE = 0
WHOLE = -1
"""The job index of rows about the whole scan, before those of all partitions."""
PLANNED, OUTLINE, LEFT_OUT, EVIDENCE, AUDIT, RESULT, GROUPS, INCIDENTS, FINDINGS = range(9)
"""Kinds of these rows."""
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
    return pa.RecordBatch.from_arrays(list(map(_cell, schema.types, chain(values, repeat(None)))), schema=schema)


def _cell(kind: pa.DataType, value: Any) -> pa.Array:  # noqa: ANN401 - of that type
    """Return an array of one value, made of its bytes: pyarrow imports pandas, a second for each worker, to look at Python objects."""
    if value is None:
        return pa.nulls(1, kind)
    if pa.types.is_integer(kind):
        return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(_native(value, kind.bit_width))])
    data = value.encode() if isinstance(value, str) else value
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(4) + _native(len(data), 32)), pa.py_buffer(data)])


def _native(number: int, bits: int) -> bytes:
    return number.to_bytes(bits // 8, sys.byteorder, signed=True)


def packed(value: object) -> bytes:
    """Pack any value for another process of the same run; `shuffle_codec.pack` makes less of what is tables."""
    return zstandard.ZstdCompressor(level=1).compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def unpacked(data: bytes) -> Any:  # noqa: ANN401 - what was packed
    """Return what `packed` made bytes of."""
    return pickle.loads(zstandard.ZstdDecompressor().decompress(data))  # noqa: S301 - what kaudit's own process has made


def step(shard: int, job_index: int, kind: int, value: object = None) -> pa.RecordBatch:
    """Return one row of STEPS."""
    return row(STEPS, shard, job_index, kind, packed(value))


def shards_of(directories: Sequence[PartitionDirectory], shards: int) -> list[int]:
    """Return the shard of each partition replica, 1 to `shards`: neighbours together, by bytes, in the order of findings."""
    total = sum(directory.bytes for directory in directories) + len(directories)
    found: list[int] = []
    before, last = 0, None
    for directory in directories:
        key = directory.topic, directory.partition
        found.append(found[-1] if key == last else 1 + before * shards // total)
        before, last = before + directory.bytes + 1, key
    return found


@cache
def prepare_worker() -> None:
    """Keep freed memory; in a worker of Spark, leave what it has imported by now out of garbage collections.

    Spark's daemon collects after every task, which takes 45 ms with pyarrow, pandas and kaudit imported: more than
    reading 128 MiB. Collections within a task would take as long as making its findings: there are as few as in a command.
    """
    keep_freed_memory()
    if TaskContext.get() is not None:
        gc.freeze()
        gc.set_threshold(500_000, 2, 2)


def cells(rows: Batches, *names: str) -> Iterator[list[Any]]:
    """Yield these columns of rows as Python values, row by row; a column that is not there is null."""
    for batch in rows:
        absent = pa.nulls(batch.num_rows)
        columns = [batch.column(name) if name in batch.schema.names else absent for name in names]
        for at in range(batch.num_rows):
            yield [column[at].as_py() for column in columns]


def works_of(rows: Batches, kind: type[Work]) -> Iterator[Work]:
    """Yield the works of rows of `work_frame`, which are of this type."""
    return (unpack(data, kind) for (data,) in cells(rows, "work"))


def answering(questions: Batches, answer: Callable[[Any], object]) -> Batches:
    """Answer each row's question; one row out for one row in."""
    prepare_worker()
    for number, question in cells(questions, "number", "question"):
        yield row(ANSWERS, number, packed(answer(unpacked(question))))


ANSWERS = "number long, answer binary"


class PartitionHeader(Struct, frozen=True):
    """A partition replica to be replayed, and how many ranges of it will come."""

    job_index: int
    job: Job
    ranges: int = 0
    shard: int = 1


class ByteRangeTask(Struct, frozen=True):
    """Ranges of one segment that lie side by side; `number` is the first one's place in the partition's order.

    `snapshot_offsets`: those of the segment's producer snapshots, ascending.
    """

    job_index: int
    shuffle_partition: int
    number: int
    spec: ChunkSpec
    chunk_bytes: int
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


def reading(plan: Batches, open_source: OpenSource, retries: int, count: Count | None) -> Batches:
    """Read, verify and compress the ranges of each row's work; yield rows of CHUNKS.

    A task that cannot read a file that is still there fails, `retries` times; then the range counts as unreadable. `count` is
    called with what each range gave.
    """
    prepare_worker()
    may_fail = _attempt() < retries
    for work in works_of(plan, ReadTask):
        yield from read_task(work, open_source, count, may_fail=may_fail)


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
        yield row(CHUNKS, shuffle_partition, header.job_index, HEADER, -1, -1, 0, pack(header))
    for task in work.byte_ranges:
        read = partial(_outcomes, open_source=open_source, count=count, may_fail=may_fail)
        number, mine = task.number, (task.shuffle_partition, task.job_index)
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


def replay(rows: Batches, keeps: Rows, open_source: OpenSource) -> Batches:
    """Replay partitions from rows of CHUNKS, sorted by CHUNK_ORDER; yield STEPS. What must be read twice is read here too."""
    prepare_worker()
    for job_index, same in groupby(cells(rows, "job_index", "kind", "ranges", "data"), key=itemgetter(0)):
        own = iter(same)
        _, kind, _, packed = next(own)
        assert kind == HEADER, f"job {job_index}: ranges came before their partition was opened"
        header = unpack(packed, PartitionHeader)
        sink = keeps.make_sink()
        feed = PartitionAssembler(header.job, sink, open_source)
        missing = header.ranges
        for *_, ranges, data in own:
            for outcome in unpack_chunk(data):
                feed.take(outcome)
            missing -= ranges
        assert missing == 0, f"job {job_index}: {missing} ranges did not arrive"
        yield from steps_of(header, Replayed(feed.close()), keeps, sink, open_source)


def steps_of(
    header: PartitionHeader, replayed: Replayed, keeps: Rows, sink: RowSink | None, open_source: OpenSource
) -> Batches:
    """Yield the outline of a partition that was replayed, and its audit with what is kept of it."""
    part = replayed.partition
    find_repeats(part, open_source)
    yield step(SCAN_WIDE, header.job_index, OUTLINE, part.outline())
    kept = pack(keeps.seal(part, sink))
    for start in range(0, len(kept), _SLICE_BYTES):
        audit = None if start else pack(replayed)
        yield row(STEPS, header.shard, header.job_index, AUDIT, None, audit, kept[start : start + _SLICE_BYTES])
