"""Kafka logs as Python data sources of Spark: `spark.read.format("kaudit.batches").load(url)`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

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
from kaudit.engines.memory import prepare_worker
from kaudit.engines.progress import SilentProgress
from kaudit.listings.producer_histories import PartitionHistory, Piece
from kaudit.model.finding import Finding
from kaudit.reading.shuffle_codec import pack, unpack
from kaudit.report.machine.tables import finding_row
from kaudit.scanning.plan import find_input
from kaudit.spark.assembling import JOB
from kaudit.spark.judging import FINDINGS_AT_ONCE, require_complete, row
from kaudit.spark.options import ReadOptions, read_options, time_ms
from kaudit.spark.partition_tables import history_rows
from kaudit.spark.planning import Chosen, SegmentRead, chosen_by, partition_jobs, segment_reads
from kaudit.spark.reading import READERS
from kaudit.spark.schemas import spark_schema, to_batches

_JOBS_A_TASK = 64
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
    """Audits with the local engine, in one task. What cannot be read is an error."""

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
            result = require_complete(local.scan(asked, SilentProgress()))
            yield from to_batches("findings", map(finding_row, result.findings), FINDINGS_AT_ONCE)
            return
        with local.record(asked, SilentProgress()) as recorded:
            result = require_complete(recorded.result)
            for _, packed in recorded.write_histories(self._pieces, result.findings):
                yield unpack(packed)

    def _pieces(
        self,
        history: PartitionHistory,
        findings: Sequence[Finding],
        newest: Profile,
    ) -> Iterator[Piece]:
        for rows in history_rows(self.table, history, findings, newest=newest):
            yield self.table, pack(rows)


class SegmentReader(DataSourceReader):
    """Lists the input and shares the segments among tasks, where Spark plans; reads them in tasks."""

    def __init__(self, table: str, options: ReadOptions) -> None:
        self.table = table
        self.options = options
        self.chosen = chosen_by(options)

    def partitions(self) -> Sequence[InputPartition]:
        """Return what each task reads, packed: the driver keeps some 100 bytes a segment."""
        return [InputPartition(pack(group)) for group in segment_reads(self.options, self.chosen)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the segments of a task."""
        prepare_worker()
        reads: Sequence[SegmentRead] = () if partition.value is None else unpack(partition.value)
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
    """A row for each partition replica, with the plan for its audit: what findings() puts together beside chunks."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "kaudit.partitions"

    def schema(self) -> str:
        """Return the columns that all rows have which go from task to task."""
        return "topic string, partition int, replica string, kind int, segment_number int, first_position bigint, data binary"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's interface
        """Return what plans."""
        return _PartitionReader(read_options(self.options))


class _PartitionReader(DataSourceReader):
    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        jobs = partition_jobs(self.options)
        return [InputPartition(pack(jobs[first : first + _JOBS_A_TASK])) for first in range(0, len(jobs), _JOBS_A_TASK)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for job in () if partition.value is None else unpack(partition.value):
            directory = job.directory
            yield row((directory.topic, directory.partition, directory.replica), JOB, pack(job))


SOURCES = (BatchSource, RunSource, RecordSource, FindingSource, TimelineSource, ProducerSource, PartitionSource)
