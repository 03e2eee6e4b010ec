"""`kaudit dedup`: formats, exit codes, what it says of what it cannot compare."""

import json

import duckdb
import pyarrow.parquet as pq
import pytest

from kaudit.model.table_columns import DUPLICATE_COLUMNS, DUPLICATE_TABLES
from tests.formats import encoders
from tests.logs import Log, data

RETRIES = "samples/retries"


def rows_of(outcome):
    *rows, summary = [json.loads(line) for line in outcome.out.splitlines()]
    return rows, summary


def test_every_format_has_the_same_rows(kaudit, tmp_path):
    rows, summary = rows_of(kaudit("dedup", RETRIES, "--output-format", "jsonl"))
    document = json.loads(kaudit("dedup", RETRIES, "--output-format", "json").out)
    assert document["rows"] == rows
    assert {"row": "summary", **document["summary"]} == summary
    assert kaudit("dedup", RETRIES, "--output-format", "parquet", "-o", tmp_path / "out").code == 0
    tables = pq.read_table(tmp_path / "out" / "duplicate").drop(["more"]).to_pylist()
    assert [{"row": "duplicate", **row} for row in tables] == rows
    assert [row["offset"] for row in rows] == [5, 6, 7, 8, 9, 10, 6, 7, 8]
    assert all(set(row) == {"row", *DUPLICATE_TABLES["duplicate"]} for row in rows)
    assert set(DUPLICATE_COLUMNS) == {*DUPLICATE_TABLES["duplicate"], *DUPLICATE_TABLES["range"]}
    assert pq.read_table(tmp_path / "out" / "range").drop(["more"]).to_pylist() == summary["ranges"]
    assert [(row["offset"], row["last_offset"], row["cause"]) for row in summary["ranges"]] == [
        (5, 5, "retry"), (6, 6, "retry"), (7, 10, "restart"), (6, 8, "retry"),
    ]  # fmt: skip
    assert (summary["more_ranges"], summary["counts"]["by_cause"]) == (0, {"retry": 5, "restart": 4})


def test_the_hash_joins_with_keys_in_a_store(kaudit, tmp_path):
    log = Log()
    for sequence, key in enumerate((b"order-1", b"order-2", b"order-1")):
        log.append(data(sequence + 1, 0, 0, payload=b"paid", key=key))
    path = log.write(tmp_path / "orders-0")
    kaudit("dedup", path, "--output-format", "parquet", "-o", tmp_path / "out")
    query = f"SELECT k FROM (VALUES ('order-1'), ('order-2')) AS store(k) JOIN '{tmp_path}/out/duplicate/*.parquet' ON sha256(k) = key_hash"
    joined = duckdb.sql(query)
    assert joined is not None
    assert joined.fetchall() == [("order-1",)]


def test_no_payload_is_shown(kaudit, tmp_path):
    log = Log()
    for producer_id in (1, 2):
        log.append(data(producer_id, 0, 0, payload=b"secret-value", key=b"secret-key"))
    path = log.write(tmp_path / "orders-0")
    for form in ("table", "json", "jsonl"):
        assert "secret" not in kaudit("dedup", path, "--output-format", form).out


def test_a_consumer_that_reads_committed(kaudit):
    place = "samples/hanging-transaction"
    assert "read_committed" in kaudit("dedup", place, "--isolation-level", "read_committed").out
    assert kaudit("dedup", place, "--isolation-level", "serializable").code == 2


def test_nothing_to_compare(kaudit, tmp_path):
    outcome = kaudit("dedup", tmp_path, "--output-format", "json")
    assert outcome.code == 3
    assert json.loads(outcome.out)["rows"] == []
    assert kaudit("dedup", tmp_path / "none").code == 2


@pytest.mark.parametrize("depth", ["crc", "records"])
def test_records_are_decoded_at_every_depth_and_what_cannot_be_is_said(kaudit, depth):
    outcome = kaudit("dedup", "samples/malformed", "--depth", depth)
    assert outcome.code == 0
    assert "cannot be decoded" in outcome.err


def test_the_ranges_come_first_and_each_record_with_verbose(kaudit):
    short, long = (kaudit("dedup", RETRIES, "--topic", "invoices", *more).out for more in ((), ("-v",)))
    assert short.startswith(
        "4 of 14 records repeat earlier ones (as isolation.level=read_uncommitted is given them)\n\n"
        "invoices-0: 7..10 repeat 3..6 (4 records)\n"
        "  likely a restart: producer 4001/0 begins with what producer 4000/0 had written\n"
        "  equal in key, value and headers; timestamps 20 s later\n"
    )
    assert long.startswith(short)
    assert "original's sequence" in long.removeprefix(short)


def test_an_identity_that_there_is_not(kaudit):
    outcome = kaudit("dedup", RETRIES, "--identity", "debezum")
    assert (outcome.code, "did you mean debezium?" in outcome.err) == (2, True)


def test_a_text_has_no_bytes_to_compare(kaudit, evidence):
    text = min((evidence.capture("retry-dup") / "dumps").glob("*nonidem-dup*.log.*.txt"))
    outcome = kaudit("dedup", text)
    assert outcome.code == 0
    assert "text of kafka-dump-log" in outcome.err


@pytest.mark.parametrize("codec", [0, 4])
def test_a_repeat_whose_header_cannot_be_decoded_is_counted_and_the_others_are_listed(kaudit, tmp_path, codec):
    # Kafka's DefaultRecord refuses a header without a key: "Invalid null header key found in headers"
    body = encoders.record(0, 0, b"k", b"v")[1:-1] + encoders.varint(1) + encoders.varint(-1) + encoders.varint(-1)
    keyless = encoders.varint(len(body)) + body
    whole = encoders.record(0, 0, b"k", b"w", [(b"id", b"1")])
    batches = [
        encoders.batch([record], offset, codec, producer_id=1 + offset // 2, producer_epoch=0, base_sequence=offset % 2)
        for offset, record in enumerate((keyless, whole, keyless, whole))
    ]
    path = tmp_path / "orders-0"
    path.mkdir()
    (path / f"{0:020d}.log").write_bytes(b"".join(batches))
    outcome = kaudit("dedup", path, "--output-format", "jsonl")
    rows, summary = rows_of(outcome)
    assert outcome.code == 0
    assert "1 repeat cannot be read again, or not be decoded" in outcome.err
    assert [(row["offset"], row["original_offset"], row["sequence"]) for row in rows] == [(3, 1, 1)]
    assert (summary["partitions"][0]["unread"], summary["partitions"][0]["undecoded"]) == (1, 0)
