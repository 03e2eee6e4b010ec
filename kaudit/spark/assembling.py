"""Chunks to partitions: one task puts the chunks of a partition replica together, and reads again what is not among them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, groupby

import pyarrow as pa
from msgspec import Struct

from kaudit.partition.assembler import PartitionAssembler, read_range
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.find_repeats import find_repeats
from kaudit.partition.job import Job
from kaudit.partition.replay import RowSink
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_codec import unpack_chunk
from kaudit.reading.chunk_plan import ChunkSpec, cut
from kaudit.reading.chunk_rows import ChunkRows, Outcome
from kaudit.reading.segment import ByteRange
from kaudit.reading.shuffle_codec import unpack
from kaudit.reading.unread_segments import Failure
from kaudit.source.schemes import open_segment

JOB, JUDGED, CHUNK = 0, 1, 2
"""What a row of an assembling task holds, in the order of a partition's rows."""
KEY = ("topic", "partition", "replica")
Intervals = Sequence[tuple[int, int]]


class Assembled(Struct, frozen=True):
    """A partition replica that was put together.

    `given`: the bytes of each segment (by its number) that the rows held, where a filter left out others; None: nothing
    was left out. `judged` is what came with its rows, packed.
    """

    partition: PartitionAudit
    given: Mapping[int, Intervals] | None = None


class Part(Struct):
    """The rows of one partition replica, in a task."""

    job: Job
    judged: bytes | None
    chunks: Iterator[tuple[int, bytes]]
    """Number of the segment, and a chunk."""


def parts(rows: Iterator[pa.RecordBatch]) -> Iterator[Part]:
    """Yield the partition replicas of a task's rows, which are sorted; rows of a partition that was not planned are passed over."""
    single = chain.from_iterable(map(_rows, rows))
    for _, own in groupby(single, key=lambda row: row[0]):
        part = _part(own)
        if part is not None:
            yield part


def _part(rows: Iterator["_Row"]) -> Part | None:
    job: Job | None = None
    judged = None
    for row in rows:
        if row[1] == JOB:
            job = unpack(row[3])
        elif row[1] == JUDGED:
            judged = row[3]
        elif job is not None:
            return Part(job, judged, _chunks(row, rows))
    return None if job is None else Part(job, judged, iter(()))


_Row = tuple[tuple[object, ...], int, int, bytes]


def _rows(batch: pa.RecordBatch) -> Iterator[_Row]:
    columns = [batch.column(name) for name in (*KEY, "kind", "segment_number", "data")]
    for index in range(batch.num_rows):
        topic, partition, replica, kind, number, data = (column[index].as_py() for column in columns)
        yield (topic, partition, replica), kind, number, data


def _chunks(first: _Row, rest: Iterator[_Row]) -> Iterator[tuple[int, bytes]]:
    return ((row[2], row[3]) for row in chain([first], rest))


def assemble(part: Part, sink: RowSink | None) -> Assembled | None:
    """Put a partition together; None where it has batches and no row of it was given: a filter left all of it out.

    The result is that of reading the whole partition: a segment of which not every byte is covered by chunks is read again.
    """
    job = part.job
    feed = PartitionAssembler(job, sink, open_segment)
    given: dict[int, Intervals] = {}
    left_out = False
    numbered = groupby(part.chunks, key=lambda chunk: chunk[0])
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
    return Assembled(partition, given if left_out else None)


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
