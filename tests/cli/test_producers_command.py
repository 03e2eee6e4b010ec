"""`kaudit producers`: what is typed becomes what the engine is asked, and mistakes are reported."""

import json

import pytest

from kaudit.cli.exits import ExitCode
from kaudit.errors import NothingToAuditError
from kaudit.listings.query import SortKey
from tests.checks.transactions.coordinator_log import (
    COMPLETE_COMMIT,
    EMPTY,
    state,
    tombstone,
    write_partition,
    write_states,
)
from tests.logs import BASE_TIMESTAMP


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


class TestExpiredTransactionalIds:
    @pytest.fixture
    def logs(self, tmp_path):
        """Two ids that expired, of which the first had producer id 7 and came back as 8."""
        write_partition(tmp_path, "orders", (True, True))
        came_back = [state("t", COMPLETE_COMMIT, epoch=2), tombstone("t"), state("t", EMPTY, producer_id=8)]
        write_states(tmp_path, [*came_back, tombstone("x\x1b[2J")])
        return tmp_path

    def test_what_they_had_and_got_and_what_it_means(self, kaudit, logs):
        done = kaudit("producers", logs)
        at, lines = "2023-11-14 22:13:20", done.out.splitlines()
        assert done.code == ExitCode.OK
        start = lines.index("Expired transactional ids: 2")
        assert lines[start + 1 : start + 3] == [
            f"  t: producer id 7 epoch 2, last updated {at}; expired {at} UTC (__transaction_state-0@1); then producer id 8",
            f"  x\\x1b[2J: its earlier producer id is no longer in the log; expired {at} UTC (__transaction_state-0@3); not seen since",
        ]
        assert "INVALID_PRODUCER_ID_MAPPING" in lines[start + 3]
        assert "transactional.id.expiration.ms" in done.out
        (line,) = [
            line for line in kaudit("producers", logs, "--output-format", "concise").out.splitlines() if " t:" in line
        ]
        assert line == f"expired transactional id{lines[start + 1][1:]}"

    def test_for_programs(self, kaudit, logs):
        document = json.loads(kaudit("producers", logs, "--output-format", "json").out)
        assert document["summary"]["expired_transactional_ids"] == 2
        time = "2023-11-14T22:13:20.000Z"
        assert BASE_TIMESTAMP == 1_700_000_000_000
        assert document["expired_transactional_ids"] == [
            {
                "transactional_id": "t",
                "producer_id": 7,
                "producer_epoch": 2,
                "last_update_timestamp": time,
                "expired_timestamp": time,
                "partition": 0,
                "offset": 1,
                "next_producer_id": 8,
            },
            {
                "transactional_id": "x\x1b[2J",
                "producer_id": None,
                "producer_epoch": None,
                "last_update_timestamp": None,
                "expired_timestamp": time,
                "partition": 0,
                "offset": 3,
                "next_producer_id": None,
            },
        ]

    def test_a_summary_counts_them(self, kaudit, logs):
        text = kaudit("producers", logs, "--summary").out
        assert "Expired transactional ids: 2\n  = rule: " in text
        document = json.loads(kaudit("producers", logs, "--summary", "--output-format", "json").out)
        assert (document["summary"]["expired_transactional_ids"], document["expired_transactional_ids"]) == (2, [])

    def test_of_a_producer_id_they_are_those_that_had_it(self, kaudit, logs):
        write_partition(logs, "payments", (True,), producer_id=8)
        write_partition(logs, "audit", (True,), producer_id=9)
        for producer_id, names in ((7, ["t"]), (8, ["t"]), (9, [])):
            asked = ("--producer-id", str(producer_id), "--topic", "audit", "--topic", "payments", "--topic", "orders")
            document = json.loads(kaudit("producers", logs, *asked, "--output-format", "json").out)
            assert [entry["transactional_id"] for entry in document["expired_transactional_ids"]] == names
            assert document["summary"]["expired_transactional_ids"] == len(names)
            assert ("Expired" in kaudit("producers", logs, *asked).out) == bool(names)
