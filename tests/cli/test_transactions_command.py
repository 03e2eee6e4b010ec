"""`kaudit transactions`: formats, choices, exit codes, what it says of what it does not know."""

import json
import shutil

import jsonschema
import pyarrow.parquet as pq
import pytest
import referencing

from kaudit.model.table_columns import TRANSACTION_COLUMNS, TRANSACTION_TABLES
from tests.live_brokers.exactly_once.stage import DATA
from tests.logs import Log, data, marker
from tests.report.test_json_schemas import DOCUMENT, SHIPPED

SAMPLE = "samples/exactly-once"
SCHEMA = json.loads((SHIPPED / "transactions.schema.json").read_text(encoding="utf-8"))
KNOWN = [(schema["$id"], referencing.Resource.from_contents(schema)) for schema in (SCHEMA, DOCUMENT)]
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA, registry=referencing.Registry().with_resources(KNOWN))


def document_of(outcome):
    document = json.loads(outcome.out)
    VALIDATOR.validate(document)
    return document


def test_every_format_has_the_same_transactions(kaudit, tmp_path):
    document = document_of(kaudit("transactions", SAMPLE, "--output-format", "json"))
    *rows, summary = map(json.loads, kaudit("transactions", SAMPLE, "--output-format", "jsonl").out.splitlines())
    assert document["rows"] == rows
    assert {"row": "summary", **document["summary"]} == summary
    assert [finding["code"] for finding in document["findings"]] == ["KA915", "KA916", "KA916", "KA917"]
    assert kaudit("transactions", SAMPLE, "--output-format", "parquet", "-o", tmp_path / "out").code == 0
    tables = {name: pq.read_table(tmp_path / "out" / name).drop(["more"]).to_pylist() for name in TRANSACTION_TABLES}
    for kind, name in (("inputs", "input"), ("outputs", "output")):
        nested = [{"transaction": number, **each} for number, row in enumerate(rows) for each in row[kind]]
        assert tables[name] == nested
    assert [row["transactional_id"] for row in tables["transaction"]] == [row["transactional_id"] for row in rows]
    assert {name for names in TRANSACTION_TABLES.values() for name in names} == set(TRANSACTION_COLUMNS)


def test_the_first_line_is_the_answer_and_all_fits_80_columns(kaudit, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = kaudit("transactions", SAMPLE).out.splitlines()
    assert " ".join(lines[:3]) == (
        "13 transactions: 12 committed, 1 aborted, 0 open (7.7% of the records were aborted); inputs processed twice (KA915: 1), "
        "inputs skipped (KA916: 2), offsets committed outside transactions (KA917: 1)"
    )
    assert max(map(len, lines)) <= 80
    monkeypatch.delenv("COLUMNS")
    healthy = kaudit("transactions", DATA / "healthy-loop-4.1.tar.xz").out.splitlines()[0]
    assert healthy.startswith("27 transactions: 24 committed, 3 aborted, 0 open (11.1% of the records were aborted);")
    assert healthy.endswith("no input was found processed twice or skipped")


def test_clusters_that_are_given_together_say_what_each_says_alone(kaudit, tmp_path):
    for name in ("one", "two"):
        shutil.copytree(SAMPLE, tmp_path / name)
        (tmp_path / name / "meta.properties").write_text(f"#\nversion=1\nnode.id=1\ncluster.id={name}\n")
    alone, both = (document_of(kaudit("transactions", path, "--output-format", "json")) for path in (SAMPLE, tmp_path))
    assert both["rows"] == [row for row in alone["rows"] for _ in range(2)]
    assert [finding["code"] for finding in both["findings"]] == 2 * [finding["code"] for finding in alone["findings"]]
    assert both["summary"]["records_committed"] == 2 * alone["summary"]["records_committed"]


@pytest.mark.parametrize("version", ["1.1.1", "2.8.2", "3.9.1", "4.2.0"])
def test_a_producer_is_named_by_its_own_cluster_only(kaudit, evidence, version):
    # the directories of several brokers that were set up alike; a scenario's ids begin with its name, and the epochs' log was given alone
    document = document_of(kaudit("transactions", evidence.oracle(version, "logdir"), "--output-format", "json"))
    named = {(row["transactional_id"], output["topic"]) for row in document["rows"] for output in row["outputs"]}
    assert {name for name, topic in named if topic.startswith("e01-")} == {None}
    known = {(name, topic) for name, topic in named if name is not None}
    assert all(name.startswith(f"tx-{topic}") for name, topic in known)
    assert len(known) > 10


@pytest.mark.parametrize(
    ("options", "ids", "codes"),
    [
        (("--group", "zombies"), "a b b a b b", "KA915"),
        (("--transactional-id", "zombie-a"), "a a", "KA915"),
        (("--group", "zombies", "--transactional-id", "zombie-b"), "b b b b", "KA915"),
        (("--group", "zombies", "--limit", "1"), "b", "KA915"),
        (("--group", "nobody"), "", ""),
        (("--limit", "0"), "", "KA915 KA916 KA916 KA917"),
        (("--group", "forward", "--limit", "0"), "", "KA916"),
        (("--group", "jump", "--limit", "0"), "", "KA916 KA917"),
    ],
    ids=["group", "id", "both", "limit", "nobody", "none", "aborted", "outside"],
)
def test_what_is_chosen(kaudit, options, ids, codes):
    document = document_of(kaudit("transactions", SAMPLE, *options, "--output-format", "json"))
    assert [row["transactional_id"].removeprefix("zombie-") for row in document["rows"]] == ids.split()
    assert [finding["code"] for finding in document["findings"]] == codes.split()


def test_an_aborted_transaction_of_the_group_is_listed_without_commits(kaudit):
    log = DATA / "healthy-loop-3.9.tar.xz"
    rows = document_of(kaudit("transactions", log, "--group", "loop", "--output-format", "json"))["rows"]
    aborted = [row for row in rows if row["outcome"] == "aborted"]
    assert [bool(row["inputs"]) for row in aborted] == [True, False, False]
    assert all(row["records"] and not row["read_committed"] for row in aborted)


def test_open_transactions_and_those_they_hold_back(kaudit, tmp_path):
    log = Log()
    log.append(data(1, 0, 0, transactional=True))
    log.append(data(2, 0, 0, transactional=True))
    log.append(marker(2, 0))
    log.append(data(1, 0, 1, transactional=True))
    path = log.write(tmp_path / "orders-0")
    document = document_of(kaudit("transactions", path, "--output-format", "json"))
    shown = [(row["producer_id"], row["outcome"], row["records"], row["read_committed"]) for row in document["rows"]]
    assert shown == [(2, "committed", 1, False), (1, "open", 2, False)]
    text = kaudit("transactions", path).out
    assert "without __consumer_offsets, inputs are not checked" in text
    assert "held back by an older transaction" in text


def test_nothing_to_audit_is_a_valid_document(kaudit, tmp_path):
    outcome = kaudit("transactions", tmp_path, "--output-format", "json")
    assert outcome.code == 3
    assert document_of(outcome)["rows"] == []


def test_a_log_without_transactions(kaudit, tmp_path):
    log = Log()
    log.append(data(1, 0, 0))
    outcome = kaudit("transactions", log.write(tmp_path / "orders-0"))
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, "no transaction is in these logs")


def test_redacted_rows_have_no_name(kaudit):
    for form in ("table", "json", "jsonl"):
        out = kaudit("transactions", SAMPLE, "--redact", "--redact-secret", "x", "--output-format", form).out
        assert not any(name in out for name in ("zombie", "jump", "outputs-0", "inputs-0"))
