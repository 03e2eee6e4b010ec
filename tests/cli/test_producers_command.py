"""`kaudit producers`: what is typed becomes what the engine is asked, and mistakes are reported."""

import json

import pytest

from kaudit.analysis.producer_ids.query import SortKey
from kaudit.analysis.scan.options import NothingToAuditError
from kaudit.cli.exits import ExitCode


def test_every_option_reaches_the_engine(engine, kaudit):
    done = kaudit(
        *("producers", "/data", "--summary", "--sort", "last", "--reverse", "--limit", "7", "--min-batches", "2"),
        *("--max-batches", "9", "--min-epochs", "3", "--min-age", "12h", "--max-age", "7d", "--with-findings"),
        *("--zookeeper", "zk", "--blocks", "b", "--metadata", "m", "--select", "KA4", "--exit-zero"),
    )
    assert done.code == ExitCode.OK
    query, options = engine.query, engine.options
    assert (query.sort, query.reverse, query.limit, query.summary_only) == (SortKey.LAST, True, 7, True)
    assert (query.min_batches, query.max_batches, query.min_epochs) == (2, 9, 3)
    assert (query.min_age_ms, query.max_age_ms, query.with_findings) == (43_200_000, 604_800_000, True)
    assert (options.zookeeper, options.blocks, options.metadata) == ("zk", "b", "m")
    assert query.includes("KA401")
    assert not query.includes("KA102")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("90s", 90_000), ("30m", 1_800_000), ("12h", 43_200_000), ("7d", 604_800_000), ("999999999s", 999_999_999_000)],
)
def test_spans(engine, kaudit, text, milliseconds):
    kaudit("producers", "/data", "--max-age", text)
    assert (engine.query.min_age_ms, engine.query.max_age_ms) == (None, milliseconds)


@pytest.mark.parametrize("text", ["", "7", "d", "1.5h", "-1h", "7 d", "9999999999s", "٣d"])
def test_spans_that_are_none(engine, kaudit, text):
    done = kaudit("producers", "/data", "--min-age", text)
    assert done.code == ExitCode.USAGE
    assert "not a span of time; write 90s, 30m, 12h or 7d" in done.err
    assert engine.query is None


def test_the_document_is_the_contracts(engine, kaudit):
    done = kaudit("producers", "/data", "--output-format", "json", "--reproducible")
    assert done.code == ExitCode.FINDINGS
    document = json.loads(done.out)
    assert document["schema"] == "kaudit.producers/1"
    first, shared, made_up = document["producers"]
    assert set(first) >= {"producer_id", "transactional_id", "block", "partitions"}
    assert (shared["block"]["start"], shared["block"]["broker"], shared["block"]["grants"]) == (1000, 3, 2)
    assert made_up["block"] is None
    assert set(first["partitions"][0]) == {
        *("topic", "partition", "replica", "first_offset", "last_offset", "first_timestamp", "last_timestamp"),
        *("epochs", "batches", "records", "state", "findings"),
    }
    assert set(first["partitions"][0]["state"]) == {
        *("producer_epoch", "last_sequence", "last_offset", "last_timestamp", "coordinator_epoch"),
        "current_txn_start_offset",
    }
    assert set(document["blocks"][0]) == {"start", "end", "broker", "version", "at", "source"}
    assert document["summary"]["findings"]["error"] == len(document["findings"]) == 2
    # written a producer at a time, the document is what json would have written at once
    assert done.out == json.dumps(document, sort_keys=True, indent=2) + "\n"


def test_jsonl_has_a_line_per_producer_and_the_summary_last(engine, kaudit):
    lines = [json.loads(line) for line in kaudit("producers", "/data", "--output-format", "jsonl").out.splitlines()]
    assert [line["type"] for line in lines] == ["producer"] * 3 + ["finding"] * 2 + ["summary"]
    assert lines[-1]["summary"]["ids"]["found"] == 12_345


def test_findings_not_selected_are_neither_counted_nor_listed(engine, kaudit):
    done = kaudit("producers", "/data", "--select", "KA401", "--output-format", "json")
    document = json.loads(done.out)
    assert [finding["code"] for finding in document["findings"]] == ["KA401"]
    assert document["summary"]["findings"]["error"] == 1


def test_nothing_to_audit_is_a_valid_empty_document(engine, kaudit):
    engine.error = NothingToAuditError("nothing to audit under /data: no segment")
    done = kaudit("producers", "/data", "--output-format", "json")
    assert done.code == ExitCode.NOTHING_TO_AUDIT
    assert json.loads(done.out)["producers"] == []


def test_into_a_file(engine, kaudit, tmp_path):
    target = tmp_path / "producers.json"
    done = kaudit("producers", "/data", "--output-format", f"json:{target}", "-q")
    assert (done.out, done.err) == ("", "")
    assert len(json.loads(target.read_text())["producers"]) == 3


def test_a_source_that_does_not_exist_is_reported_in_one_line(kaudit, tmp_path, evidence):
    logs = evidence.capture("zk-pid-blocks") / "logdirs"
    done = kaudit("producers", logs, "--zookeeper", tmp_path / "nowhere")
    assert done.code == ExitCode.USAGE
    assert done.err == f"kaudit: --zookeeper {tmp_path / 'nowhere'}: no such directory\n"
