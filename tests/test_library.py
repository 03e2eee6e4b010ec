"""kaudit from Python: the same answers as the command, nothing loaded before its time, nothing printed."""

import html
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from inspect import signature
from pathlib import Path

import pytest

import kaudit
from kaudit.cli.app import run
from kaudit.engines import local
from kaudit.model.severity import Status
from kaudit.scanning.options import DECLARED, Depth, ScanOptions
from kaudit.source.kafka.options import ClusterOptions
from kaudit.testing import assert_log_healthy
from tests import scan_results as results


@pytest.fixture
def damaged(evidence):
    return evidence.capture("torn-writes") / "artificial" / "flip-crc-field"


def test_importing_kaudit_loads_nothing_of_it():
    program = (
        "import kaudit, sys; print(*[m for m in sys.modules if m.startswith(('kaudit', 'numpy', 'typer', 'rich'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kaudit"]


def test_the_public_names_are_there_and_no_other():
    assert {name: getattr(kaudit, name) for name in kaudit.__all__}.keys() == set(kaudit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'scna'"):
        _ = kaudit.scna


def test_scan_finds_what_the_command_finds(evidence, capsys):
    logs = evidence.oracle("2.0.1", "logdir") / "main"
    result = kaudit.scan(logs, broker_version="2.0.1")
    assert capsys.readouterr() == ("", "")
    run(["scan", str(logs), "--broker-version", "2.0.1", "--isolated", "--output-format", "json", "-q"])
    document = json.loads(capsys.readouterr().out)
    assert [finding.to_dict()["fingerprint"] for finding in result.findings] == [
        finding["fingerprint"] for finding in document["findings"]
    ]
    assert result.summary.to_dict() == document["summary"]


def test_options_narrow_what_is_reported(evidence, damaged):
    logs = evidence.oracle("2.0.1", "logdir") / "main"
    hanging = kaudit.scan([logs], broker_version="2.0.1", topics=["s29d-late-write-after-abort"], select=["KA3"])
    assert {finding.topic for finding in hanging.findings} == {"s29d-late-write-after-abort"}
    assert {finding.code[:3] for finding in hanging.findings} == {"KA3"}
    assert kaudit.scan(damaged, ignore=["KA0", "KA4"]).findings == []
    assert kaudit.scan(damaged, depth="headers", select=["KA0"]).findings == []
    assert [found.code for found in kaudit.scan(damaged, select=["crc-mismatch"]).findings] == ["KA001"]
    with pytest.raises(kaudit.UsageError, match="did you mean crc-mismatch"):
        kaudit.scan(damaged, select=["crc-missmatch"])
    assert kaudit.scan(str(damaged), since=datetime(2000, 1, 1, tzinfo=UTC)).summary.batches > 0


def test_every_option_reaches_the_engine(monkeypatch):
    asked = []

    def scan(options, progress):
        asked.append(options)
        return results.scan_result()

    monkeypatch.setattr(local, "scan", scan)
    kaudit.scan(
        ["a", Path("b")], broker_version="2.8.2", topics=["t"], partitions=[3], producer_ids=[7],
        since=datetime(2023, 11, 14, 22, 13, 20, 1000),  # noqa: DTZ001 - without a zone it is UTC
        until=datetime(2023, 11, 14, 23, 13, 20, tzinfo=timezone(timedelta(hours=1))),
        now=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), log_start_offset=5, compacted_topics=["c*"], jobs=2,
        depth="records", state=Path("s"), digests=True, command_config=Path("p"), layout="{topic}/{partition}", zookeeper=Path("z"),
        metadata="m", blocks="k", server_logs=[Path("l"), "n"], client_logs=["o"], compacted=True, require_all=True, from_offset=3,
        to_time=datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),
    )  # fmt: skip
    kaudit.scan("a")
    assert asked == [
        ScanOptions(
            paths=["a", "b"], broker_version="2.8.2", topics=["t"], partitions=[3], producer_ids=[7],
            since_ms=1_700_000_000_001, until_ms=1_700_000_000_000, now_ms=1000, log_start_offset=5,
            compacted_topics=["c*"], jobs=2, depth=Depth.RECORDS, state="s", digests=True, layout="{topic}/{partition}", zookeeper="z",
            metadata="m", blocks="k", server_logs=["l", "n"], client_logs=["o"], compacted=True, require_all=True,
            cluster=ClusterOptions("p", from_offset=3, to_ms=2000),
        ),
        ScanOptions(paths=["a"], jobs=1),
    ]  # fmt: skip


def test_the_keywords_are_options_of_an_audit_with_their_defaults():
    fields = {field.keyword: field for field in DECLARED.values()}
    own = {"paths", "select", "ignore", "baseline", "engine", "spark", "compacted_topics"}
    parameters = {name: each for name, each in signature(kaudit.scan).parameters.items() if name not in own}
    assert parameters.keys() <= fields.keys()
    assert {name: each.default for name, each in parameters.items() if name != "jobs"} == {
        name: fields[name].default for name in parameters if name != "jobs"
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"topics": "orders"}, r"topics: 'orders' is one value; give a list: topics=['orders']"),
        ({"select": "KA3"}, r"select: 'KA3' is one value; give a list: select=['KA3']"),
        ({"producer_ids": 7}, "producer_ids: 7 is one value; give a list: producer_ids=[7]"),
        ({"partitions": ["3"]}, "partitions ['3']: Expected `int`, got `str`"),
        ({"partitions": {-1}}, "partitions -1: less than 0"),
        ({"log_start_offset": -1}, "log_start_offset -1: less than 0"),
        ({"broker_version": 3.9}, "broker_version 3.9: Expected `str`, got `float`"),
        ({"depth": "deep"}, "depth 'deep': Invalid enum value 'deep'"),
        ({"since": 5.5}, "since 5.5: not a time; give a datetime or text"),
        ({"until": "yesterday"}, "until yesterday: not a time; write"),
        ({"now": datetime.now}, "not a time; give a datetime"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_value_of_another_type_is_refused_by_the_name_of_its_keyword(options, says):
    with pytest.raises(kaudit.UsageError) as refused:
        kaudit.scan("samples/clean", **options)
    assert says in str(refused.value)


def test_choices_and_times_are_texts_or_values():
    typed = kaudit.scan("samples/zombie", depth=Depth.HEADERS, since=datetime(2026, 11, 21, 6, 26, tzinfo=UTC))
    texts = kaudit.scan(Path("samples/zombie"), depth="headers", since="2026-11-21T06:26:00Z", topics=iter(()))
    assert typed.findings == texts.findings != []


def test_a_result_shows_itself_in_one_line_and_as_a_page():
    result = kaudit.scan("samples/zombie")
    assert repr(result) == (
        "<ScanResult 1 error, 1 warning, 3 notes; 3 partitions, 13 batches: "
        "no record is known to be lost or written twice (1 error, 1 warning)>"
    )
    assert result.verdict is not None
    text, frame = result._repr_html_().split("<iframe ", 1)
    page = html.unescape(frame.partition('srcdoc="')[2].partition('"')[0])
    assert html.unescape(text) == "".join(f"<div>{line}</div>" for line in result.verdict.lines)
    assert page.startswith("<!doctype html>")
    assert "KA201 stale-epoch" in page


def test_incidents_are_those_of_the_json_document(capsys):
    lossy = kaudit.scan("samples/damaged")
    run(["scan", "samples/damaged", "--isolated", "--output-format", "json", "-q"])
    document = json.loads(capsys.readouterr().out)
    expected = [(each["id"], each["title"], each["checks"]) for each in document["incidents"]]
    assert [(each.id, each.title, each.checks) for each in lossy.incidents] == expected != []


def test_findings_as_an_arrow_table_have_their_costs_in_typed_columns():
    result = kaudit.scan("samples/damaged")
    table = result.to_arrow()
    assert table.num_rows == len(result.findings) > 0
    assert {str(table.schema.field(name).type) for name in ("records_lost_at_least", "offset", "producer_id")} == {
        "int64"
    }
    assert str(table.schema.field("invisible_since_timestamp").type) == "timestamp[ms, tz=UTC]"
    rows = table.to_pylist()
    assert [row["records_lost_at_most"] for row in rows] == [
        found.impact.records_lost_at_most for found in result.findings
    ]
    assert [row["next"] for row in rows] == [list(found.next) for found in result.findings]


def test_a_frame_of_a_library_that_is_not_installed(monkeypatch):
    result = kaudit.scan("samples/clean")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(kaudit.UsageError, match=r"^to_polars\(\) needs polars: "):
        result.to_polars()
    monkeypatch.setattr("kaudit.library.find_spec", lambda name: None)
    with pytest.raises(kaudit.UsageError, match=r"^to_arrow\(\) needs an extra: .*pip install "):
        result.to_arrow()


@pytest.mark.spark
def test_findings_as_frames_of_pandas_and_polars():
    result = kaudit.scan("samples/damaged")
    codes = [found.code for found in result.findings]
    pandas, polars = result.to_pandas(), result.to_polars()
    assert list(pandas["code"]) == polars["code"].to_list() == codes
    assert str(pandas.dtypes["offset"]) == "int64[pyarrow]"
    assert str(polars.schema["offset"]) == "Int64"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"engine": "sparc"}, "engine sparc: local or spark"),
        ({"spark": object()}, "a Spark session is given"),
        ({"digests": True, "depth": "headers"}, "digests need CRCs that were checked"),
    ],
)
def test_options_that_contradict_each_other(options, says):
    with pytest.raises(kaudit.UsageError, match=says):
        kaudit.scan("samples/clean", **options)
    assert kaudit.scan("samples/clean", depth="headers").digests is None


def test_an_engine_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("kaudit.spark.find_spec", lambda name: None)
    with pytest.raises(kaudit.UsageError, match=r'^engine="spark" needs an extra: uv pip install '):
        kaudit.scan("samples/clean", engine="spark")


@pytest.mark.spark
@pytest.mark.parametrize("given", [True, False])
def test_spark_audits_on_the_session_that_is_given_or_on_one_of_its_own(monkeypatch, given):
    from contextlib import contextmanager

    from kaudit.spark import frames
    from kaudit.spark import session as spark_session

    asked: list[object] = []

    @contextmanager
    def session(options, jobs):
        asked.append((options, jobs))
        yield "own"

    def scan(spark, options):
        asked.append((spark, options))
        return results.scan_result()

    monkeypatch.setattr(frames, "session", session)
    monkeypatch.setattr(frames, "scan", scan)
    audited = kaudit.scan("a", engine="spark", jobs=3, spark="theirs" if given else None)
    options = ScanOptions(paths=["a"], jobs=3)
    own = [] if given else [(spark_session.SparkOptions(), 3)]
    assert asked == [*own, ("theirs" if given else "own", options)]
    assert audited.findings == results.scan_result().findings


def test_a_state_is_kept_between_audits(damaged, tmp_path):
    whole = kaudit.scan(damaged)
    first, second = (kaudit.scan(damaged, state=tmp_path / "state") for _ in range(2))
    assert first.state is not None
    assert second.state is not None
    assert (first.state.unchanged, second.state.new) == (0, 0)
    assert first.state.new == second.state.unchanged + second.state.read_again > 0
    assert [found.to_dict() for found in second.findings] == [found.to_dict() for found in whole.findings] != []


def test_a_baseline_makes_findings_known(damaged, tmp_path):
    known = tmp_path / "known.json"
    assert run(["baseline", "create", "--isolated", "-q", "--baseline", str(known), str(damaged)]) == 0
    result = kaudit.scan(damaged, baseline=known, select=["KA0"])
    assert [finding.status for finding in result.findings] == [Status.KNOWN]
    comparison = assert_log_healthy(damaged, baseline=known).baseline
    assert comparison is not None
    assert comparison.known == 1
    with pytest.raises(kaudit.UsageError, match="no such file"):
        kaudit.scan(damaged, baseline=tmp_path / "none.json")


def test_mistakes_have_their_own_errors(tmp_path, damaged):
    with pytest.raises(kaudit.NothingToAuditError):
        kaudit.scan(tmp_path)
    with pytest.raises(kaudit.UsageError, match="no such file"):
        kaudit.scan(tmp_path / "none")
    with pytest.raises(kaudit.UsageError, match="broker_version"):
        kaudit.scan(damaged, broker_version="0.8")


def test_clusters_are_connected_to_with_a_property_file(tmp_path):
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SASL\n")
    with pytest.raises(kaudit.UsageError, match=r"client\.properties.*security\.protocol"):
        kaudit.scan("kafka://127.0.0.1:1/orders", command_config=config)


def test_a_healthy_log_passes_and_says_what_was_read(evidence):
    result = assert_log_healthy(evidence.capture("retry-dup") / "logdirs")
    assert result.summary.partitions > 10


def test_an_unhealthy_log_fails_with_the_report(damaged):
    with pytest.raises(AssertionError, match="the log is not healthy: 1 finding") as error:
        assert_log_healthy(damaged)
    assert "error[KA001] crc-mismatch" in str(error.value)
    assert "explosion-0 @ offset 990..991" in str(error.value)
    assert assert_log_healthy(damaged, select=["KA1"]).findings == []


def test_what_is_looked_at_and_for_can_be_said(evidence, damaged):
    assert {finding.code for finding in assert_log_healthy(damaged, ignore=["KA001"]).findings} == {"KA405"}
    assert str(assert_log_healthy(damaged, ignore=["KA"], broker_version="2.8.2").broker_version.profile) == "2.8.2"
    with pytest.raises(AssertionError, match="no such topic"):
        assert_log_healthy(damaged, topics=["orders"])
    hole = evidence.capture("torn-writes") / "artificial" / "batch-removed"
    with pytest.raises(AssertionError, match="KA007"):
        assert_log_healthy(hole, select=["KA007"])
    assert_log_healthy(hole, select=["KA007"], compacted_topics=["explo*"])


def test_warnings_fail_when_asked_to(evidence):
    logs = evidence.capture("torn-writes") / "enospc" / "tmpfs-dir"
    assert_log_healthy(logs)
    with pytest.raises(AssertionError, match="KA002"):
        assert_log_healthy(logs, fail_on="warning")


def test_a_test_that_looked_at_nothing_does_not_pass(tmp_path):
    with pytest.raises(AssertionError, match="nothing to audit"):
        assert_log_healthy(tmp_path)


def test_a_file_that_cannot_be_read_fails_unless_allowed(monkeypatch, evidence):
    from kaudit.engines import local
    from tests import scan_results as results

    monkeypatch.setattr(local, "scan", lambda options, progress: results.incomplete())
    with pytest.raises(AssertionError, match="Permission denied"):
        assert_log_healthy("/data")
    assert assert_log_healthy("/data", allow_incomplete=True).incomplete


def test_a_long_list_says_how_many_more(monkeypatch):
    from kaudit.engines import local
    from tests import scan_results as results

    many = results.scan_result(*[results.old_duplicate(offset=n) for n in range(25)])
    monkeypatch.setattr(local, "scan", lambda options, progress: many)
    with pytest.raises(AssertionError, match="and 5 more findings"):
        assert_log_healthy("/data")
