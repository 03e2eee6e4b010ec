"""The functions that Spark's tasks run, called one after the other: what DataFrames give, without a JVM."""

from datetime import datetime
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.types import StructType

from kaudit.engines import local
from kaudit.engines.kept_rows import HISTORIES
from kaudit.engines.progress import SilentProgress
from kaudit.engines.rows import NO_ROWS
from kaudit.model.table_columns import SCAN_TABLES
from kaudit.report.machine.tables import finding_row, to_json
from kaudit.scanning.options import ScanOptions
from kaudit.source.schemes import open_segment
from kaudit.spark.composition import STEP_ORDER, Evidence, FindingRows, Histories, join_incidents, make_findings
from kaudit.spark.given_rows import CHUNK, GIVEN, note_origins, origin_row, plan_origins, replay_given
from kaudit.spark.options import read_options
from kaudit.spark.plan import listed_input
from kaudit.spark.rows import batches_to_runs
from kaudit.spark.sources import SOURCES
from kaudit.spark.tasks import CHUNK_ORDER, PLANNED, SCAN_WIDE, WHOLE, arrow_schema, read_task, replay, step

SHARDS = 3


class Steps(NamedTuple):
    """Rows of STEPS, and the number of shards."""

    rows: list[pa.RecordBatch]
    shards: int


def load(table, *paths, **options):
    """Return the record batches of a data source, in the order of its tasks."""
    text = {name: str(value) for name, value in options.items()} | {"paths": ",".join(map(str, paths))}
    (source,) = (source for source in SOURCES if source.name() == f"kaudit.{table}")
    reader = source(text).reader(StructType())
    return [batch for partition in reader.partitions() for batch in reader.read(partition)]


def runs_of(batches):
    return list(batches_to_runs(iter(batches)))


def sorted_rows(*parts, order=STEP_ORDER):
    """Return rows as Spark sorts them for a task, few at a time."""
    tables = [pa.Table.from_batches(part) for part in map(list, parts) if part]
    if not tables:
        return iter(())
    table = pa.concat_tables(tables)
    return iter(table.sort_by([(name, "ascending") for name in order]).to_batches(max_chunksize=7))


def asked(paths, **options):
    return read_options({"paths": list(map(str, paths))}).scan_options(**options)


def planned(*paths, **options):
    """Return the plan of an audit, its rows and its reading tasks."""
    plan = listed_input(asked(paths, **options)).planned()
    known = step(SCAN_WIDE, WHOLE, PLANNED, plan.known)
    return known, plan.share(2)


def read_and_replayed(*paths, keeps=NO_ROWS, **options):
    """Return the rows of STEPS of a log, as Spark's tasks read and replay it."""
    known, plan = planned(*paths, **options)
    return Steps([known, *replayed_works(plan.works, keeps)], plan.shuffle_partitions)


def replayed_works(works, keeps=NO_ROWS):
    """Return what reading and replaying tasks make of what is planned for them."""
    chunks = [batch for work in works for batch in read_task(work, open_segment)]
    return list(replay(sorted_rows(chunks, order=CHUNK_ORDER), keeps, open_segment))


def given_and_replayed(runs, *paths, keeps=NO_ROWS, **audit):
    """Return the rows of STEPS of rows of `runs`; the logs in `paths` are audited even without one."""
    chunks = []
    for batch in runs:
        rows = batch.filter(batch.column("chunk").is_valid())
        columns = {name: rows.column(name) for name in ("topic", "partition", "path", "segment_number", "origin")}
        columns |= {"kind": pa.array([CHUNK] * rows.num_rows, pa.int32()), "data": rows.column("chunk")}
        chunks.append(pa.RecordBatch.from_pydict({**columns, "place": rows.column("first_position")}))
    noted = [rows.select(arrow_schema(GIVEN).names) for rows in note_origins(iter(chunks))]
    origins = [origin_row(read_options({"paths": list(map(str, paths))}).origin)] if paths else []
    rows = plan_origins(sorted_rows(noted, origins, order=("place",)), audit, SHARDS)
    order = ("topic", "partition", "kind", "path", "place")
    return Steps(list(replay_given(sorted_rows(rows, order=order), keeps, open_segment)), SHARDS)


def replayed(runs, *paths, **options):
    """Return the rows of STEPS of rows of `runs`; of the log where they are None."""
    return read_and_replayed(*paths, **options) if runs is None else given_and_replayed(runs, *paths, **options)


def joined(steps, *, allow_incomplete=True):
    """Return the record batches of `findings`, of rows of STEPS."""
    known = sorted_rows(Evidence(steps.shards)(sorted_rows(steps.rows)))
    found = sorted_rows(join_incidents(sorted_rows(make_findings(known))))
    return list(FindingRows(allow_incomplete)(found))


def findings(runs, *paths, **options):
    """Return the rows of `findings`, of runs; of the log where they are None."""
    return as_table([row for batch in joined(replayed(runs, *paths, **options)) for row in batch.to_pylist()])


def as_table(rows):
    """Return rows of the DataFrame `findings` as the Parquet table has them: without what is of the audit, structs as JSON."""
    return [{name: row[name] for name in SCAN_TABLES["findings"]} | _as_json(row) for row in rows]


def _as_json(row):
    impact = {name: value for name, value in row["impact"].items() if value not in (None, [])}
    for name, value in impact.items():
        if isinstance(value, datetime):
            impact[name] = round(value.timestamp() * 1000)
    return {"evidence": row["evidence"]["json"], "impact": to_json(impact)}


def made_histories(table, runs, *paths, allow_incomplete=True):
    """Return the record batches of `timelines` or `producers`, of runs."""
    steps = replayed(runs, *paths, keeps=HISTORIES)
    known = sorted_rows(Evidence(steps.shards, HISTORIES.kind)(sorted_rows(steps.rows)))
    return list(Histories(table, allow_incomplete)(known))


def histories(table, runs, *paths):
    """Return the rows of `timelines` or `producers`, of runs."""
    return [row for batch in made_histories(table, runs, *paths) for row in batch.to_pylist()]


def scanned(*paths, **options):
    """Return the rows of `findings`, of the local engine."""
    result = local.scan(ScanOptions([str(path) for path in paths], **options), SilentProgress())
    return [finding_row(finding) for finding in result.findings]
