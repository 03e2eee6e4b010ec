"""Options of a data source as Spark passes them on: texts, as people or JSON write them."""

import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from inspect import signature

import pytest
from mypy import api

import kaudit.spark as ks
from kaudit.cli.command_tree import command_tree, commands_of
from kaudit.errors import UsageError
from kaudit.scanning.comparison_options import LedgerOptions, ReplicaOptions
from kaudit.scanning.options import DECLARED
from kaudit.source.option import declared_fields
from kaudit.spark import frames
from kaudit.spark.options import AUDITING, COMPARED, READING, RESULTS, Path, Time, read_options, time_ms
from tests.spark import stub


@pytest.mark.parametrize(("name", "text", "value"), [
    ("topics", "orders", ("orders",)),
    ("topics", "orders,payments", ("orders", "payments")),
    ("topics", '["orders", "a,b"]', ("orders", "a,b")),
    ("Topics", "7", ("7",)),
    ("partitions", "3", (3,)),
    ("partitions", "3,4", (3, 4)),
    ("partitions", "[3, 4]", (3, 4)),
    ("since", "2026-11-21T06:00:00Z", 1_795_240_800_000),
    ("until", "1795240800000", 1_795_240_800_000),
    ("pushdown", "false", False),
    ("pushdown", "True", True),
    ("compacted", "true", True),
    ("depth", "records", "records"),
    ("layout", "{topic}/p{partition}", "{topic}/p{partition}"),
    ("log_start_offset", "7", 7),
    ("max_bytes_per_second", "1000", 1000),
    ("from_time", "1970-01-01T00:00:01Z", 1000),
    ("compacted_topics", "a*,b", ("a*", "b")),
])  # fmt: skip
def test_values(name, text, value):
    options = read_options({"path": "/logs", name: text})
    assert {**options.audit, **{own: getattr(options, own) for own in ("since", "until", "pushdown")}}[
        name.lower()
    ] == value
    if name.lower() not in {"since", "until"}:
        assert read_options(json.loads(options.origin)).audit == options.audit


def test_the_options_of_results_are_all_of_the_command_but_how_many_processes():
    declared = {field.keyword for field in DECLARED.values()} | {"compacted_topics"}
    assert declared - RESULTS == {"jobs"}
    own = {"paths", "first_offset", "last_offset", "partition_bytes", "pushdown", "allow_incomplete"}
    assert READING | AUDITING | {"jobs"} == declared | own


OUTPUT = {
    "output-format", "output", "redact", "redact-secret", "statistics", "batches", "plan", "verbose", "quiet", "reproducible", "color",
    "no-color", "no-pager", "offsets-file", "fingerprint",
}  # fmt: skip
"""What becomes of results: here they are rows. A fingerprint is a document for another site."""
POLICY = {"select", "ignore", "severity", "fail-on", "exit-zero", "baseline", "max-findings"}
"""Which findings count: rows are filtered."""
RUN = {"jobs", "engine", "master", "spark-conf", "config", "isolated", "version"}
"""The session is there already, and programs have no kaudit.toml."""
CHOICE = {
    "summary", "live", "sort", "reverse", "limit", "min-batches", "max-batches", "min-epochs", "min-age", "max-age", "with-findings", "by",
}  # fmt: skip
"""Filters and orders of columns; `--live` asks brokers and no log; `--by` is the name of the table."""


@pytest.mark.parametrize(("command", "tables"), [
    ("scan", ["findings"]), ("timeline", ["timelines"]), ("producers", ["producers"]), ("dedup", ["dedup"]), ("diff", ["diff", "ledger"]),
])  # fmt: skip
def test_every_option_of_a_command_is_one_of_its_tables_or_has_a_reason_to_be_none(command, tables):
    (own,) = (each for name, each in commands_of("kaudit", command_tree()) if name == f"kaudit {command}")
    declared = [*DECLARED.values(), *declared_fields(ReplicaOptions), *declared_fields(LedgerOptions)]
    keywords = {field.option.name: field.keyword for field in declared}
    known = set().union(*(COMPARED.get(table, RESULTS) for table in tables))
    names = {name.removeprefix("--") for option in own.params for name in option.opts if name.startswith("--")}
    without = {name for name in names if keywords.get(name) not in known}
    assert without <= OUTPUT | POLICY | RUN | CHOICE
    assert names - without > {"topic", "partition", "depth", "remote"}


@pytest.mark.parametrize("name", ks.__all__)
def test_functions_show_the_options_of_their_tables_with_types(name):
    tables = {"batches": READING, "records": READING, "runs": READING, "register": set(), "read_table": set()}
    keywords = {
        each.name: each.annotation
        for each in signature(getattr(frames, name)).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    }
    assert keywords.keys() | {"paths", "target"} == tables.get(name, COMPARED.get(name, RESULTS)) | {"paths", "target"}
    assert keywords.get("since", Time | None) == Time | None
    assert keywords.get("topics", Sequence[str] | None) == Sequence[str] | None
    assert keywords.get("state", Path | None) == Path | None


def test_type_checkers_are_given_these_signatures():
    assert stub.FILE.read_text() == stub.made(), "run: python -m tests.spark.stub"


USER = """
import kaudit.spark as ks
from datetime import datetime
from pathlib import Path
from pyspark.sql import SparkSession

spark: SparkSession
ks.register(spark)
rows = ks.batches(spark, "s3://kafka/logs", topics=["orders"], since=datetime(2026, 11, 21), partition_bytes=1 << 20)
ks.records(spark, [Path("a"), "b"], first_offset=7, pushdown=True)
runs = ks.runs(rows)
ks.runs(spark, "logs", depth="headers")
ks.findings(runs, producer_ids=[7], server_logs=Path("server.log"), now="2026-11-21T00:00:00Z")
ks.timelines(spark, "logs", state="s3://kafka/state", layout="{topic}/{partition}")
ks.producers(runs, allow_incomplete=True)
ks.diff(spark, ["a", "b"], names=["one=a"])
ks.dedup(spark, "logs", identity="key", isolation_level="read_committed")
ks.ledger(spark, "a", Path("b"), windows="10m", maps=["a=b"]).groupBy("difference").count()
ks.read_table(spark, "s3://kafka/tables", "findings")
"""
WRONG = {
    "register(spark, 'batches')": "Too many arguments",
    "batches(spark, 'logs', topic=['orders'])": "topic",
    "records(spark, 'logs', first_offset='seven')": "first_offset",
    "runs(spark, 'logs', pushdown='maybe')": "pushdown",
    "findings(spark, 'logs', producer_ids=['7'])": "List item 0",
    "timelines(spark, 'logs', state=7)": "state",
    "producers(spark, 'logs', since=1.5)": "since",
    "diff(spark, 'logs', identity='key')": "identity",
    "dedup(spark, 'logs', windows='10m')": "windows",
    "ledger(spark, 'a')": "target",
    "read_table(spark, 'url')": "table",
}  # fmt: skip
"""A wrong call of each function, and what mypy's line about it names."""


def test_mypy_accepts_what_users_may_write_and_names_what_they_may_not(tmp_path):
    assert {call.partition("(")[0] for call in WRONG} == set(ks.__all__)
    program = tmp_path / "program.py"
    program.write_text(USER + "".join(f"ks.{call}\n" for call in WRONG))
    said, _, code = api.run([str(program), "--strict", "--no-error-summary", "--hide-error-context"])
    lines = [line for line in said.splitlines() if ": error:" in line]
    first = USER.count("\n") + 1
    assert [line.split(":")[1] for line in lines] == [str(first + number) for number in range(len(WRONG))], said
    assert [named for named, line in zip(WRONG.values(), lines, strict=True) if named not in line] == []
    assert code == 1


def test_every_option_of_an_audit_is_passed_on(tmp_path):
    given = {
        "zookeeper": "zk", "blocks": "b.json", "metadata": "/md", "server_logs": "a.log,/b.log", "client_logs": "c.log",
        "state": "state", "now": "1970-01-01T00:00:03Z", "producer_ids": "7,8", "broker_version": "3.9.1",
        "remote": "s3://b/tier", "require_all": "true", "command_config": "c.properties",
    }  # fmt: skip
    options = read_options({"path": "/logs", **given}, RESULTS).scan_options()
    here = os.getcwd()  # noqa: PTH109 - a text is wanted
    assert (options.zookeeper, options.blocks, options.metadata) == (f"{here}/zk", f"{here}/b.json", "/md")
    assert list(options.server_logs) == [f"{here}/a.log", "/b.log"]
    assert (list(options.client_logs), options.state) == ([f"{here}/c.log"], f"{here}/state")
    assert (options.now_ms, list(options.producer_ids), options.broker_version) == (3000, [7, 8], "3.9.1")
    assert (options.remote, options.require_all) == ("s3://b/tier", True)
    assert options.cluster.command_config == f"{here}/c.properties"


@pytest.mark.parametrize(("name", "text", "why"), [
    ("partitions", "a", "not a valid value"),
    ("partitions", "1,b", "not a valid value"),
    ("pushdown", "maybe", "not a valid value"),
    ("jobs", "2", "there is none"),
    ("producer_ids", "7", "only findings, timelines and producers have it"),
    ("log_start_offset", "-1", "less than 0"),
    ("since", "noon", "not a time"),
    ("since", "[1]", "not a time"),
    ("depth", "deep", "headers, crc or records"),
    ("topic", "orders", r"there is none.*topics"),
])  # fmt: skip
def test_values_that_are_none(name, text, why):
    with pytest.raises(UsageError, match=rf"^option {name}.*{why}"):
        read_options({"path": "/logs", name: text})


@pytest.mark.parametrize(("time", "milliseconds"), [
    (None, None),
    (7, 7),
    ("1970-01-01T00:00:01", 1000),
    ("1970-01-01T01:00:01+01:00", 1000),
    (datetime(1970, 1, 1, 0, 0, 1), 1000),  # noqa: DTZ001 - without a zone it is UTC
    (datetime(1970, 1, 1, 1, 0, 1, 2000, tzinfo=timezone(timedelta(hours=1))), 1002),
])  # fmt: skip
def test_a_time_without_a_zone_is_utc(time, milliseconds):
    assert time_ms(time) == milliseconds


@pytest.mark.parametrize(("options", "paths"), [
    ({"path": "/a"}, ["/a"]),
    ({"paths": "/b,/c"}, ["/b", "/c"]),
    ({"PATHS": "/b", "path": "/a"}, ["/a", "/b"]),
    ({"path": "hdfs://nn/a"}, ["hdfs://nn/a"]),
    ({"path": "a"}, [os.path.abspath("a")]),  # noqa: PTH100 - as the driver makes it
])  # fmt: skip
def test_paths_are_those_of_load_and_more(options, paths):
    assert list(read_options(options).paths) == paths


def test_without_a_path_there_is_nothing_to_read():
    with pytest.raises(UsageError, match="nothing to read"):
        read_options({"topics": "orders"})
