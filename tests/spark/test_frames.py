"""kaudit.spark on Spark: lazy DataFrames, made of one another, and the data sources."""

import shutil
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions

import kaudit
import kaudit.spark as ks
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.model.table_columns import DATAFRAME_TABLES, SCAN_TABLES, dataframe_column
from kaudit.report.machine.tables import finding_row
from kaudit.scanning.options import ScanOptions
from tests.engines.conftest import as_reported
from tests.engines.faulty_logs import FAULTS, duplicates
from tests.spark.in_process import as_table, histories, load

pytestmark = pytest.mark.jvm
RETRIES = str(Path("samples/retries").absolute())


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    root = tmp_path_factory.mktemp("logs")
    for number, make in enumerate(FAULTS):
        make(root / f"orders-{number}")
    return root


@pytest.fixture(scope="module")
def scanned(logs):
    return local.scan(ScanOptions([str(logs)]), SilentProgress())


def test_findings_of_runs_of_batches_are_those_of_scan(spark, logs, scanned):
    batches = ks.batches(spark, logs)
    # rows as they come out of a join with another table: in any order, with columns of their own
    owners = spark.createDataFrame([("orders", "billing")], "topic string, owner string")
    joined = batches.join(owners, "topic").repartition(3)
    found = ks.findings(ks.runs(joined)).toArrow().to_pylist()
    assert as_table(found) == [finding_row(finding) for finding in scanned.findings]


def test_timelines_of_a_path_are_those_of_tasks(spark, logs):
    found = ks.timelines(spark, logs).toArrow().to_pylist()
    assert found == histories("timelines", load("runs", logs), logs)


def test_rows_of_several_logs_joined_by_union_or_appended_to_a_table_have_the_findings_of_all(spark, logs, tmp_path):
    """Both have the schema, and its metadata, of the first alone."""
    other = duplicates(tmp_path / "payments" / "payments-0").parent
    expected = local.scan(ScanOptions([str(logs), str(other)]), SilentProgress()).findings
    months = [ks.batches(spark, log) for log in (logs, other)]
    union = months[0].unionByName(months[1])
    assert as_table(ks.findings(ks.runs(union)).toArrow().to_pylist()) == [finding_row(finding) for finding in expected]
    for rows in months:
        rows.write.mode("append").parquet(str(tmp_path / "table"))
    table = spark.read.parquet(str(tmp_path / "table"))
    assert as_table(ks.findings(ks.runs(table)).toArrow().to_pylist()) == [finding_row(finding) for finding in expected]


def test_what_a_filter_leaves_has_its_findings_and_no_others(spark, logs, scanned):
    rows = ks.batches(spark, logs).where("partition in (1, 2)").repartition(5)
    found = ks.findings(ks.runs(rows)).toArrow().to_pylist()
    assert (
        as_table(found) == [finding_row(finding) for finding in scanned.findings if finding.partition in {1, 2}] != []
    )


def test_a_row_that_no_log_has_fails_the_action_in_one_sentence(spark, logs):
    rows = ks.batches(spark, logs).withColumn("path", functions.concat(functions.lit("/elsewhere"), "path"))
    found = ks.findings(ks.runs(rows))
    for action in (found.collect, found.count, found.toArrow):
        with pytest.raises(kaudit.UsageError, match=r"^/elsewhere/\S+\.log: these rows are of no segment [^\n]*$"):
            action()


def test_what_cannot_be_read_fails_an_action_in_one_line(spark):
    for rows in (ks.batches(spark, "/no/such/place"), spark.read.format("kaudit.findings").load("/no/such/place")):
        with pytest.raises(kaudit.UsageError, match=r"^no such file or directory: /no/such/place$"):
            rows.collect()
    with pytest.raises(kaudit.UsageError, match=r"^option topc: there is none; did you mean topics"):
        spark.read.format("kaudit.findings").option("topc", "orders").load("/no/such/place")


def test_stages_have_as_many_tasks_as_there_is_work(spark, logs):
    """And not the 200 that Spark's exchanges have by themselves."""
    session = spark.newSession()
    tracker, context = session.sparkContext.statusTracker(), session.sparkContext
    context.setJobGroup("counted", "findings", interruptOnCancel=True)
    assert ks.findings(session, RETRIES, allow_incomplete=True).count() >= 0
    context.setLocalProperty("spark.jobGroup.id", None)
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("counted")]
    stages = [tracker.getStageInfo(stage) for stage in {stage for job in jobs for stage in job.stageIds}]
    assert max(stage.numTasks for stage in stages if stage is not None) <= 4


def test_kaudit_scan_on_a_session(spark, logs, scanned):
    result = kaudit.scan(logs, engine="spark", spark=spark, select=["KA1"])
    own = [finding for finding in scanned.findings if finding.code.startswith("KA1")]
    assert as_reported(result.findings) == as_reported(own)
    assert as_reported(result.partitions) == as_reported(scanned.partitions)
    with pytest.raises(kaudit.UsageError, match=r"^no such file or directory: /no/such/place$"):
        kaudit.scan("/no/such/place", engine="spark", spark=spark)


def test_records_are_what_producers_sent(spark):
    records = spark.read.format("kaudit.records").option("topics", "events").option("last_offset", 2).load(RETRIES)
    first, *_, last = records.orderBy("offset").collect()
    assert (first.offset, first.key, first.value, first.headers, first.error) == (0, None, b"event 0", [], None)
    assert (last.offset, last.value) == (2, b"event 2")


def test_filters_go_down_to_the_source(spark, logs):
    ks.register(spark)
    source = spark.read.format("kaudit.batches").option("pushdown", "true").load(str(logs))
    chosen = source.where("topic = 'orders' and partition in (1, 2) and base_offset >= 20")
    expected = [
        (row["partition"], row["base_offset"])
        for rows in load("batches", logs)
        for row in rows.to_pylist()
        if row["partition"] in {1, 2} and row["base_offset"] >= 20
    ]
    assert sorted(map(tuple, chosen.select("partition", "base_offset").collect())) == sorted(expected) != []


def test_columns_are_typed_and_documented(spark, logs):
    for table, function in (
        ("batches", ks.batches),
        ("runs", ks.runs),
        ("records", ks.records),
        ("findings", ks.findings),
    ):
        schema = function(spark, logs).schema
        assert schema.names == list(DATAFRAME_TABLES[table])
        assert [field.metadata["comment"] for field in schema] == [
            dataframe_column(table, name).meaning for name in schema.names
        ]
    types = {field.name: field.dataType.simpleString() for field in ks.batches(spark, logs).schema}
    assert (types["producer_id"], types["producer_epoch"], types["max_timestamp"]) == (
        "bigint",
        "smallint",
        "timestamp",
    )


def test_nothing_is_read_before_an_action(spark):
    ks.producers(ks.runs(ks.batches(spark, "/no/such/place", since=datetime(2026, 1, 1, tzinfo=UTC))))
    with pytest.raises(kaudit.UsageError, match=r"^no such file or directory: /no/such/place$"):
        ks.findings(spark, "/no/such/place")  # listed at once
    wrong: Any = {"topic": ["orders"]}
    with pytest.raises(kaudit.UsageError, match="did you mean topics"):
        ks.batches(spark, "/no/such/place", **wrong)
    with pytest.raises(kaudit.UsageError, match="position missing"):
        ks.runs(ks.batches(spark, "/no/such/place").drop("position"))
    with pytest.raises(kaudit.UsageError, match="do not say what they were read from"):
        ks.findings(spark.range(3))


def test_a_stream_of_findings_goes_on_where_it_stopped(spark, tmp_path):
    """Each run of the query audits what has arrived since the one before; a table merged from its rows is that of a scan."""
    logs = tmp_path / "logs"
    table: dict[str, str] = {}

    def merge(rows, _):
        for row in rows.collect():
            table.pop(row.merge_key, None) if row.change == "withdrawn" else table.__setitem__(row.merge_key, row.code)

    def run():
        ks.register(spark)
        source = spark.readStream.format("kaudit.findings").option("state", str(tmp_path / "state"))
        rows = source.option("allow_incomplete", "true").load(str(logs))
        assert rows.isStreaming
        written = rows.writeStream.foreachBatch(merge).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = written.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return sum(progress.numInputRows for progress in query.recentProgress)

    for number in range(2):
        shutil.copytree("samples/duplicates", logs / f"b{number}")
        assert run() > 0
        assert table == {finding.key: finding.code for finding in kaudit.scan(logs).findings}
        assert run() == 0


def test_a_store_that_is_down_ends_actions_and_streams_in_one_line_soon(spark, tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        dead = f"hdfs://127.0.0.1:{held.getsockname()[1]}/logs"
        ks.register(spark)
        source = spark.readStream.format("kaudit.findings").option("state", str(tmp_path / "state")).load(dead)
        written = source.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        for action in (
            lambda: written.start().awaitTermination(60),
            lambda: ks.findings(spark, dead).collect(),
            lambda: ks.batches(spark, dead).collect(),
            lambda: ks.diff(spark, [dead, RETRIES]).collect(),
            lambda: spark.read.format("kaudit.dedup").load(dead).collect(),
        ):
            began = time.monotonic()
            with pytest.raises(kaudit.NothingToAuditError, match=r"^[^\n]*nobody answers at 127[^\n]*$"):
                action()
            assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("table", "sample", "options"),
    [
        ("diff", "replicas/b1,replicas/b2,replicas/b3", {}),
        ("dedup", "retries", {}),
        ("ledger", "mirror/source", {"target": "mirror/target"}),
    ],
)
def test_comparisons_are_made_in_tasks(spark, table, sample, options):
    paths = [str(Path("samples", name).absolute()) for name in sample.split(",")]
    own = {name: str(Path("samples", value).absolute()) for name, value in options.items()}
    ks.register(spark)
    rows = spark.read.format(f"kaudit.{table}").options(paths=",".join(paths), **own).load().toArrow().to_pylist()
    assert rows == [row for batch in load(table, *paths, **own) for row in batch.to_pylist()] != []


@pytest.mark.parametrize("table", ["timelines", "producers"])
def test_histories_of_what_union_append_repartition_and_filter_give_are_those_of_the_logs(spark, tmp_path, table):
    logs = [duplicates(tmp_path / name / f"{name}-0").parent for name in ("orders", "payments")]
    make = getattr(ks, table)
    first, second = (ks.batches(spark, log) for log in logs)
    for rows in (first, second):
        rows.write.mode("append").parquet(str(tmp_path / "table"))
    appended = spark.read.parquet(str(tmp_path / "table"))
    expected = sorted(map(str, make(spark, logs).toArrow().to_pylist()))
    for rows in (first.unionByName(second), appended.repartition(3)):
        assert sorted(map(str, make(ks.runs(rows)).toArrow().to_pylist())) == expected
    only = make(ks.runs(appended.where("topic = 'payments'"))).toArrow().to_pylist()
    assert sorted(map(str, only)) == [row for row in expected if "payments" in row] != []


def test_topics_and_runs_of_tables_stay_text(spark, tmp_path):
    """Spark by itself takes directories topic=0042 and run_id=2026-11-28 for a number and a date."""
    target = tmp_path / "findings" / "run_id=2026-11-28"
    rows = [("0042", "KA101"), ("7", "KA104")]
    spark.createDataFrame(rows, "topic string, code string").write.partitionBy("topic").parquet(str(target))
    found = ks.read_table(spark, f"{tmp_path}/", "findings")
    assert sorted(map(tuple, found.select("run_id", "topic", "code").collect())) == [
        ("2026-11-28", *row) for row in sorted(rows)
    ]
    assert set(SCAN_TABLES["findings"]) | {"run_id"} == set(found.columns)
    with pytest.raises(kaudit.UsageError, match=r"^table finding: there is none; there are findings,"):
        ks.read_table(spark, str(tmp_path), "finding")
