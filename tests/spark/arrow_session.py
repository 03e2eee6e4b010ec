"""A session with the few DataFrame operations that the engine uses, on Arrow tables in this process: no JVM.

The driver's code and the tasks' run as they are; what Spark does between them is done here in a few lines, and strictly: tasks run
last first, take three rows at a time, get their functions pickled as Spark pickles them, and must give the columns they declare.
Tests marked `spark` hold Spark itself to the same results.
"""

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.accumulators import INT_ACCUMULATOR_PARAM, Accumulator
from pyspark.errors import PythonException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

_ROWS_AT_A_TIME = 3
_ACCUMULATORS = count()
_TYPES = {"int": pa.int32(), "long": pa.int64(), "string": pa.string(), "binary": pa.binary()}


def _declared(schema: str | StructType) -> pa.Schema:
    """The Arrow schema of a schema as Spark writes it, as `job_index int, audit binary`, or has it."""
    if isinstance(schema, StructType):
        return to_arrow_schema(schema, timezone="UTC")
    return pa.schema([(name, _TYPES[kind]) for name, kind in (column.split() for column in schema.split(", "))])


@dataclass(frozen=True)
class ArrowFrame:
    """A lazy DataFrame: the tables of its partitions, made anew each time."""

    partitions: Callable[[], list[pa.Table]]

    def _each(self, change: Callable[[pa.Table], pa.Table]) -> "ArrowFrame":
        return ArrowFrame(lambda: [change(table) for table in self.partitions()])

    def repartitionById(self, count: int, column: str) -> "ArrowFrame":  # noqa: N802 - Spark's name
        """Rows go to the partition that the column numbers."""

        def shuffled() -> list[pa.Table]:
            whole = self.toArrow()
            ids = whole[column].to_pylist()
            assert set(ids) <= set(range(count)), f"{column}: not all below {count}: {sorted(set(ids))}"
            return [
                whole.take([at for at, own in enumerate(ids) if own == number][::-1] or pa.array([], pa.int64()))
                for number in range(count)
            ]

        return ArrowFrame(shuffled)

    def repartition(self, count: int) -> "ArrowFrame":
        """Rows are dealt out."""

        def dealt() -> list[pa.Table]:
            whole = self.toArrow()
            return [whole.take(pa.array(range(number, whole.num_rows, count), pa.int64())) for number in range(count)]

        return ArrowFrame(dealt)

    def coalesce(self, count: int) -> "ArrowFrame":
        """All rows in one partition."""
        assert count == 1
        return ArrowFrame(lambda: [self.toArrow()])

    def sortWithinPartitions(self, *columns: str) -> "ArrowFrame":  # noqa: N802
        """Each partition in ascending order."""
        return self._each(lambda table: table.sort_by([(name, "ascending") for name in columns]))

    def orderBy(self, *columns: str) -> "ArrowFrame":  # noqa: N802
        """All rows in ascending order, in two partitions."""

        def ordered() -> list[pa.Table]:
            whole = self.toArrow().sort_by([(name, "ascending") for name in columns])
            half = whole.num_rows // 2
            return [whole.slice(0, half), whole.slice(half)]

        return ArrowFrame(ordered)

    def unionByName(self, other: "ArrowFrame") -> "ArrowFrame":  # noqa: N802
        """The partitions of both."""
        return ArrowFrame(lambda: [*self.partitions(), *other.partitions()])

    def select(self, *columns: str) -> "ArrowFrame":
        """These columns."""
        return self._each(lambda table: table.select(list(columns)))

    def where(self, condition: str) -> "ArrowFrame":
        """The rows with a number in a column: `COLUMN = NUMBER`."""
        column, number = condition.split(" = ")
        return self._each(lambda table: table.filter(pc.equal(table[column], int(number))))

    def mapInArrow(self, function: Callable[..., Iterator[pa.RecordBatch]], schema: str | StructType) -> "ArrowFrame":  # noqa: N802
        """What a task makes of each partition's batches."""
        pickled, columns = cloudpickle.dumps(function), _declared(schema)

        def task(table: pa.Table) -> pa.Table:
            try:
                batches = list(cloudpickle.loads(pickled)(iter(table.to_batches(max_chunksize=_ROWS_AT_A_TIME))))
            except Exception as error:
                raise PythonException("".join(traceback.format_exception_only(error))) from error
            return pa.Table.from_batches(batches, columns)

        return ArrowFrame(lambda: [task(table) for table in reversed(self.partitions())][::-1])

    def persist(self, _: object) -> "ArrowFrame":
        """Made once, until it is given up."""
        made: list[list[pa.Table]] = []

        def once() -> list[pa.Table]:
            if not made:
                made.append(self.partitions())
            return made[0]

        return ArrowFrame(once)

    def unpersist(self) -> None:
        """Nothing is kept elsewhere."""

    def toArrow(self) -> pa.Table:  # noqa: N802
        """All rows; a later partition's may come first."""
        return pa.concat_tables(reversed(self.partitions()))

    def toLocalIterator(self, *, prefetchPartitions: bool) -> Iterator[dict[str, object]]:  # noqa: N802, N803
        """All rows, in the order of the partitions."""
        assert prefetchPartitions
        for table in self.partitions():
            yield from table.to_pylist()


@dataclass
class _Conf:
    values: dict[str, str]

    def get(self, key: str) -> str | None:
        return self.values.get(key)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value


@dataclass
class ArrowSession:
    """Session and context in one. `jobs` are the descriptions of the jobs that were named, `properties` what is set of them now."""

    master: str = "local[2]"
    defaultParallelism: int = 2  # noqa: N815
    conf: _Conf = field(default_factory=lambda: _Conf({}))
    jobs: list[str] = field(default_factory=list)
    properties: dict[str, str | None] = field(default_factory=dict)

    @property
    def sparkContext(self) -> "ArrowSession":  # noqa: N802
        return self

    def newSession(self) -> "ArrowSession":  # noqa: N802
        return self

    def getConf(self) -> _Conf:  # noqa: N802
        return _Conf({"spark.master": self.master, **self.conf.values})

    def setJobGroup(self, group: str, description: str, *, interruptOnCancel: bool) -> None:  # noqa: N802, N803
        assert interruptOnCancel
        self.jobs.append(description)
        self.properties |= {"spark.jobGroup.id": group, "spark.job.description": description}

    def setLocalProperty(self, name: str, value: str | None) -> None:  # noqa: N802
        self.properties[name] = value

    def statusTracker(self) -> "ArrowSession":  # noqa: N802
        return self

    @staticmethod
    def accumulator(value: int) -> "Accumulator[int]":
        """Spark's own: tasks of this process add to it directly."""
        return Accumulator(next(_ACCUMULATORS), value, INT_ACCUMULATOR_PARAM)

    @staticmethod
    def getJobIdsForGroup(_: str) -> list[int]:  # noqa: N802
        return []

    @staticmethod
    def createDataFrame(table: pa.Table, schema: StructType | None = None) -> ArrowFrame:  # noqa: N802
        """Rows in two partitions, as the driver has two cores."""
        assert schema is None or table.schema == to_arrow_schema(schema, timezone="UTC")
        cuts = (0, table.num_rows // 2, table.num_rows)
        return ArrowFrame(lambda: [table.slice(start, stop - start) for start, stop in pairwise(cuts)])
