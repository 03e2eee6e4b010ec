"""Audits each path by Spark and by this process, in an environment with one release of Spark; fails where the findings differ.

PYTHON compare_engines.py DIRECTORY PATH...    # tables are written below DIRECTORY

One line of each path; those that differ say in what.
"""

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


def table_of(directory, *arguments):
    """Write a table of findings by the command line; return it."""
    sys.argv = ["kaudit", *arguments, "--quiet", "--exit-zero", "--output-format", "parquet", "-o", str(directory)]
    assert run() in (0, 4), arguments
    return pa.concat_tables(pq.read_table(path) for path in sorted((directory / "findings").glob("*.parquet")))


def main():
    into, *paths = sys.argv[1:]
    differ = 0
    with session(SparkOptions("local[2]", ["spark.ui.enabled=false", "spark.sql.shuffle.partitions=4"]), None) as spark:
        assert spark.version == pyspark.__version__
        for number, path in enumerate(paths):
            try:
                found = compared(spark, path, Path(into, str(number)))
            except AssertionError as error:
                found, differ = f"DIFFERS: {error}", differ + 1
            sys.stdout.write(f"{path}: {found}\n")
            sys.stdout.flush()
        if len(paths) > 1:
            several_logs(spark, paths[:2])
        typed_rows(spark, paths[0], Path(into))
    sys.exit(min(differ, 1))


def compared(spark, path, into):
    """Compare one path by every road; return what was found."""
    local, by_spark = kaudit.scan(path), kaudit.scan(path, engine="spark", spark=spark)
    assert [each.to_dict() for each in by_spark.findings] == [each.to_dict() for each in local.findings], "findings"
    assert (by_spark.summary, by_spark.verdict) == (local.summary, local.verdict), "summary"
    fingerprints = [finding.fingerprint for finding in local.findings]
    rows = ks.findings(spark, path, allow_incomplete=True).select("fingerprint").collect()
    assert [row.fingerprint for row in rows] == fingerprints, "DataFrame of the path"
    batches = ks.batches(spark, path)
    again = ks.findings(ks.runs(batches), allow_incomplete=True)
    assert again.count() == len(rows), "DataFrame of batches"
    tables = [table_of(Path(f"{into}-{engine}"), "scan", "--engine", engine, path) for engine in ("local", "spark")]
    assert tables[0].num_rows == len(rows), "rows of the table"
    assert tables[0].equals(tables[1]), "tables"
    return f"{len(rows)} findings of {batches.count()} batches"


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
