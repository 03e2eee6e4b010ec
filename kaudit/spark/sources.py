"""Kafka logs as Python data sources of Spark 4.0 and later: `spark.read.format("kaudit.batches").load(url)`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql import datasource as api
from pyspark.sql.types import StructType

from kaudit.spark.finding_stream import BEGINNING, FindingStream
from kaudit.spark.options import RESULTS, read_options, time_ms
from kaudit.spark.plan import Chosen
from kaudit.spark.readers import Reader, SegmentReader, reader_of
from kaudit.spark.schemas import spark_schema

_SETS: Mapping[str, str] = {"topic": "topics", "partition": "partitions", "replica": "replicas", "segment": "segments"}
_HAS_FILTERS = hasattr(api, "EqualTo")
"""Spark 4.1 and later give a source the filters of a query."""
_OFFSETS = ("base_offset", "last_offset", "first_offset", "offset")
_OFFSET = "input"
_TIMES = ("max_timestamp", "timestamp")


class _LogSource(api.DataSource):
    """Rows of `table`, as `kaudit.spark.readers` plans and reads them."""

    table: str

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return f"kaudit.{cls.table}"

    def schema(self) -> StructType:
        """Return the columns."""
        return spark_schema(self.table, reader_of(self.table, self.options).options.origin)

    def reader(self, schema: StructType) -> api.DataSourceReader:  # noqa: ARG002 - Spark's interface
        """Return what plans and reads."""
        reader = reader_of(self.table, self.options)
        pushes = isinstance(reader, SegmentReader) and reader.options.pushdown and _HAS_FILTERS
        return PushdownReader(reader) if pushes else SourceReader(reader)


class FindingSource(_LogSource):
    """A row for each finding, by an audit of everything in one task: for SQL and streams; the functions of kaudit.spark share the work."""

    table = "findings"

    def streamReader(self, schema: StructType) -> "FindingStreamReader":  # noqa: ARG002, N802 - Spark's interface
        """Return what audits whenever the input has changed."""
        return FindingStreamReader(FindingStream(read_options(self.options, RESULTS)))


class SourceReader(api.DataSourceReader):
    """A reader in the form that Spark calls."""

    def __init__(self, reader: Reader) -> None:
        self.wrapped = reader

    def partitions(self) -> Sequence[api.InputPartition]:
        """Return what the tasks read."""
        return [api.InputPartition(part) for part in self.wrapped.parts()]

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what one task reads; Spark asks for nothing (None) where there are no partitions."""
        return iter(()) if partition.value is None else self.wrapped.read(partition.value)


class FindingStreamReader(api.DataSourceStreamReader):
    """A stream of findings in the form that Spark calls."""

    def __init__(self, stream: FindingStream) -> None:
        self._stream = stream
        self._before = BEGINNING

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's names
        """Return the offset at which nothing has been audited."""
        return {_OFFSET: BEGINNING}

    def latestOffset(self, start: dict[str, str] | None = None, limit: object = None) -> dict[str, str]:  # noqa: ARG002, N802
        """Return the offset of what the input looks like now. Before 4.2 Spark does not say where it stands."""
        if start is not None:
            self._before = start[_OFFSET]
        self._before = self._stream.latest(self._before)
        return {_OFFSET: self._before}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[api.InputPartition]:
        """Return the one task, if the input has changed."""
        return [] if end in (start, self.initialOffset()) else [api.InputPartition((start[_OFFSET], end[_OFFSET]))]

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        """Audit."""
        return self._stream.read(*partition.value)

    def commit(self, end: dict[str, str]) -> None:
        """Remove what Spark will not ask for again."""
        self._stream.commit(end[_OFFSET])


class PushdownReader(SourceReader):
    """Leaves out segments that Spark's filters exclude. Spark filters the rows itself, after these."""

    wrapped: SegmentReader

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Take what can be known of a whole segment from the filters, and give all of them back."""
        self.wrapped.choose(chosen_of_filters(self.wrapped.chosen, filters))
        return filters


def chosen_of_filters(chosen: Chosen, filters: Iterable[Any]) -> Chosen:
    """Narrow what is chosen by filters of top-level columns that Spark joins with AND."""
    for entry in filters:
        if (
            isinstance(
                entry,
                api.EqualTo | api.In | api.GreaterThan | api.GreaterThanOrEqual | api.LessThan | api.LessThanOrEqual,
            )
            and len(entry.attribute) == 1
        ):
            chosen = replace(chosen, **_narrowed(chosen, entry.attribute[0], entry))
    return chosen


def _narrowed(chosen: Chosen, column: str, entry: Any) -> dict[str, Any]:  # noqa: ANN401 - Spark's filters
    if column in _SETS and isinstance(entry, api.EqualTo | api.In):
        values = set(entry.value) if isinstance(entry, api.In) else {entry.value}
        before = getattr(chosen, _SETS[column])
        return {_SETS[column]: frozenset(values if before is None else values & set(before))}
    at_least = isinstance(entry, api.EqualTo | api.GreaterThan | api.GreaterThanOrEqual)
    at_most = isinstance(entry, api.EqualTo | api.LessThan | api.LessThanOrEqual)
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


_OTHERS = {
    "batches": "A row for each valid batch.",
    "runs": "Rows for each chunk of a segment: its runs, its markers, and itself.",
    "records": "A row for each record of data.",
    "timelines": "A row for each entry of a producer's history, in one task as findings.",
    "producers": "A row for each producer id of a partition replica, in one task as findings.",
    "diff": "A row for each replica of each partition, compared with the others.",
    "dedup": "A row for each record, and each range of them, that repeats earlier ones of its partition.",
    "ledger": "A row for each range of records of two inputs, topics in tasks; the function of kaudit.spark shares a topic, too.",
}
SOURCES: tuple[type[_LogSource], ...] = (
    FindingSource,
    *(type(table, (_LogSource,), {"table": table, "__doc__": meaning}) for table, meaning in _OTHERS.items()),
)
"""All data sources, each with the rows that its docstring says."""
