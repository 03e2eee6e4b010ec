"""Reading and replaying in Spark's tasks: Arrow batches in, Arrow batches out. Needs pyarrow, not pyspark.

Workers import this module by name, so kaudit must be installed where they run (`kaudit spark-bundle`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

import pyarrow as pa
from msgspec import Struct

from kaudit import __version__
from kaudit.engines.memory import prepare_worker
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
from kaudit.source.layout import SegmentFile
from kaudit.source.schemes import open_segment

ROWS_SCHEMA = "shuffle_partition int, job_index int, number long, ranges int, rows binary"
AUDIT_SCHEMA = "job_index int, outline binary, audit binary, kept binary"
ANSWER_SCHEMA = "number long, answer binary"
_ROWS = pa.schema(
    [
        ("shuffle_partition", pa.int32()),
        ("job_index", pa.int32()),
        ("number", pa.int64()),
        ("ranges", pa.int32()),
        ("rows", pa.binary()),
    ]
)
_AUDIT = pa.schema([("job_index", pa.int32()), ("outline", pa.binary()), ("audit", pa.binary()), ("kept", pa.binary())])
_ANSWER = pa.schema([("number", pa.int64()), ("answer", pa.binary())])
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
    headers: list[tuple[int, int, PartitionHeader]]
    """(job_index, shuffle_partition, header)"""
    version: str = __version__


class VersionMismatchError(RuntimeError):
    """Driver and workers run different kaudits: what one packs the other may misread."""


def answering(answer: Callable[[Any], Any]) -> ArrowMap:
    """Return the function that answers each row's question; one row out for one row in."""

    def answer_all(questions: Batches) -> Batches:
        prepare_worker()
        for batch in questions:
            for number, data in zip(batch.column("number"), batch.column("question"), strict=True):
                row = {"number": number.as_py(), "answer": pack(answer(unpack(data.as_py())))}
                yield pa.RecordBatch.from_pylist([row], _ANSWER)

    return answer_all


def why_not_opened(segment: SegmentFile, open_source: OpenSource) -> str | None:
    """Return why a segment cannot be opened here, None where it can."""
    try:
        open_source(segment).close()
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


class TransientReadError(OSError):
    """A range could not be read: Spark is to try the task again, elsewhere perhaps, before that counts."""


def reading(open_source: OpenSource, retries: int, count: Callable[[Sequence[Outcome]], None]) -> ArrowMap:
    """Return the function that reads, verifies and compresses the ranges of each row's work.

    One row out per range, or per series of ranges whose rows could be joined, one more per partition. A task that cannot
    read a file that is still there fails, `retries` times; then the range counts as unreadable. `count` is called with
    what each range gave.
    """

    def read(plan: Batches) -> Batches:
        prepare_worker()
        may_fail = _attempt() < retries
        for batch in plan:
            for data in batch.column("work"):
                work: ReadTask = unpack(data.as_py())
                if work.version != __version__:
                    raise VersionMismatchError(f"the driver runs kaudit {work.version}, this worker {__version__}")
                for job_index, shuffle_partition, header in work.headers:
                    yield _row(shuffle_partition, job_index, _HEADER_NUMBER, 0, pack(header))
                for task in work.byte_ranges:
                    found = (
                        _outcomes(spec, open_source, count, may_fail=may_fail)
                        for spec in cut(task.spec, task.chunk_bytes)
                    )
                    number = task.number
                    for joined in join_ranges(found, task.snapshot_offsets):
                        rows = pack_chunk(joined.outcomes)
                        yield _row(task.shuffle_partition, task.job_index, number, joined.ranges, rows)
                        number += joined.ranges

    return read


def _outcomes(
    spec: ChunkSpec, open_source: OpenSource, count: Callable[[Sequence[Outcome]], None], *, may_fail: bool
) -> Sequence[Outcome]:
    outcomes = read_planned(spec, open_source=open_source)
    for outcome in outcomes if may_fail else ():
        if isinstance(outcome, Failure) and not outcome.vanished and outcome.log_start is None:
            raise TransientReadError(5, outcome.reason, outcome.path)
    count(outcomes)
    return outcomes


def _attempt() -> int:
    """Return how often the task has failed before."""
    # imported here: what runs outside Spark's tasks needs no pyspark
    from pyspark import TaskContext  # noqa: PLC0415 - an extra

    task = TaskContext.get()
    return 0 if task is None else task.attemptNumber()


def _row(shuffle_partition: int, job_index: int, number: int, ranges: int, rows: bytes) -> pa.RecordBatch:
    values = (shuffle_partition, job_index, number, ranges, rows)
    return pa.RecordBatch.from_pylist([dict(zip(_ROWS.names, values, strict=True))], _ROWS)


def replayer(make_sink: Callable[[], RowSink | None], seal: Seal, open_source: OpenSource) -> ArrowMap:
    """Return the function that replays partitions from rows sorted by job index and number.

    `make_sink` is asked for each partition what takes its rows beside the audit; what `seal` makes of that comes along.
    What must be read twice of a partition is read here too.
    """

    def replay(rows: Batches) -> Batches:
        prepare_worker()
        feed, job_index, expected = None, -1, 0
        for batch in rows:
            for at in range(batch.num_rows):
                number, data = batch.column("number")[at].as_py(), batch.column("rows")[at].as_py()
                if number == _HEADER_NUMBER:
                    if feed is not None:
                        yield from _close(feed, job_index, expected, seal, open_source)
                    header: PartitionHeader = unpack(data)
                    job_index, expected = batch.column("job_index")[at].as_py(), header.ranges
                    feed = PartitionAssembler(header.job, make_sink(), open_source)
                else:
                    assert feed is not None, f"range {number} came before its partition was opened"
                    for outcome in unpack_chunk(data):
                        feed.take(outcome)
                    expected -= batch.column("ranges")[at].as_py()
        if feed is not None:
            yield from _close(feed, job_index, expected, seal, open_source)

    return replay


def _close(feed: PartitionAssembler, job_index: int, missing: int, seal: Seal, open_source: OpenSource) -> Batches:
    assert missing == 0, f"job {job_index}: {missing} ranges did not arrive"
    audit = feed.close()
    find_repeats(audit, open_source)
    for row in audit_rows(job_index, audit, seal(audit, feed.kept)):
        yield pa.RecordBatch.from_pylist([{**row, "outline": row["audit"] and pack(audit.outline())}], _AUDIT)


def audit_rows(job_index: int, audit: PartitionAudit, kept: object) -> Iterator[dict[str, Any]]:
    """Yield the rows of a replayed partition: the first has its audit, and all of them slices of what is kept of it."""
    packed = pack(kept)
    for start in range(0, len(packed), _SLICE_BYTES):
        yield {
            "job_index": job_index,
            "audit": None if start else pack(audit),
            "kept": packed[start : start + _SLICE_BYTES],
        }


Intervals = Sequence[tuple[int, int]]
Given = Mapping[int, Intervals]


class GivenReplay(Struct, frozen=True):
    """What a partition comes to.

    `given`: the bytes of each segment (by its number) that the rows held, where a filter left out others; None: nothing
    was left out.
    """

    partition: PartitionAudit
    given: Given | None


def replay_given(job: Job, chunks: Iterator[tuple[int, bytes]], sink: RowSink | None) -> GivenReplay | None:
    """Put a partition together; None where it has batches and no row of it was given: a filter left all of it out.

    The result is that of reading the whole partition: a segment of which not every byte is covered by chunks is read again.
    """
    feed = PartitionAssembler(job, sink, open_segment)
    given: dict[int, Intervals] = {}
    left_out = False
    numbered = groupby(chunks, key=lambda chunk: chunk[0])
    waiting = next(numbered, None)
    if waiting is None and job.in_pieces and _has_batches(job.plan):
        return None
    for spec in job.in_pieces:
        outcomes: list[Outcome] = []
        while waiting is not None and waiting[0] <= spec.segment:
            if waiting[0] == spec.segment:  # a lower number: of a segment that is empty now
                outcomes = _distinct(outcome for _, data in waiting[1] for outcome in unpack_chunk(data))
            waiting = next(numbered, None)
        given[spec.segment] = [(chunk.start, chunk.read_to) for chunk in outcomes if isinstance(chunk, ChunkRows)]
        if not _covers(spec, outcomes):
            before = _batches(outcomes)
            outcomes = [read_range(range_, open_source=open_segment) for range_ in cut(spec, job.chunk_bytes)]
            left_out = left_out or (spec.file.text is None and _batches(outcomes) > before)
        for outcome in outcomes:
            feed.take(outcome)
    partition = feed.close()
    find_repeats(partition, open_segment)
    return GivenReplay(partition, given if left_out else None)


def _distinct(outcomes: Iterator[Outcome]) -> list[Outcome]:
    """Return outcomes in the order of the file; of chunks that came twice one, failures last."""
    chunks: dict[tuple[int, int], ChunkRows] = {}
    failures: list[Failure] = []
    for outcome in outcomes:
        if isinstance(outcome, ChunkRows):
            chunks.setdefault((outcome.start, outcome.stop), outcome)
        else:
            failures.append(outcome)
    return [*(chunks[key] for key in sorted(chunks)), *failures]


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
    return bool(outcomes) and at == spec.stop and not spec.contents


def _batches(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.counts.batches for outcome in outcomes if isinstance(outcome, ChunkRows))


def _has_batches(plan: Sequence[ChunkSpec]) -> bool:
    """Return whether a partition has a valid batch; damage alone cannot have been filtered out."""
    for spec in plan:
        try:
            with closing(open_segment(spec.file)) as source:
                where = ByteRange(spec.start, spec.stop, spec.end)
                for piece in stream_batches(source, where, expected_offset=spec.file.base_offset, verify=spec.verify):
                    if len(piece.batches):
                        return True
        except OSError:
            return False  # the audit says that it cannot be read
    return False
