"""Tables that executors write to a URL: every row of the local engine's, by run and topic, committed by a manifest."""

import json

import duckdb
import pyarrow.parquet as pq
import pytest

from kaudit.cli.app import run
from kaudit.spark import task_findings as spark_judging
from tests.engines.faulty_logs import FAULTS, gap

pytestmark = pytest.mark.jvm
TABLES = ("findings", "partitions", "segments", "timelines", "producers", "digests", "batches")


@pytest.fixture
def logs(tmp_path):
    for number, make in enumerate(FAULTS):
        make(tmp_path / "logs" / f"orders-{number}")
    gap(tmp_path / "logs" / "payments-0")
    return tmp_path / "logs"


def scan(logs, target, *more):
    tables = ("--output-format", "parquet", "-o", str(target), "--batches", "--digests")
    return run(["scan", str(logs), *tables, "--reproducible", "-q", *more])


def rows_of(query):
    relation = duckdb.sql(query)
    assert relation is not None
    return relation.fetchall()


def rows(files, names):
    columns = ", ".join(f'"{name}"' for name in names)
    return sorted(map(repr, rows_of(f"SELECT {columns} FROM read_parquet('{files}', hive_partitioning = true)")))


def test_executors_write_what_the_local_engine_writes(spark_session, logs, tmp_path, monkeypatch):
    # tables have every finding, however few are listed
    monkeypatch.setattr(spark_judging, "FINDINGS_OF_CHECK", 1)
    assert scan(logs, tmp_path / "local") == 1
    assert scan(logs, f"{(tmp_path / 'spark').as_uri()}/run_id=nightly", "--engine", "spark") == 1
    manifests = [
        json.loads(path.read_text())
        for path in (tmp_path / "local/manifest.json", tmp_path / "spark/manifests/run_id=nightly.json")
    ]
    assert manifests[1]["run_id"] == "nightly"
    assert {name: manifests[1]["rows"][name] for name in TABLES} == {
        name: manifests[0]["rows"][name] for name in TABLES
    }
    for table in TABLES:
        names = pq.read_schema(tmp_path / "local" / table / "part-00000.parquet").names
        own = rows(f"{tmp_path}/spark/{table}/run_id=*/topic=*/*.parquet", names)
        assert own == rows(f"{tmp_path}/local/{table}/*.parquet", names), table
        assert len(own) == manifests[1]["rows"][table] > 0
        assert (tmp_path / "spark" / table / "run_id=nightly" / "_SUCCESS").is_file()
        topics = {path.name for path in (tmp_path / "spark" / table / "run_id=nightly").glob("topic=*")}
        assert topics == {"topic=orders", "topic=payments"}


def test_a_run_is_replaced_by_its_repetition_and_others_are_not(spark_session, logs, tmp_path):
    target = (tmp_path / "audits").as_uri()
    for run_id in ("one", "two", "one"):
        assert scan(logs, f"{target}/run_id={run_id}", "--engine", "spark") == 1
    runs = rows_of(
        f"SELECT run_id, count(*), count(DISTINCT fingerprint) FROM read_parquet('{tmp_path}/audits/findings/*/*/*.parquet', "
        "hive_partitioning = true) GROUP BY run_id ORDER BY run_id"
    )
    assert [name for name, _, _ in runs] == ["one", "two"]
    assert runs[0][1:] == runs[1][1:]
    assert {path.name for path in (tmp_path / "audits" / "manifests").glob("run_id=*")} == {
        "run_id=one.json", "run_id=two.json"
    }  # fmt: skip


def test_timelines_of_chosen_ids_are_written_by_executors(spark_session, logs, tmp_path):
    chosen = ("--producer-id", "100", "--output-format", "parquet", "--reproducible", "-q")
    assert run(["timeline", str(logs), *chosen, "-o", str(tmp_path / "local")]) == 1
    target = f"{(tmp_path / 'spark').as_uri()}/run_id=one"
    assert run(["timeline", str(logs), "--engine", "spark", *chosen, "-o", target]) == 1
    for table in TABLES[:-2]:
        names = pq.read_schema(tmp_path / "local" / table / "part-00000.parquet").names
        own = rows(f"{tmp_path}/spark/{table}/run_id=one/topic=*/*.parquet", names)
        assert own == rows(f"{tmp_path}/local/{table}/*.parquet", names) != [], table
    ids = rows_of(f"SELECT DISTINCT producer_id FROM read_parquet('{tmp_path}/local/timelines/*.parquet')")
    assert ids == [(100,)]


@pytest.mark.parametrize(
    ("command", "engine", "why"),
    [
        ("scan", "local", "the local engine writes to a directory"),
        ("timeline", "local", "the local engine writes to a directory"),
        ("producers", "local", "the local engine writes to a directory"),
    ],
)
def test_what_cannot_be_written_to_a_url_is_refused_before_the_audit(logs, capsys, command, engine, why):
    code = run([command, str(logs), "--engine", engine, "--output-format", "parquet", "-o", "hdfs://nowhere:1/audits"])
    assert code == 2
    assert why in capsys.readouterr().err


def test_a_store_that_spark_has_no_connector_for_is_one_line(spark_session, logs, capsys):
    assert scan(logs, "s3a://audits/kafka", "--engine", "spark") == 4
    assert "spark.jars.packages=org.apache.hadoop:hadoop-aws" in capsys.readouterr().err
