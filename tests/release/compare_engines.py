"""Audits inputs by Spark and by this process, in an environment with one release of Spark; fails where the findings differ.

PYTHON compare_engines.py DIRECTORY PATH[:PATH]...    # reports and tables are written below DIRECTORY

Reports and tables are compared for each argument, DataFrames for all of them together. One line of each; those that differ say in what.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import functions

import kaudit
import kaudit.spark as ks
from kaudit.cli.app import run
from kaudit.spark.releases import HAS_DATA_SOURCES
from kaudit.spark.session import SparkOptions, session


def audited(engine, paths, into):
    """Audit by the command line; return the report and the tables by name."""
    into.parent.mkdir(parents=True, exist_ok=True)
    formats = f"json:{into}.json", f"parquet:{into}"
    sys.argv = ["kaudit", "scan", "--engine", engine, *paths, "--quiet", "--exit-zero"]
    sys.argv += [word for form in formats for word in ("--output-format", form)]
    assert run() in (0, 4), paths
    report = json.loads(Path(f"{into}.json").read_text())
    del report["run"]  # host and time
    tables = {
        directory.name: pa.concat_tables(pq.read_table(file) for file in sorted(directory.glob("*.parquet")))
        for directory in into.iterdir()
        if directory.is_dir()
    }
    return report, tables


def main():
    into, groups = Path(sys.argv[1]), [argument.split(":") for argument in sys.argv[2:]]
    together = [path for paths in groups for path in paths]
    differ = 0
    with session(SparkOptions("local[2]", ["spark.ui.enabled=false", "spark.sql.shuffle.partitions=4"]), None) as spark:
        assert spark.version == pyspark.__version__
        steps = [
            (sys.argv[2 + number], lambda paths=paths, number=number: reports(paths, into / str(number)))
            for number, paths in enumerate(groups)
        ]
        for name, step in (*steps, ("together", lambda: frames(spark, together))):
            try:
                found = step()
            except AssertionError as error:
                found, differ = f"DIFFERS: {error}", differ + 1
            sys.stdout.write(f"{name}: {found}\n")
            sys.stdout.flush()
        several_logs(spark, together[:2])
        typed_rows(spark, together[0], into)
    sys.exit(min(differ, 1))


def reports(paths, into):
    """Compare reports and tables of one audit; return what was found."""
    (local, tables), (by_spark, same) = (audited(engine, paths, into / engine) for engine in ("local", "spark"))
    for part, content in local.items():
        assert json.dumps(by_spark[part]) == json.dumps(content), part
    assert by_spark.keys() == local.keys(), "parts of the report"
    assert same.keys() == tables.keys(), "names of tables"
    for name, table in tables.items():
        assert same[name].equals(table), f"table {name}"
    assert tables["findings"].num_rows == len(local["findings"]), "rows of the table"
    return f"{len(local['findings'])} findings"


def frames(spark, paths):
    """Compare findings as DataFrames, of the paths and of their batches, with those of this process."""
    fingerprints = [finding.fingerprint for finding in kaudit.scan(paths).findings]
    for name, given in ("paths", (spark, paths)), ("batches", (ks.runs(ks.batches(spark, paths)),)):
        rows = ks.findings(*given, allow_incomplete=True).select("fingerprint").collect()
        assert [row.fingerprint for row in rows] == fingerprints, f"DataFrame of {name}"
    return f"{len(fingerprints)} findings as DataFrames"


def typed_rows(spark, path, into):
    """Structs and keys are those of findings, also as a stream where Spark has such sources, and comparisons have rows."""
    expected = {finding.key: finding.evidence.to_dict()["rule"] for finding in kaudit.scan(path).findings}
    rows = ks.findings(spark, path, allow_incomplete=True).select("merge_key", "evidence.rule").collect()
    assert dict(map(tuple, rows)) == expected != {}
    assert ks.dedup(spark, path).count() > 0
    if not HAS_DATA_SOURCES:
        return
    ks.register(spark)
    options = {"state": str(into / "state"), "allow_incomplete": "true"}
    stream = spark.readStream.format("kaudit.findings").options(**options).load(path)
    found = []
    written = stream.writeStream.foreachBatch(lambda news, _: found.extend(news.collect()))
    for _ in range(2):
        query = written.option("checkpointLocation", str(into / "checkpoint")).trigger(availableNow=True).start()
        assert query.awaitTermination(120)
    assert {row.merge_key: row.evidence.rule for row in found} == expected
    assert len(found) == len(expected)


def several_logs(spark, paths):
    """Rows of two logs in one DataFrame have the findings of both; rows of none of them fail the action in one line."""
    first, second = (ks.batches(spark, path) for path in paths)
    union = ks.runs(first.unionByName(second))
    expected = [finding.fingerprint for finding in kaudit.scan(paths).findings]
    found = ks.findings(union, allow_incomplete=True).select("fingerprint").collect()
    assert [row.fingerprint for row in found] == expected
    elsewhere = ks.findings(union.selectExpr("*").withColumn("path", functions.lit("/elsewhere.log")))
    said = ""
    try:
        elsewhere.collect()
    except kaudit.UsageError as error:
        said = str(error)
    assert said.startswith("/elsewhere.log: these rows are of no segment"), said
    assert "\n" not in said


main()
