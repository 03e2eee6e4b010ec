"""Rows of the DataFrame `records`: every field of them, of what batches were written by hand."""

import struct
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.segment import ByteRange
from kaudit.source.schemes import open_segment
from kaudit.spark import record_rows as module
from kaudit.spark.options import ReadOptions
from kaudit.spark.plan import Chosen, segment_reads
from kaudit.spark.readers import read_records
from kaudit.spark.schemas import LAST_TIMESTAMP_MS, arrow_schema, to_batches
from tests.logs import BASE_TIMESTAMP, Batch, Log, data, marker, record, sealed_records, varint

APPEND_TIME = 0x08
START = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=BASE_TIMESTAMP)
PRODUCER = {"producer_id": 7, "producer_epoch": 1, "leader_epoch": 3, "timestamp_type": "CreateTime"}


def segment(directory, *batches: bytes):
    path = directory / "orders-3"
    path.mkdir(exist_ok=True)
    (path / f"{0:020d}.log").write_bytes(b"".join(batches))
    return directory


def rows(directory, **options) -> list[dict[str, Any]]:
    read = ReadOptions(paths=(str(directory),), **options)
    ((own,),) = segment_reads(read, Chosen())[1]
    found = [row for batch in read_records(own, read) for row in batch.to_pylist()]
    for row in found:
        assert (row.pop("topic"), row.pop("partition"), row.pop("replica")) == ("orders", 3, directory.name)
        assert row.pop("segment") == f"{0:020d}.log"
    return found


def with_headers(timestamp_delta: int, offset_delta: int, *headers: tuple[bytes, bytes | None]) -> bytes:
    """A record without a key, its value `v`."""
    encoded = b"".join(
        varint(len(key)) + key + (varint(-1) if value is None else varint(len(value)) + value) for key, value in headers
    )
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + varint(-1) + varint(1) + b"v"
    body += varint(len(headers)) + encoded
    return varint(len(body)) + body


def test_every_field_of_records_of_a_producer(tmp_path):
    batch = Batch(7, 1, 5, count=2, base_offset=10, leader_epoch=3)
    records = [record(0, b"key", b"value"), with_headers(4, 1, (b"a", b"1"), (b"\xff", None))]
    raw = sealed_records(batch, records)
    shared = {"position": 0, "is_transactional": False, "error": None, **PRODUCER}
    assert rows(segment(tmp_path, raw)) == [
        {
            **shared, "offset": 10, "timestamp": START, "key": b"key", "value": b"value", "headers": [],
            "size": len(records[0]), "sequence": 5,
        },
        {
            **shared, "offset": 11, "timestamp": START + timedelta(milliseconds=4), "key": None, "value": b"v",
            "headers": [{"key": "a", "value": b"1"}, {"key": "\\xff", "value": None}],
            "size": len(records[1]), "sequence": 6,
        },
    ]  # fmt: skip


def test_markers_have_no_rows_and_transactions_are_named(tmp_path):
    log = Log()
    log.append(data(7, 1, 0, transactional=True))
    log.append(marker(7, 1, commit=False))
    log.append(data(7, 1, 1))
    log.write(tmp_path / "orders-3")
    found = rows(tmp_path)
    assert [(row["offset"], row["is_transactional"], row["sequence"]) for row in found] == [(0, True, 0), (2, False, 1)]
    assert found[1]["position"] == len(log.batches[0].encode()) + len(log.batches[1].encode())


def test_without_a_producer_id_there_is_no_producer(tmp_path):
    (row,) = rows(segment(tmp_path, Batch(attributes=APPEND_TIME).encode()))
    assert [row[name] for name in ("producer_id", "producer_epoch", "sequence")] == [None, None, None]
    assert (row["leader_epoch"], row["timestamp_type"], row["timestamp"]) == (0, "LogAppendTime", START)


def test_producer_id_0_is_one(tmp_path):
    (row,) = rows(segment(tmp_path, data(0, 0, 0).encode()))
    assert (row["producer_id"], row["producer_epoch"], row["sequence"]) == (0, 0, 0)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_have_neither_producers_nor_leader_epochs(tmp_path, magic):
    timestamp = struct.pack(">q", BASE_TIMESTAMP) if magic else b""
    content = bytes((magic, 0)) + timestamp + struct.pack(">i", 3) + b"key" + struct.pack(">i", 5) + b"value"
    message = struct.pack(">qiI", 9, 4 + len(content), zlib.crc32(content)) + content
    (row,) = rows(segment(tmp_path, message))
    assert row == {
        "position": 0, "offset": 9, "timestamp": START if magic else None,
        "timestamp_type": "CreateTime" if magic else None, "key": b"key", "value": b"value", "headers": [],
        "size": len(message), "producer_id": None, "producer_epoch": None, "sequence": None, "leader_epoch": None,
        "is_transactional": False, "error": None,
    }  # fmt: skip


def test_a_batch_that_cannot_be_decoded_is_one_row_whatever_is_asked_for(tmp_path):
    good, bad = data(7, 1, 0, base_offset=0), data(7, 1, 1, base_offset=1)
    raw = sealed_records(bad, [varint(100) + b"\0"])
    path = segment(tmp_path, good.encode(), raw, data(7, 1, 2, base_offset=2).encode())
    first, broken, last = rows(path)
    assert (first["offset"], last["offset"]) == (0, 2)
    assert broken["error"]
    assert [broken[name] for name in ("offset", "timestamp", "key", "value", "headers", "size", "sequence")] == [
        None
    ] * 7
    assert (broken["position"], broken["producer_id"]) == (len(good.encode()), 7)
    since = rows(path, since=BASE_TIMESTAMP, first_offset=1)
    assert [row["offset"] for row in since] == [None, 2]


def test_a_batch_too_large_to_decode_says_so(tmp_path, monkeypatch):
    raw = data(7, 1, 0).encode()
    path = segment(tmp_path, raw)
    monkeypatch.setattr(module, "BATCH_BYTES", len(raw))
    assert rows(path)[0]["error"] is None
    monkeypatch.setattr(module, "BATCH_BYTES", len(raw) - 1)
    (row,) = rows(path)
    limit = len(raw) - 1
    assert row["error"] == f"{len(raw)} bytes, more than the {limit} of which records are decoded"
    assert row["offset"] is None


@pytest.mark.parametrize(("asked", "offsets"), [
    ({}, [10, 11, 12]),
    ({"first_offset": 11}, [11, 12]),
    ({"last_offset": 11}, [10, 11]),
    ({"first_offset": 11, "last_offset": 11}, [11]),
    ({"since": 5}, [11, 12]),
    ({"since": 6}, [12]),
    ({"until": 5}, [10, 11]),
    ({"until": 4}, [10]),
    ({"since": 5, "until": 5}, [11]),
    ({"since": 5, "last_offset": 11}, [11]),
    ({"until": 10, "first_offset": 12}, [12]),
    ({"since": 11}, []),
])  # fmt: skip
def test_records_are_chosen_one_by_one_with_both_bounds_included(tmp_path, asked, offsets):
    """Of one batch, whose records are of 0, 5 and 10 ms; its header has but the first one's time."""
    batch = Batch(7, 1, 0, count=3, base_offset=10, timestamp=0)
    path = segment(tmp_path, sealed_records(batch, [with_headers(5 * number, number) for number in range(3)]))
    read = ReadOptions(paths=(str(path),), **asked)
    ((own,),) = segment_reads(ReadOptions(paths=(str(path),)), Chosen())[1]
    source = open_segment(own.task.spec.file)
    (piece,) = stream_batches(source, ByteRange(0, own.bytes, own.bytes), expected_offset=0, verify=True)
    found = [row for part in module.record_rows(own.task, source, piece.batches, read) for row in part.to_pylist()]
    source.close()
    assert [row["offset"] for row in found] == offsets


@pytest.mark.parametrize(("limit", "value", "sizes"), [
    ("_MOST_RECORDS", 2, [2, 2, 1]),
    ("_MOST_RECORDS", 5, [5]),
    ("_MOST_RECORDS", 1, [1, 1, 1, 1, 1]),
    ("_MOST_BYTES", 1, [1, 1, 1, 1, 1]),
    ("_MOST_BYTES", 2, [2, 2, 1]),
])  # fmt: skip
def test_record_batches_of_arrow_are_bounded(tmp_path, monkeypatch, limit, value, sizes):
    """`_MOST_BYTES` in records, all of one size."""
    size = len(record(0, None, b"x"))
    monkeypatch.setattr(module, limit, value * size if limit == "_MOST_BYTES" else value)
    read = ReadOptions(paths=(str(segment(tmp_path, data(7, 1, 0, 5).encode())),))
    ((own,),) = segment_reads(read, Chosen())[1]
    assert [batch.num_rows for batch in read_records(own, read)] == sizes


def test_rows_are_batches_of_so_many_with_times_that_spark_knows():
    made = list(
        to_batches(
            "records",
            [{"offset": number, "timestamp": time} for number, time in enumerate((0, 1, -1, None, LAST_TIMESTAMP_MS))]
            + [{"timestamp": LAST_TIMESTAMP_MS + 1}],
            most_rows=4,
        )
    )
    assert [batch.num_rows for batch in made] == [4, 2]
    assert all(batch.schema == arrow_schema("records") for batch in made)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    times = [row["timestamp"] for batch in made for row in batch.to_pylist()]
    last = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    assert times == [epoch, epoch + timedelta(milliseconds=1), None, None, last, None]
    assert list(to_batches("records", [])) == []
