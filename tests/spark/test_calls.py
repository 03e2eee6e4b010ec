"""What the functions of kaudit.spark ask Spark for, and which options go where: no JVM."""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kaudit.spark as ks
from kaudit.errors import UsageError
from kaudit.scanning.options import Depth
from kaudit.spark import frames
from kaudit.spark.frames import _asked, _options_of, _read_options
from kaudit.spark.options import ReadOptions, read_options
from kaudit.spark.rows import NEEDED
from kaudit.spark.schemas import spark_schema
from kaudit.spark.sources import SOURCES
from tests.recorded_calls import RecordedCalls


@pytest.fixture
def session(monkeypatch) -> Any:
    monkeypatch.setattr(frames, "register", lambda _: None)
    return RecordedCalls("spark")


def loaded(table: str, spark: str = "spark", *, cut: bool = False, **options: Any) -> str:
    every = {
        "paths": ["/logs"],
        **options,
        "depth": options.get("depth", "crc"),
        "cut": cut,
        "pushdown": False,
        "digests": False,
        "allow_incomplete": False,
    }
    given = ", ".join(f"{name}={json.dumps(value)!r}" for name, value in every.items())
    return f"{spark}.read.format('kaudit.{table}').options({given}).load()"


@pytest.mark.parametrize("table", ["batches", "records", "runs"])
def test_a_table_is_a_data_source_with_the_options_that_were_given(session, table):
    options = {"topics": ["a", "b"], "first_offset": 0, "depth": "headers"}
    function: Any = getattr(ks, table)
    assert repr(function(session, "/logs", **options)) == loaded(
        table, topics=["a", "b"], first_offset=0, depth="headers"
    )


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("/logs", ("/logs",)),
        (Path("/logs"), ("/logs",)),
        ("logs", (os.path.abspath("logs"),)),  # noqa: PTH100 - as the driver makes it
        (["/logs", Path("/more"), "hdfs://nn/logs"], ("/logs", "/more", "hdfs://nn/logs")),
    ],
)
def test_paths_are_one_or_many_texts_or_paths(paths, expected):
    assert _read_options(paths, {}) == ReadOptions(paths=expected)


def test_an_option_that_is_none_is_not_given_and_times_become_ms():
    given: Any = {
        "topics": None,
        "partitions": (0, 3),
        "first_offset": 0,
        "last_offset": None,
        "since": "1970-01-01T00:00:01Z",
        "until": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),
        "log_start_offset": 0,
        "depth": None,
    }
    assert _read_options("/logs", given) == ReadOptions(
        paths=("/logs",), partitions=(0, 3), first_offset=0, since=1000, until=2000, log_start_offset=0
    )


def frame(*fields: Any) -> Any:
    return SimpleNamespace(schema=SimpleNamespace(fields=list(fields)))


def column(**metadata: Any) -> Any:
    return SimpleNamespace(metadata=metadata)


def test_rows_say_what_they_were_read_from():
    known = column(comment="a topic", kaudit={"paths": '["/logs"]', "cut": "true"})
    assert _options_of(frame(column(), known)) == ReadOptions(paths=("/logs",), cut=True)
    with pytest.raises(UsageError, match="do not say what they were read from: keep the column topic"):
        _options_of(frame(column(), column(comment="a topic")))


def test_options_of_paths_are_those_of_reading_and_of_judging():
    """Times choose findings, not what is read."""
    options = {
        "topics": ["orders"],
        "depth": "records",
        "since": "1970-01-01T00:00:01Z",
        "until": 2000,
        "now": datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC),
        "producer_ids": [7],
        "broker_version": "3.9",
        "allow_incomplete": True,
    }
    session: Any = None
    read, asked, allow_incomplete = _asked(session, "/logs", dict(options))
    assert read == ReadOptions(paths=("/logs",), topics=("orders",), depth="records")
    assert (list(asked.paths), list(asked.topics), asked.depth) == (["/logs"], ["orders"], Depth.RECORDS)
    assert (asked.since_ms, asked.until_ms, asked.now_ms) == (1000, 2000, 3000)
    assert (asked.producer_ids, asked.broker_version, allow_incomplete) == ([7], "3.9", True)
    assert _asked(session, "/logs", {})[2] is False


def test_rows_take_options_of_judging_alone():
    rows = frame(column(kaudit={"paths": '["/logs"]'}))
    read, asked, allow_incomplete = _asked(rows, None, {"producer_ids": [7]})
    assert (read.paths, asked.producer_ids, allow_incomplete) == (("/logs",), [7], False)
    with pytest.raises(UsageError, match=r"^depth, topics: given where the log is read, in batches\(\) or runs\(\)$"):
        _asked(rows, None, {"topics": ["orders"], "depth": "crc", "now": 1})


def test_runs_of_batches_need_all_of_their_columns(monkeypatch):
    schema = SimpleNamespace(fields=[column(kaudit={"paths": '["/logs"]'})])
    given: Any = RecordedCalls("batches", columns=(*NEEDED, "more"), schema=schema)
    asked = repr(ks.runs(given))
    names = ", ".join(map(repr, NEEDED))
    assert asked.startswith(f"batches.select({names}).mapInArrow(functools.partial(<function batches_to_runs")
    assert asked.endswith(f", {spark_schema('runs', {'paths': json.dumps(['/logs'])})!r})")
    lacking: Any = RecordedCalls("batches", columns=NEEDED[2:])
    with pytest.raises(UsageError) as raised:
        ks.runs(lacking)
    assert str(raised.value) == f"runs() needs all columns of batches(): {NEEDED[0]}, {NEEDED[1]} missing"


KEY = "'topic', 'partition', 'replica'"
PLAN = loaded("partitions", cut=True)
BY_PARTITION = f".repartition({KEY}).sortWithinPartitions({KEY}, 'kind', 'segment_number', 'place').mapInArrow("
BY_SHARD = ".repartition('shard').sortWithinPartitions('shard', 'job_index', 'kind').mapInArrow("
IN_ONE_TASK = ".repartition(1).sortWithinPartitions('shard', 'job_index', 'kind').mapInArrow("


def steps(made: str, plan: str) -> list[str]:
    """The names of the functions that a chain's steps run, as it exchanges rows between them."""
    assert made.startswith(f"{plan}{BY_PARTITION}")
    exchanges = (BY_PARTITION, BY_SHARD, IN_ONE_TASK)
    pattern = "|".join(map(re.escape, exchanges))
    functions = re.split(pattern, made.removeprefix(plan))[1:]
    return [
        re.split(r"[ (]", text.replace("functools.partial(", "").replace("<function ", ""), maxsplit=1)[0]
        for text in functions
    ]


def test_findings_are_made_in_tasks_and_joined_to_incidents_in_one(session):
    made = repr(ks.findings(session, "/logs", allow_incomplete=True))
    assert steps(made, PLAN) == ["replay", "Evidence", "make_findings", "WithIncidents"]
    assert made.count(BY_SHARD) == 2
    assert made.count(IN_ONE_TASK) == 1
    assert made.endswith(f"WithIncidents(allow_incomplete=True), {spark_schema('findings')!r})")


@pytest.mark.parametrize("table", ["timelines", "producers"])
def test_histories_are_made_where_findings_are_and_read_nothing_again(session, table):
    function: Any = getattr(ks, table)
    made = repr(function(session, "/logs"))
    assert steps(made, PLAN) == ["replay", "Evidence", "Histories"]
    assert made.count("load()") == 1
    assert f"Histories(table='{table}'" in made
    assert made.endswith(f", {spark_schema(table)!r})")


def test_of_runs_the_chunks_join_the_plan(session):
    schema = SimpleNamespace(fields=[column(kaudit={"paths": '["/logs"]'})])
    given: Any = RecordedCalls("runs", schema=schema)
    plan = (
        loaded("partitions", "runs.sparkSession") + ".unionByName(runs.where('chunk is not null')"
        f".selectExpr({KEY}, '2 as kind', 'segment_number', 'first_position as place', 'chunk as data'), allowMissingColumns=True)"
    )
    assert steps(repr(ks.findings(given)), plan) == ["replay", "Evidence", "make_findings", "WithIncidents"]


@pytest.mark.parametrize("table", ["batches", "runs", "records"])
def test_a_data_source_has_the_schema_of_its_table_and_says_what_it_reads(table):
    (source,) = (source for source in SOURCES if source.name() == f"kaudit.{table}")
    options = {"path": "/logs", "topics": "orders"}
    assert source(options).schema() == spark_schema(table, read_options(options).to_text())
