"""Kafka logs as Python data sources of Spark: `spark.read.format("kaudit.batches").load(url)`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

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
from kaudit.report.machine.tables import finding_row
from kaudit.scanning.plan import find_input
from kaudit.source.bytes import ByteSource
from kaudit.source.schemes import open_segment
from kaudit.spark.composition import FINDINGS_AT_ONCE, history_rows, incomplete, require_complete
from kaudit.spark.options import ReadOptions, read_options, time_ms
from kaudit.spark.plan import Chosen, SegmentRead, chosen_by, plan_input, share_chosen
from kaudit.spark.record_rows import record_rows
from kaudit.spark.rows import batch_rows, run_rows
from kaudit.spark.schemas import spark_schema, to_batches
from kaudit.spark.tasks import CHUNKS, LAYOUT, ReadTask, prepare_worker, read_task, row

_SETS: Mapping[str, str] = {"topic": "topics", "partition": "partitions", "replica": "replicas", "segment": "segments"}
_OFFSETS = ("base_offset", "last_offset", "first_offset", "offset")
_TIMES = ("max_timestamp", "timestamp")


class _LogSource(DataSource):
    """Rows of `table`, a segment after the other."""

    table: str

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return f"kaudit.{cls.table}"

    def schema(self) -> StructType:
        """Return the columns, with the options as metadata: what is made of these rows knows what they were read from."""
        return spark_schema(self.table, read_options(self.options).to_text())

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's interface
        """Return what plans and reads."""
        options = read_options(self.options)
        return (PushdownReader if options.pushdown else SegmentReader)(self.table, options)


class BatchSource(_LogSource):
    """A row for each valid batch."""

    table = "batches"


class RunSource(_LogSource):
    """Rows for each chunk of a segment: its runs, its markers, and itself."""

    table = "runs"


class RecordSource(_LogSource):
    """A row for each record of data."""

    table = "records"


class _ResultSource(_LogSource):
    """Rows of `table`, by an audit of everything in one task: for SQL; the functions of kaudit.spark share the work."""

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's interface
        """Return what audits."""
        return ResultReader(self.table, read_options(self.options))


class FindingSource(_ResultSource):
    """A row for each finding."""

    table = "findings"


class TimelineSource(_ResultSource):
    """A row for each entry of a producer's history."""

    table = "timelines"


class ProducerSource(_ResultSource):
    """A row for each producer id of a partition replica."""

    table = "producers"


class ResultReader(DataSourceReader):
    """Audits with the local engine, in one task. What cannot be read is an error, unless the options allow it."""

    def __init__(self, table: str, options: ReadOptions) -> None:
        self.table = table
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return the one task; a path that is not there is said before it starts."""
        find_input(self.options.scan_options())
        return [InputPartition(self.table)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - there is one
        """Audit and yield the rows."""
        asked = self.options.scan_options(since_ms=self.options.since, until_ms=self.options.until, jobs=1)
        if self.table == "findings":
            result = self._required(local.scan(asked, SilentProgress()))
            yield from to_batches("findings", map(finding_row, result.findings), FINDINGS_AT_ONCE)
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
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as out:
                out.write_batch(rows)
            yield self.table, sink.getvalue().to_pybytes()


class SegmentReader(DataSourceReader):
    """Lists the input and shares the segments among tasks, where Spark plans; reads them in tasks."""

    def __init__(self, table: str, options: ReadOptions) -> None:
        self.table = table
        self.options = options
        self.chosen = chosen_by(options)

    def partitions(self) -> Sequence[InputPartition]:
        """Return what each task reads, packed: the driver keeps some 100 bytes a segment.

        Raises:
            UnreadableInputError: not all of the input could be listed, and the options do not allow that.

        """
        plan = plan_input(self.options, self.chosen)
        if plan.layout.unreadable and not self.options.allow_incomplete:
            raise incomplete(plan.layout.unreadable)
        return [InputPartition(pack(group)) for group in plan.reads]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the segments of a task."""
        prepare_worker()
        reads = [] if partition.value is None else unpack(partition.value, list[SegmentRead])
        for read in reads:
            yield from READERS[self.table](read, self.options)


class PushdownReader(SegmentReader):
    """Leaves out segments that Spark's filters exclude. Spark filters the rows itself, after these."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take what can be known of a whole segment from the filters, and give all of them back."""
        self.chosen = chosen_of_filters(self.chosen, filters)
        # a task skips a segment by its time index where the options say so
        if self.chosen.since is not None:
            self.options = replace(self.options, since=self.chosen.since)
        return filters


def chosen_of_filters(chosen: Chosen, filters: Iterable[Filter]) -> Chosen:
    """Narrow what is chosen by filters of top-level columns that Spark joins with AND."""
    for entry in filters:
        if (
            isinstance(entry, EqualTo | In | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual)
            and len(entry.attribute) == 1
        ):
            chosen = replace(chosen, **_narrowed(chosen, entry.attribute[0], entry))
    return chosen


def _narrowed(chosen: Chosen, column: str, entry: Any) -> dict[str, Any]:  # noqa: ANN401 - Spark's filters
    if column in _SETS and isinstance(entry, EqualTo | In):
        values = set(entry.value) if isinstance(entry, In) else {entry.value}
        before = getattr(chosen, _SETS[column])
        return {_SETS[column]: frozenset(values if before is None else values & set(before))}
    at_least = isinstance(entry, EqualTo | GreaterThan | GreaterThanOrEqual)
    at_most = isinstance(entry, EqualTo | LessThan | LessThanOrEqual)
    narrowed: dict[str, Any] = {}
    if column in _OFFSETS and isinstance(entry.value, int):
        # the first or the last offset of a row: both lie in its segment
        if at_least:
            narrowed["first_offset"] = max(entry.value, chosen.first_offset or 0)
        if at_most:
            narrowed["last_offset"] = min(entry.value, 2**63 if chosen.last_offset is None else chosen.last_offset)
    elif column in _TIMES and at_least and isinstance(entry.value, datetime):
        narrowed["since"] = max(time_ms(entry.value) or 0, chosen.since or 0)
    return narrowed


class PartitionSource(DataSource):
    """The layout of the input and the plan of each partition replica; with `cut` the chunks of its segments too.

    This is where findings() and its likes begin.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "kaudit.partitions"

    def schema(self) -> str:
        """Return the columns of CHUNKS."""
        return CHUNKS

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's interface
        """Return what plans and reads."""
        return _PartitionReader(read_options(self.options))


class _PartitionReader(DataSourceReader):
    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        plan = plan_input(self.options, chosen_by(self.options))
        tasks = share_chosen(plan.jobs, self.options, chosen_by(self.options))
        return [InputPartition((pack(plan.layout), True)), *(InputPartition((pack(task), False)) for task in tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return
        data, is_layout = partition.value
        if is_layout:
            yield row(CHUNKS, 0, -1, "", -1, "", LAYOUT, -1, -1, 0, data)
        else:
            prepare_worker()
            yield from read_task(unpack(data, ReadTask), open_segment)


SOURCES = (BatchSource, RunSource, RecordSource, FindingSource, TimelineSource, ProducerSource, PartitionSource)


_ROWS_AT_ONCE = 1 << 16
Reader = Callable[[SegmentRead, ReadOptions], Iterator[pa.RecordBatch]]


def read_batches(read: SegmentRead, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield a segment's valid batches. Raises OSError: Spark tries the task again, and says why the last attempt failed."""
    for _, batches in _pieces(read, options):
        yield batch_rows(read.task, batches)


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
    yield run_rows(read.task, [outcome])


READERS: Mapping[str, Reader] = {"batches": read_batches, "runs": read_runs, "records": read_records}


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
