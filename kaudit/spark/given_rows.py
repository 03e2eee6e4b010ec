"""Partitions put together from rows that somebody gives: of several logs, in any order, and what a filter has left of them.

Each row names the log that it was read from (its origin). One task lists them all, as if they had been given at once, and the chunks
among the rows meet the partitions of that list: by topic and partition, and there by the path of their segment.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kaudit.engines.rows import Rows
from kaudit.partition.assembler import PartitionAssembler
from kaudit.partition.job import Job
from kaudit.partition.replay import RowSink
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_codec import unpack_chunk
from kaudit.reading.chunk_plan import ChunkSpec, OpenSource, cut
from kaudit.reading.chunk_rows import ChunkRows, Outcome
from kaudit.reading.range_reader import read_range
from kaudit.reading.segment import ByteRange
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.reading.unread_segments import Failure
from kaudit.source.schemes import open_segment
from kaudit.spark.options import merged, read_options
from kaudit.spark.plan import listed_input
from kaudit.spark.schemas import unplanned
from kaudit.spark.tasks import (
    LEFT_OUT,
    PLANNED,
    SCAN_WIDE,
    STEPS,
    WHOLE,
    Batches,
    PartitionHeader,
    Replayed,
    arrow_schema,
    cells,
    packed,
    prepare_worker,
    row,
    shards_of,
    step,
    steps_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GIVEN = "topic string, partition int, kind int, path string, segment_number int, place long, data binary"
"""Chunks, the origins of rows, and the plan that is made of these."""
PLAN, ORIGIN, HEADER, CHUNK = range(4)
_NOWHERE = "", -1
"""Topic and partition of rows that are of no partition."""
_KEY = ("topic", "partition")


def replayed(runs: "DataFrame", origins: "DataFrame", audit: Mapping[str, Any], keeps: Rows, tasks: int) -> "DataFrame":
    """Describe the rows of STEPS of the chunks among `runs`. `origins`: logs that are audited even without a row."""
    chunks = runs.where("chunk is not null").selectExpr(
        *_KEY, f"{CHUNK} as kind", "path", "segment_number", "first_position as place", "chunk as data", "origin"
    )
    noted = chunks.mapInArrow(note_origins, GIVEN).unionByName(origins)
    planned = noted.repartition(tasks, *_KEY).mapInArrow(partial(plan_origins, audit=audit, shards=tasks), GIVEN)
    sorted_rows = planned.repartition(tasks, *_KEY).sortWithinPartitions(*_KEY, "kind", "path", "place")
    return sorted_rows.mapInArrow(partial(replay_given, keeps=keeps, open_source=open_segment), STEPS)


def origin_row(origin: str) -> pa.RecordBatch:
    """Return the row that a log was read."""
    return row(GIVEN, *_NOWHERE, ORIGIN, origin, -1, 0)


def note_origins(rows: Batches) -> Batches:
    """Yield chunks, and a row for each log that they were read from."""
    known: set[str] = set()
    for batch in rows:
        for origin in batch.column("origin").unique().to_pylist():
            if origin not in known:
                known.add(origin)
                yield origin_row(origin)
        schema = arrow_schema(GIVEN)  # columns of tables may say that they are never null
        yield pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)


def plan_origins(rows: Batches, audit: Mapping[str, Any], shards: int) -> Batches:
    """Yield chunks, and in place of the origins, which come to one task, the plan of all these logs together.

    Raises:
        UsageError: the rows were read in different ways, or a log is not there any more.

    """
    origins: set[str] = set()
    for batch in rows:
        of_origin = pc.equal(batch.column("kind"), ORIGIN)
        origins.update(batch.filter(of_origin).column("path").to_pylist())
        yield batch.filter(pc.invert(of_origin))
    if not origins:
        return
    read = merged([read_options(json.loads(text)) for text in sorted(origins)])
    plan = listed_input(read.scan_options(**audit)).planned(everything=True)
    yield row(GIVEN, *_NOWHERE, PLAN, "", -1, 0, packed(plan.known))
    where = shards_of(plan.known.layout.partitions, shards)
    for number, (job, shard) in enumerate(zip(plan.jobs, where, strict=True)):
        place = job.directory
        header = PartitionHeader(number, job, shard=shard)
        yield row(GIVEN, place.topic, place.partition, HEADER, "", number, 0, pack(header))


def replay_given(rows: Batches, keeps: Rows, open_source: OpenSource) -> Batches:
    """Replay partitions from rows of GIVEN, sorted by topic, partition and kind; yield STEPS.

    Raises:
        UsageError: rows are of a partition or a segment that was not planned: the log has changed since.

    """
    prepare_worker()
    names = (*_KEY, "kind", "path", "segment_number", "data")
    for _, own in groupby(cells(rows, *names), key=itemgetter(0, 1)):
        partitions: list[_Given] = []
        for *_, kind, path, segment, data in own:
            if kind == PLAN:
                yield row(STEPS, SCAN_WIDE, WHOLE, PLANNED, data)
            elif kind == HEADER:
                partitions.append(_Given(unpack(data, PartitionHeader), {}))
            elif not any(partition.takes(path, segment, data) for partition in partitions):
                raise unplanned(path)
        for partition in partitions:
            sink = keeps.make_sink()
            made = put_together(partition.header.job, partition.chunks, sink, open_source)
            if made is None:
                yield step(SCAN_WIDE, partition.header.job_index, LEFT_OUT)
            else:
                yield from steps_of(partition.header, made, keeps, sink, open_source)


Chunks = Mapping[int, Sequence[bytes]]
"""The packed chunks of each segment, by its number."""


class _Given(Struct):
    """A partition that was planned, and its chunks among the rows."""

    header: PartitionHeader
    chunks: dict[int, list[bytes]]

    def takes(self, path: str, segment: int, data: bytes) -> bool:
        """Take a chunk of one of the partition's segments; return whether it is one."""
        own = [spec.segment for spec in self.header.job.in_pieces if spec.file.path == path]
        number = own[0] if len(own) == 1 else next((each for each in own if each == segment), None)
        if number is None:
            return False
        self.chunks.setdefault(number, []).append(data)
        return True


def put_together(job: Job, chunks: Chunks, sink: RowSink | None, open_source: OpenSource) -> Replayed | None:
    """Put a partition together; None where it has batches and no row of it was given: a filter left all of it out.

    The result is that of reading the whole partition: a segment of which not every byte is covered by chunks is read again.
    """
    feed = PartitionAssembler(job, sink, open_source)
    given: dict[int, Sequence[tuple[int, int]]] = {}
    left_out = False
    if not chunks and job.in_pieces and _has_batches(job.plan, open_source):
        return None
    for spec in job.in_pieces:
        outcomes = _distinct(chain.from_iterable(map(unpack_chunk, chunks.get(spec.segment, ()))))
        given[spec.segment] = [(chunk.start, chunk.read_to) for chunk in outcomes if isinstance(chunk, ChunkRows)]
        if not _covers(spec, outcomes):
            before = _batches(outcomes)
            outcomes = [read_range(part, open_source=open_source) for part in cut(spec, job.chunk_bytes)]
            left_out = left_out or (spec.file.text is None and _batches(outcomes) > before)
        for outcome in outcomes:
            feed.take(outcome)
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
        if chunk.decoded != spec.decode or chunk.segment != spec.segment:
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
