"""kaudit.spark on Spark: lazy DataFrames, made of one another, and the data sources."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import kaudit
import kaudit.spark as ks
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.model.table_columns import DATAFRAME_COLUMNS, DATAFRAME_TABLES
from kaudit.report.machine.tables import finding_row
from kaudit.scanning.options import ScanOptions
from tests.engines.conftest import as_reported
from tests.engines.faulty_logs import FAULTS
from tests.spark.in_process import histories, load

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
    assert found == [finding_row(finding) for finding in scanned.findings]


def test_timelines_of_a_path_are_those_of_tasks(spark, logs):
    found = ks.timelines(spark, logs).toArrow().to_pylist()
    expected = histories("timelines", load("runs", logs), logs)
    assert sorted(map(str, found)) == sorted(map(str, expected))


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
            DATAFRAME_COLUMNS[name].meaning for name in schema.names
        ]
    types = {field.name: field.dataType.simpleString() for field in ks.batches(spark, logs).schema}
    assert (types["producer_id"], types["producer_epoch"], types["max_timestamp"]) == (
        "bigint",
        "smallint",
        "timestamp",
    )


def test_nothing_is_read_before_an_action(spark):
    ks.producers(ks.runs(ks.batches(spark, "/no/such/place", since=datetime(2026, 1, 1, tzinfo=UTC))))
    wrong: Any = {"topic": ["orders"]}
    with pytest.raises(kaudit.UsageError, match="did you mean topics"):
        ks.batches(spark, "/no/such/place", **wrong)
    with pytest.raises(kaudit.UsageError, match="position missing"):
        ks.runs(ks.batches(spark, "/no/such/place").drop("position"))
    with pytest.raises(kaudit.UsageError, match="do not say what they were read from"):
        ks.findings(spark.range(3))
