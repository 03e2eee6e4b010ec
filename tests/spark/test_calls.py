"""What the functions of kaudit.spark ask Spark for, and which options go where: no JVM."""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

import kaudit.spark as ks
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import UsageError
from kaudit.report.machine.tables import finding_row
from kaudit.scanning.options import scan_options_of
from kaudit.spark import frames
from kaudit.spark.composition import FindingRows
from kaudit.spark.finding_rows import Stamp
from kaudit.spark.frames import _origin_of, _read_options
from kaudit.spark.jobs import SparkFailedError
from kaudit.spark.options import READING, ReadOptions
from kaudit.spark.rows import NEEDED
from kaudit.spark.schemas import spark_schema
from kaudit.spark.sources import SOURCES
from tests.recorded_calls import RecordedCalls
from tests.spark.arrow_session import ArrowSession
from tests.spark.in_process import as_table

SAMPLES = Path("samples").absolute()


def in_order(frame: Any) -> list[dict[str, Any]]:
    """Its rows as Spark brings them to the driver, in the order of their partitions."""
    rows: list[dict[str, Any]] = pa.concat_tables(frame.partitions()).to_pylist()
    return rows


@pytest.fixture
def session(monkeypatch) -> Any:
    monkeypatch.setattr(frames, "register", lambda _: None)
    return RecordedCalls("spark")


def loaded(table: str, **options: Any) -> str:
    given = ", ".join(f"{name}={json.dumps(value)!r}" for name, value in {"paths": ["/logs"], **options}.items())
    return f"spark.read.format('kaudit.{table}').options({given}).load()"


@pytest.mark.parametrize("table", ["diff", "dedup"])
def test_a_comparison_is_a_data_source_too(session, table):
    function: Any = getattr(ks, table)
    assert repr(function(session, "/logs", depth="headers")) == loaded(table, depth="headers")
    with pytest.raises(UsageError, match=r"^option first_offset: comparisons do not have it$"):
        function(session, "/logs", first_offset=0)


@pytest.mark.parametrize("table", ["batches", "records", "runs"])
def test_a_table_is_a_data_source_with_the_options_that_were_given(session, table):
    options = {"topics": ["a", "b"], "first_offset": 0, "depth": "headers"}
    function: Any = getattr(ks, table)
    assert repr(function(session, "/logs", **options)) == loaded(
        table, first_offset=0, topics=["a", "b"], depth="headers"
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
    assert _read_options(paths, {}, READING) == ReadOptions(paths=expected)


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
    audit = {"partitions": (0, 3), "log_start_offset": 0}
    assert _read_options("/logs", given, READING) == ReadOptions(
        paths=("/logs",), first_offset=0, since=1000, until=2000, audit=audit
    )


def frame(*fields: Any) -> Any:
    return SimpleNamespace(schema=SimpleNamespace(fields=list(fields)))


def column(name: str, **metadata: Any) -> Any:
    return SimpleNamespace(name=name, metadata=metadata)


ORIGIN = column("origin", comment="what was read", kaudit='{"paths": ["/logs"]}')


def test_rows_say_what_they_were_read_from():
    assert _origin_of(frame(column("topic"), ORIGIN)) == '{"paths": ["/logs"]}'
    with pytest.raises(UsageError, match="do not say what they were read from: keep the column origin"):
        _origin_of(frame(column("topic"), column("origin", comment="what was read")))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"topics": ["x07-old-epoch-after-expiry"], "depth": "records"},
        {"since": "2021-01-01T00:00:00Z", "now": datetime(2030, 1, 1, tzinfo=UTC), "broker_version": "2.8.2"},
        {"server_logs": [str(SAMPLES / "server.log.1")]},
    ],
)
def test_findings_of_paths_are_those_of_a_scan_with_the_same_options(options):
    """Spark's part is done in this process."""
    session: Any = ArrowSession()
    for sample in ("zombie", "duplicates"):
        if "topics" in options and sample != "zombie":
            continue
        path = SAMPLES / sample
        rows: Any = ks.findings(session, path, allow_incomplete=True, **options)
        expected = local.scan(scan_options_of({**options, "paths": [str(path)]}), SilentProgress()).findings
        assert as_table(in_order(rows)) == [finding_row(finding) for finding in expected]


def test_what_was_saved_of_an_earlier_audit_is_not_read_again(tmp_path):
    session: Any = ArrowSession()
    path, state = str(SAMPLES / "duplicates"), str(tmp_path / "state")
    expected = local.scan(scan_options_of({"paths": [path]}), SilentProgress()).findings
    for _ in range(2):
        rows: Any = ks.findings(session, path, state=state)
        assert as_table(in_order(rows)) == [finding_row(finding) for finding in expected]
    result = local.scan(scan_options_of({"paths": [path], "state": state}), SilentProgress())
    assert result.state is not None
    assert (result.state.new, result.state.read_again, result.state.unchanged > 0) == (0, 0, True)


def test_a_path_that_is_not_there_is_said_where_it_is_given():
    session: Any = ArrowSession()
    with pytest.raises(UsageError, match=r"^no such file or directory: /no/such/place$"):
        ks.findings(session, "/no/such/place")


def test_rows_take_options_of_judging_alone():
    rows: Any = frame(column("topic"), ORIGIN)
    with pytest.raises(UsageError, match=r"^topics: given where the log is read, in batches\(\) or runs\(\)$"):
        ks.findings(rows, topics=["orders"], now=1)
    with pytest.raises(UsageError, match=r"^option produce_ids: there is none; did you mean producer_ids"):
        ks.findings(rows, produce_ids=[7])  # type: ignore[call-arg]  # which a type checker says too


def test_runs_of_batches_need_all_of_their_columns(monkeypatch):
    schema = SimpleNamespace(fields=[ORIGIN])
    given: Any = RecordedCalls("batches", columns=(*NEEDED, "more"), schema=schema)
    asked = repr(ks.runs(given))
    names = ", ".join(map(repr, NEEDED))
    assert asked.startswith(f"batches.select({names}).mapInArrow(<function batches_to_runs")
    assert asked.endswith(f", {spark_schema('runs', ORIGIN.metadata['kaudit'])!r})")
    lacking: Any = RecordedCalls("batches", columns=NEEDED[2:])
    with pytest.raises(UsageError) as raised:
        ks.runs(lacking)
    assert str(raised.value) == f"runs() needs all columns of batches(): {NEEDED[0]}, {NEEDED[1]} missing"


def test_rows_of_runs_meet_the_plan_of_the_logs_they_name_and_are_read_once(monkeypatch):
    monkeypatch.setattr(frames, "_parallelism", lambda _: 2)
    monkeypatch.setattr(frames, "frame_of", lambda *_: "ORIGINS")
    monkeypatch.setattr(frames, "by_number", lambda rows, count, column: rows.moved(count, column))
    monkeypatch.setattr(frames, "FindingRows", lambda allow: FindingRows(allow, Stamp("RUN", 0)))
    given: Any = RecordedCalls("runs", schema=SimpleNamespace(fields=[ORIGIN]))
    made = repr(ks.findings(given, allow_incomplete=True))
    names = "note_origins", "plan_origins", "replay_given", "Evidence", "make_findings", "join_incidents", "FindingRows"
    assert list(re.findall(r"mapInArrow\((?:functools.partial\()?(?:<function )?(\w+)", made)) == list(names)
    assert made.count(".moved(9, 'shard').sortWithinPartitions('shard', 'job_index', 'kind')") == 4
    assert made.count("runs.where('chunk is not null')") == made.count("repartition(8, 'topic', 'partition').map") == 1
    assert made.count(".unionByName('ORIGINS')") == 1
    assert made.endswith(
        f"FindingRows(allow_incomplete=True, stamp=Stamp(run_id='RUN', audited_ms=0)), {spark_schema('findings')!r})"
    )


@pytest.mark.parametrize("table", ["batches", "runs", "records"])
def test_a_data_source_has_the_schema_of_its_table_and_says_what_it_reads(table):
    (source,) = (source for source in SOURCES if source.name() == f"kaudit.{table}")
    options = {"path": "/logs", "topics": "orders"}
    assert source(options).schema() == spark_schema(table, '{"paths": ["/logs"], "topics": ["orders"]}')


def test_workers_with_another_python_are_one_sentence(monkeypatch):
    from pyspark.errors import AnalysisException

    class Failing:
        def __getattr__(self, name):
            return self

        def __call__(self, *given, **named):
            return self

        def load(self):
            raise AnalysisException("[PYTHON_DATA_SOURCE_ERROR] x\nModuleNotFoundError: No module named 'pyarrow'")

    monkeypatch.setattr(frames, "HAS_DATA_SOURCES", True)
    monkeypatch.setattr(frames, "register", lambda _: None)
    with pytest.raises(
        SparkFailedError, match=r"^Spark gave up: the workers' Python is not the one with kaudit"
    ) as failed:
        ks.dedup(cast("Any", Failing()), str(SAMPLES / "duplicates"))
    assert "\n" not in str(failed.value)
