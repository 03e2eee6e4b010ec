"""What releases of Spark do in different ways: 3.5 has no Arrow tables on the driver, 4.1 the first repartitioning by number."""

from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own way to name it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from kaudit.errors import UsageError

OLDEST = (3, 5)
"""The oldest release that kaudit runs on."""
HAS_DATA_SOURCES = find_spec("pyspark.sql.datasource") is not None
"""From 4.0 on, data sources can be written in Python."""
_TAKES_ARROW = hasattr(DataFrame, "toArrow")
"""From 4.0 on, drivers take and give Arrow tables."""
_MOVES_BY_NUMBER = hasattr(DataFrame, "repartitionById")
"""From 4.1 on."""
_HASH_SEED = 42
"""Of Spark's hash partitioning: pmod(Murmur3Hash(column), partitions) (HashPartitioning.partitionIdExpression)."""


def require_release() -> None:
    """Raise UsageError where pyspark is older than OLDEST."""
    if tuple(map(int, pyspark.__version__.split(".")[:2])) < OLDEST:
        raise UsageError(f"kaudit needs Spark {OLDEST[0]}.{OLDEST[1]} or newer; pyspark here is {pyspark.__version__}")


def by_number(frame: DataFrame, partitions: int, column: str) -> DataFrame:
    """Move the rows with number N to partition N. `column`: an int from 0 to `partitions` - 1."""
    if _MOVES_BY_NUMBER:
        return frame.repartitionById(partitions, column)
    placed = F.get(F.array([F.lit(each) for each in _hashed_to(partitions)]), F.col(column))
    return frame.withColumn("placed", placed).repartition(partitions, "placed").drop("placed")


def arrow_table(frame: DataFrame) -> pa.Table:
    """Bring a frame to the driver."""
    if _TAKES_ARROW:
        return frame.toArrow()
    driver: Any = frame
    batches = driver._collect_as_arrow()  # noqa: SLF001 - what toPandas reads; 3.5 has no public way
    return pa.Table.from_batches(batches, to_arrow_schema(frame.schema))


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return a table as a frame."""
    if _TAKES_ARROW:
        return spark.createDataFrame(table)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return spark.createDataFrame(rows, from_arrow_schema(table.schema))


def work_frame(spark: SparkSession, works: Iterable[bytes]) -> DataFrame:
    """Return packed works as the column `work`, each in a Spark partition of its own."""
    packed = pa.array(works, pa.binary())
    table = pa.table({"number": pa.array(range(len(packed)), pa.int32()), "work": packed})
    return by_number(frame_of(spark, table), max(len(packed), 1), "number")


@cache
def _hashed_to(partitions: int) -> tuple[int, ...]:
    """Return for each partition an int that hash partitioning puts into it."""
    found = np.full(partitions, -1, np.int64)
    first, count = 0, 16 * partitions
    while (found < 0).any():
        values = np.arange(first, first + count, dtype=np.int64)
        found[_murmur3(values.astype(np.uint32)).astype(np.int32).astype(np.int64) % partitions] = values
        first += count
    return tuple(found.tolist())


def _murmur3(values: "np.ndarray[Any, np.dtype[np.uint32]]") -> "np.ndarray[Any, np.dtype[np.uint32]]":
    """Return the 32-bit MurmurHash3 of ints, each as four bytes (Spark's Murmur3_x86_32.hashInt)."""
    mixed = _rotated(values * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    mixed = _rotated(mixed ^ np.uint32(_HASH_SEED), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    mixed ^= np.uint32(4)
    mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return mixed ^ (mixed >> np.uint32(16))


def _rotated(values: "np.ndarray[Any, np.dtype[np.uint32]]", bits: int) -> "np.ndarray[Any, np.dtype[np.uint32]]":
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
