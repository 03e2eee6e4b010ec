"""The functions that Spark's tasks run, called one after the other: what DataFrames give, without a JVM."""

import pyarrow as pa
from pyspark.sql.types import StructType

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.report.machine.tables import finding_row
from kaudit.scanning.options import ScanOptions
from kaudit.spark.assembling import CHUNK, KEY
from kaudit.spark.batches_to_runs import batches_to_runs
from kaudit.spark.judging import ROWS, Judge
from kaudit.spark.options import read_options
from kaudit.spark.partition_tables import assembled_rows, rows_of_histories
from kaudit.spark.sources import SOURCES


def load(table, *paths, **options):
    """Return the record batches of a data source, in the order of its tasks."""
    text = {name: str(value) for name, value in options.items()} | {"paths": ",".join(map(str, paths))}
    (source,) = (source for source in SOURCES if source.name() == f"kaudit.{table}")
    reader = source(text).reader(StructType())
    return [batch for partition in reader.partitions() for batch in reader.read(partition)]


def runs_of(batches):
    return list(batches_to_runs(iter(batches)))


def chunk_rows(runs):
    """Return chunks as rows of an assembling task."""
    for batch in runs:
        rows = batch.filter(batch.column("chunk").is_valid())
        columns = {name: rows.column(name) for name in (*KEY, "segment_number", "first_position")}
        columns |= {"kind": pa.array([CHUNK] * rows.num_rows, pa.int32()), "data": rows.column("chunk")}
        yield pa.RecordBatch.from_arrays([columns[field.name] for field in ROWS], schema=ROWS)


def sorted_rows(*parts):
    """Return rows as Spark sorts them for an assembling task, few at a time."""
    table = pa.concat_tables(pa.Table.from_batches(part, schema=ROWS) for part in parts)
    order = [*KEY, "kind", "segment_number", "first_position"]
    return iter(table.sort_by([(name, "ascending") for name in order]).to_batches(max_chunksize=7))


def together(runs, *paths, **options):
    """Return the rows of an assembling task: plans and chunks of all partitions."""
    return sorted_rows(load("partitions", *paths, **options), chunk_rows(runs))


def judge(paths, **options):
    return Judge(read_options({"paths": ",".join(map(str, paths))}).scan_options(**options), allow_incomplete=True)


def findings(runs, *paths, **options):
    """Return the rows of `findings`, of runs."""
    assembled = assembled_rows(together(runs, *paths))
    return [row for batch in judge(paths, **options).findings(assembled) for row in batch.to_pylist()]


def histories(table, runs, *paths):
    """Return the rows of `timelines` or `producers`, of runs."""
    judged = judge(paths).judged(assembled_rows(together(runs, *paths)))
    return [
        row
        for batch in rows_of_histories(sorted_rows(judged, together(runs, *paths)), table)
        for row in batch.to_pylist()
    ]


def scanned(*paths, **options):
    """Return the rows of `findings`, of the local engine."""
    result = local.scan(ScanOptions([str(path) for path in paths], **options), SilentProgress())
    return [finding_row(finding) for finding in result.findings]
