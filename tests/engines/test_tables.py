"""--output-format parquet: the same tables from both engines, whole or not at all; the questions of docs/tables.md."""

import json
import re
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from kaudit.cli.app import run
from kaudit.engines.progress import SilentProgress
from kaudit.model.table_columns import SCAN_TABLES
from kaudit.report.machine import parquet
from kaudit.scanning.options import ScanOptions
from tests.engines.faulty_logs import FAULTS, duplicates, gap
from tests.logs import Log, data, marker

DOCUMENT = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()
QUESTIONS = re.findall(r"\*\*(.+?)\*\*\n\n```sql\n(.+?)```", DOCUMENT, re.DOTALL)
ENGINES = ["local", pytest.param("spark", marks=pytest.mark.jvm)]


def fetch_all(query: str) -> list[tuple[object, ...]]:
    relation = duckdb.sql(query)
    assert relation is not None
    return relation.fetchall()


@pytest.fixture
def logs(tmp_path):
    for number, make in enumerate(FAULTS):
        make(tmp_path / "logs" / f"orders-{number}")
    return tmp_path / "logs"


@pytest.fixture(params=ENGINES)
def engine_name(request):
    if request.param == "spark":
        request.getfixturevalue("spark_session")
    return request.param


def write(command, logs, target, engine="local", *more):
    return run(
        [
            command,
            str(logs),
            "--engine",
            engine,
            "--output-format",
            "parquet",
            "-o",
            str(target),
            "--reproducible",
            "-q",
            *more,
        ]
    )


def read(target):
    return {path.name: pq.read_table(path).to_pylist() for path in target.iterdir() if path.is_dir()}


@pytest.mark.parametrize("command", ["scan", "timeline"])
def test_tables_and_their_manifest(logs, tmp_path, engine_name, local, command):
    assert write(command, logs, tmp_path / "result", engine_name) == 1
    tables = read(tmp_path / "result")
    manifest = json.loads((tmp_path / "result" / "manifest.json").read_text())
    assert manifest["rows"] == {name: len(rows) for name, rows in tables.items()}
    assert set(tables) == set(SCAN_TABLES) - {
        "blocks",
        "comparisons",
        "batches",
        "digests",
        "record_ranges",
        "offset_map",
    }
    histories = local.timeline(logs)
    assert [row["fingerprint"] for row in tables["findings"]] == [
        found.fingerprint for found in histories.scan.findings
    ]
    summary = histories.scan.summary.to_dict()
    assert {name: manifest["summary"][name] for name in summary if name != "statuses"} == {
        name: value for name, value in summary.items() if name != "statuses"
    }
    assert manifest["summary"]["statuses"] == {"known": 0, "new": len(histories.scan.findings), "suppressed": 0}
    assert len(tables["producers"]) == sum(len(made.producer_ids) for made in histories.histories)
    assert len(tables["timelines"]) == sum(len(made.rows) for made in histories.histories)
    assert {row["status"] for row in tables["segments"]} == {"read"}
    assert sum(row["batches"] for row in tables["producers"]) == sum(
        row["batches"] for row in tables["timelines"] if row["kind"] == "run"
    )


@pytest.mark.jvm
@pytest.mark.parametrize("command", ["scan", "timeline", "producers"])
def test_engines_write_the_same_files(spark_session, logs, tmp_path, command):
    more = ["--batches"] if command == "scan" else []
    for engine in ("local", "spark"):
        write(command, logs, tmp_path / engine, engine, *more)
    files = {path.relative_to(tmp_path / "local") for path in (tmp_path / "local").rglob("*") if path.is_file()}
    assert len(files) == {"scan": 7, "timeline": 6, "producers": 6}[command]
    for file in files:
        assert (tmp_path / "local" / file).read_bytes() == (tmp_path / "spark" / file).read_bytes()


def test_a_row_for_every_batch(tmp_path, capsys):
    log = Log()
    log.append(data(7, 1, 5, 3, transactional=True))
    log.append(marker(7, 1))
    log.append(data(-1, -1, -1, 2))
    log.write(tmp_path / "orders-0")
    write("scan", tmp_path, tmp_path.parent / f"{tmp_path.name}-result", "local", "--batches")
    rows = read(tmp_path.parent / f"{tmp_path.name}-result")["batches"]
    sizes = [len(batch.encode()) for batch in log.batches]
    assert [(row["position"], row["bytes"]) for row in rows] == [
        (0, sizes[0]), (sizes[0], sizes[1]), (sizes[0] + sizes[1], sizes[2])
    ]  # fmt: skip
    assert [(row["base_offset"], row["last_offset"], row["records"]) for row in rows] == [
        (0, 2, 3),
        (3, 3, 1),
        (4, 5, 2),
    ]
    assert [(row["producer_id"], row["producer_epoch"]) for row in rows] == [(7, 1), (7, 1), (None, None)]
    assert [(row["first_sequence"], row["last_sequence"]) for row in rows] == [(5, 7), (None, None), (None, None)]
    assert [(row["is_transactional"], row["is_control"]) for row in rows] == [
        (True, False),
        (True, True),
        (False, False),
    ]
    assert {(row["topic"], row["partition"], row["magic"], row["codec"]) for row in rows} == {("orders", 0, 2, "none")}
    assert run(["scan", str(tmp_path), "--batches"]) == 2
    assert "--batches needs --output-format parquet" in capsys.readouterr().err


def test_an_earlier_result_is_replaced_and_nothing_else(tmp_path, capsys):
    gap(tmp_path / "a" / "orders-0")
    duplicates(tmp_path / "b" / "orders-0")
    target = tmp_path / "result"
    write("scan", tmp_path / "a", target)
    write("scan", tmp_path / "b", target)
    assert {row["code"] for row in read(target)["findings"]} == {"KA101"}
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "result"}
    (target / "manifest.json").unlink()
    assert write("scan", tmp_path / "b", target) == 2
    assert "something else than an earlier result" in capsys.readouterr().err
    assert write("scan", tmp_path / "a", tmp_path / "a" / "result") == 2


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    gap(tmp_path / "a" / "orders-0")
    target = tmp_path / "result"
    write("scan", tmp_path / "a", target)
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet, "to_table", full)
    assert write("scan", tmp_path / "a", target) == 2
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before
    assert {path.name for path in tmp_path.iterdir()} == {"a", "result"}


def fails(history, findings, newest):
    raise ValueError("a task's own trouble")


@pytest.mark.jvm
def test_a_job_that_fails_is_reported_in_one_line(spark_session, tmp_path):
    from kaudit.spark import engine as spark
    from kaudit.spark.jobs import SparkFailedError

    options = ScanOptions([str(gap(tmp_path / "orders-0"))])
    with (
        spark.record(options, SilentProgress()) as recording,
        pytest.raises(SparkFailedError, match=r"^Spark gave up: .*a task's own trouble$"),
    ):
        list(recording.write_histories(fails, recording.result.findings))


def test_tables_need_a_directory(tmp_path, capsys):
    assert run(["scan", str(gap(tmp_path / "orders-0")), "--output-format", "parquet"]) == 2
    assert "needs a directory, -o DIR" in capsys.readouterr().err


@pytest.fixture(scope="module")
def result(tmp_path_factory, evidence):
    target = tmp_path_factory.mktemp("questions") / "result"
    write("timeline", evidence.oracle("2.8.2", "logdir"), target)
    return target


@pytest.mark.parametrize("query", [query for _, query in QUESTIONS], ids=[title for title, _ in QUESTIONS])
def test_questions_in_duckdb(result, query):
    query = re.sub(r"\{(\w+)\}", rf"'{result}/\1/*.parquet'", query)
    assert fetch_all(query)


@pytest.mark.jvm
def test_questions_in_spark_sql_have_the_same_answers(spark_session, result):
    assert len(QUESTIONS) == 5
    for _, query in QUESTIONS:
        on_spark = spark_session.sql(re.sub(r"\{(\w+)\}", rf"parquet.`{result}/\1`", query)).toArrow().to_pylist()
        in_duckdb = fetch_all(re.sub(r"\{(\w+)\}", rf"'{result}/\1/*.parquet'", query))
        assert [tuple(row.values()) for row in on_spark] == in_duckdb


def test_producers_with_their_blocks(tmp_path):
    target = tmp_path / "result"
    write("producers", "samples/producer-ids", target, "local", "--blocks", "samples/producer-ids/blocks.jsonl")
    rows = fetch_all(
        f"SELECT DISTINCT producer_id, broker FROM '{target}/producers/*.parquet' "
        f"JOIN '{target}/blocks/*.parquet' ON producer_id BETWEEN first_producer_id AND last_producer_id "
        "WHERE topic <> 'flood' ORDER BY ALL"
    )
    # the counter was set back: 4 and 7 are of a block that two brokers were granted
    assert rows == [(4, 1), (4, 2), (7, 1), (7, 2), (1003, 2)]
