"""The functions that Spark's tasks run, called one after the other: what DataFrames give, without a JVM."""

import pyarrow as pa
from pyspark.sql.types import StructType

from kaudit.engines import local
from kaudit.engines.kept_rows import HISTORIES
from kaudit.engines.progress import SilentProgress
from kaudit.engines.rows import NO_ROWS
from kaudit.report.machine.tables import finding_row
from kaudit.scanning.options import ScanOptions
from kaudit.source.schemes import open_segment
from kaudit.spark.composition import STEP_ORDER, Evidence, Histories, WithIncidents, make_findings
from kaudit.spark.options import read_options
from kaudit.spark.rows import batches_to_runs
from kaudit.spark.sources import SOURCES
from kaudit.spark.tasks import CHUNK, CHUNK_ORDER, CHUNKS, KEY, arrow_schema, replay


def load(table, *paths, **options):
    """Return the record batches of a data source, in the order of its tasks."""
    text = {name: str(value) for name, value in options.items()} | {"paths": ",".join(map(str, paths))}
    (source,) = (source for source in SOURCES if source.name() == f"kaudit.{table}")
    reader = source(text).reader(StructType())
    return [batch for partition in reader.partitions() for batch in reader.read(partition)]


def runs_of(batches):
    return list(batches_to_runs(iter(batches)))


def chunk_rows(runs):
    """Return chunks as rows of the plan."""
    for batch in runs:
        rows = batch.filter(batch.column("chunk").is_valid())
        columns = {name: rows.column(name) for name in (*KEY, "segment_number")}
        columns |= {"kind": pa.array([CHUNK] * rows.num_rows, pa.int32()), "data": rows.column("chunk")}
        columns["place"] = rows.column("first_position")
        schema = arrow_schema(CHUNKS)
        arrays = [columns.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def sorted_rows(*parts, order=(*KEY, *CHUNK_ORDER)):
    """Return rows as Spark sorts them for a task, few at a time."""
    table = pa.concat_tables(pa.Table.from_batches(part) for part in map(list, parts) if part)
    return iter(table.sort_by([(name, "ascending") for name in order]).to_batches(max_chunksize=7))


def plan_of(runs, *paths, **options):
    """Return the rows of plans and chunks of all partitions, from runs; from the log where they are None."""
    if runs is None:
        return sorted_rows(load("partitions", *paths, cut="true", **options))
    return sorted_rows(load("partitions", *paths, **options), chunk_rows(runs))


def asked(paths, **options):
    return read_options({"paths": ",".join(map(str, paths))}).scan_options(**options)


def exchanged(rows):
    """Return the rows of one step as Spark brings them to the next."""
    return sorted_rows(rows, order=STEP_ORDER)


def joined(plan, options, *, allow_incomplete=True):
    """Return the record batches of `findings`, of sorted rows of the plan."""
    known = exchanged(Evidence(options)(exchanged(replay(plan, NO_ROWS, open_segment))))
    return list(WithIncidents(allow_incomplete)(exchanged(make_findings(known))))


def findings(runs, *paths, **options):
    """Return the rows of `findings`, of runs; of the log where they are None."""
    return [row for batch in joined(plan_of(runs, *paths), asked(paths, **options)) for row in batch.to_pylist()]


def made_histories(table, runs, *paths, allow_incomplete=True):
    """Return the record batches of `timelines` or `producers`, of runs."""
    options = asked(paths)
    known = exchanged(Evidence(options)(exchanged(replay(plan_of(runs, *paths), HISTORIES, open_segment))))
    return list(Histories(table, options, allow_incomplete=allow_incomplete)(known))


def histories(table, runs, *paths):
    """Return the rows of `timelines` or `producers`, of runs."""
    return [row for batch in made_histories(table, runs, *paths) for row in batch.to_pylist()]


def scanned(*paths, **options):
    """Return the rows of `findings`, of the local engine."""
    result = local.scan(ScanOptions([str(path) for path in paths], **options), SilentProgress())
    return [finding_row(finding) for finding in result.findings]
