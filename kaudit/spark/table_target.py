"""Tables written by Spark's executors to a store, and the manifest that commits them."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct
from pyspark.errors import AnalysisException
from pyspark.sql import functions
from pyspark.sql.pandas.types import from_arrow_schema

from kaudit.reading.shuffle_codec import pack
from kaudit.report.machine.parquet import arrow_schema
from kaudit.spark.finding_rows import new_run_id
from kaudit.spark.jobs import SparkFailedError, named_job
from kaudit.spark.tasks import Batches, row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_FILE_BYTES = 256 << 20
"""Packed bytes of pieces that become one file of a topic: about as much as Parquet makes of them."""
_ROW_BYTES = 64
"""About what a row takes in Parquet, for rows that are not packed as pieces."""
KEY, PLACE = "_key", "_place"
"""Columns beside those of the table `producers`: what the ids are sorted by, and the number of an id's row among its own."""
SORTED_BY = (KEY, "producer_id", PLACE)


PIECES_SCHEMA = "output_batch int, job_index int, number long, table string, topic string, rows long, data binary"
_MOST_OUTPUT_BATCHES = 200
"""Each batch of pieces that the driver takes is a job of its own: some 50 ms."""
NAMES = "names"
"""Beside the tables' names: names of producer ids, to be put into a job's rows."""
_NAMES_NUMBER = -2_000_000
"""Before all pieces of a job."""


class OutputBatches(Struct, frozen=True):
    """Items 0 to `items` in at most `most` batches of neighbours, each as much as the driver takes at once."""

    items: int
    most: int = _MOST_OUTPUT_BATCHES

    @property
    def count(self) -> int:
        """How many batches there are."""
        return max(min(self.items, self.most), 1)

    def of(self, job_index: int) -> int:
        """Return the batch of an item."""
        return job_index * self.count // max(self.items, 1)


def names_piece(output_batches: OutputBatches, job_index: int, names: Mapping[int, str]) -> pa.RecordBatch:
    """Return names of some of a job's producer ids as a row before its pieces."""
    place = output_batches.of(job_index), job_index, _NAMES_NUMBER
    return row(PIECES_SCHEMA, *place, NAMES, None, 0, pack(names))


class TableTarget(Struct, frozen=True):
    """Where executors write: `url` has a directory for each table, and in it one for the run, by topic."""

    url: str
    run_id: str
    manifest: Mapping[str, object]

    @classmethod
    def of(cls, spark: "SparkSession", url: str, manifest: Mapping[str, object]) -> "TableTarget":
        """Take the run's id from the URL, or from the time; s3:// is s3a:// where Spark knows no other client for it."""
        place, _, run_id = url.rstrip("/").rpartition("/run_id=")
        if not place:
            place, run_id = url.rstrip("/"), new_run_id()
        configuration = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - no public way
        if place.startswith("s3://") and configuration.get("fs.s3.impl") is None:
            place = f"s3a://{place.removeprefix('s3://')}"
        return cls(place, run_id, manifest)

    def write(
        self,
        spark: "SparkSession",
        pieces: "DataFrame",
        tables: Mapping[str, pa.Schema],
        rows: Mapping[str, "DataFrame"],
    ) -> None:
        """Replace what this run has written before, table by table; the manifest is taken away first and put back last.

        `rows` are tables that are no pieces but rows, with columns to sort them by in front of which is the topic.
        """
        files = _HadoopFiles(spark)
        manifest = f"{self.url}/manifests/run_id={self.run_id}.json"
        files.delete(manifest)
        with named_job(spark, "kaudit: make the tables"):
            sizes = _sizes(pieces) | {name: (count := own.count(), count * _ROW_BYTES) for name, own in rows.items()}
        counts: dict[str, int] = {}
        for name, schema in tables.items():
            with named_job(spark, f"kaudit: write the table {name}"):
                counts[name], size = sizes.get(name, (0, 0))
                shared = -(-size // _FILE_BYTES)
                if name in rows:
                    written = _in_files(rows[name], shared, "topic", *SORTED_BY).select(*schema.names)
                else:
                    written = _unpacked(pieces.where(pieces["table"] == name), shared, schema)
                self._write_table(spark, written, name, counts[name])
        text = json.dumps({**self.manifest, "run_id": self.run_id, "rows": counts}, sort_keys=True, indent=2)
        files.write(manifest, f"{text}\n".encode())

    def _write_table(self, spark: "SparkSession", written: "DataFrame", name: str, rows: int) -> None:
        path = f"{self.url}/{name}/run_id={self.run_id}"
        by_topic = ["topic"] if "topic" in written.columns else []
        written.write.mode("overwrite").option("compression", "zstd").partitionBy(*by_topic).parquet(path)
        if rows and (there := _rows_seen(spark, path, written.schema)) != rows:
            raise SparkFailedError(
                f"{path}: {there} of {rows} rows are there: the workers wrote on disks of their own; give a URL that the "
                "driver and every worker reach"
            )


def _unpacked(pieces: "DataFrame", files: int, schema: pa.Schema) -> "DataFrame":
    """Describe the rows of the pieces of one table, to be written as so many files."""
    shared = _in_files(pieces.select("topic", "job_index", "number", "data"), files, "topic", "job_index", "number")
    return shared.mapInArrow(unpack_pieces, from_arrow_schema(spark_schema(schema)))


def _in_files(rows: "DataFrame", files: int, *by: str) -> "DataFrame":
    """Share rows out over so many files, by ranges of these columns, and sort each."""
    shared = rows.repartitionByRange(files, *by) if files > 1 else rows.coalesce(1)
    return shared.sortWithinPartitions(*by)


def _sizes(pieces: "DataFrame") -> dict[str, tuple[int, int]]:
    """Return the rows and the packed bytes of each table."""
    sizes = pieces.select("table", "rows", functions.length("data").alias("bytes"))
    # some bytes of each piece, in one task: Spark's own choice is 200
    sums = sizes.repartition(1).groupBy("table").agg(functions.sum("rows"), functions.sum("bytes"))
    return {table: (rows, size) for table, rows, size in sums.collect()}


def _rows_seen(spark: "SparkSession", path: str, row_type: "StructType") -> int:
    try:
        # with the type at hand no job has to look for it in the files
        return spark.read.schema(row_type).parquet(path).count()
    except AnalysisException:  # no such directory
        return 0


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """Return a table's Arrow schema with the only times that Spark takes."""
    return pa.schema(
        [
            field.with_type(pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(field.type) else field
            for field in schema
        ]
    )


def table_schema(table: str) -> "StructType":
    """Return the schema of a table as Spark has it."""
    return from_arrow_schema(spark_schema(arrow_schema(table)))


class _HadoopFiles:
    """Small files by Hadoop's own clients, which reach whatever the executors write to."""

    def __init__(self, spark: "SparkSession") -> None:
        self._jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - pyspark has no files of its own
        self._configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001

    def delete(self, url: str) -> None:
        """Delete a file, if it is there."""
        path, system = self._place(url)
        system.delete(path, False)

    def write(self, url: str, content: bytes) -> None:
        """Write a file, whole or not at all."""
        path, system = self._place(url)
        partial, _ = self._place(url.replace("/run_id=", "/.run_id="))
        out = system.create(partial, True)
        out.write(bytearray(content))
        out.close()
        system.rename(partial, path)

    def _place(self, url: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(url)
        return path, path.getFileSystem(self._configuration)


def unpack_pieces(pieces: Batches) -> Batches:
    """Make typed rows of the pieces of one table."""
    for batch in pieces:
        for data in batch.column("data"):
            rows = pa.ipc.open_stream(data.as_py()).read_all()
            yield from rows.cast(spark_schema(rows.schema)).to_batches()
