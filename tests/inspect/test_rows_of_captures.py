"""Rows of real logs: against counts and texts the brokers' own tool made, and against independent readers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kaudit.formats.log.legacy import parse_message, read_legacy_records
from kaudit.inspect.row_filter import RowFilter
from kaudit.inspect.rows import identify
from kaudit.inspect.segment import SegmentReader
from kaudit.inspect.walk import InspectOptions, inspect_rows
from kaudit.source.uri import Uri

CAPTURES = (
    "clients-mix",
    "cross-session",
    "failover-acks1",
    "legacy-formats",
    "retention-compaction-2.8.2",
    "retry-dup",
    "torn-writes",
    "txn-mix-2.8.2",
    "unknown-pid-2.0.1",
    "zk-pid-blocks",
)


def rows_of(path: Path, **options: object) -> list[dict[str, Any]]:
    return list(inspect_rows(InspectOptions([str(path)], **options), batches=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("capture", CAPTURES)
def test_batches_are_those_the_tool_counted(evidence, capture):
    root = evidence.capture(capture)
    counts = json.loads((root / "counts.json").read_text())
    checked = 0
    for name, expected in counts.items():
        path = root / name
        # where the tool itself died its counts end; names that no broker gives are counted elsewhere
        if expected.get("tool_failed") or not path.exists() or "magics" not in expected:
            continue
        with SegmentReader(identify(Uri.parse(str(path)))) as segment:
            rows = list(segment.rows(RowFilter()))
            batches = [row for row in rows if row["row"] == "batch"]
            if not _same_reading(expected, batches, rows):
                continue
            checked += 1
            assert Counter(str(row["magic"]) for row in batches) == expected["magics"], name
            assert Counter(row["codec"] for row in batches) == expected["codecs"], name
            if "control_batches" in expected:
                assert sum(bool(row["is_control"]) for row in batches) == expected["control_batches"], name
                assert sum(bool(row["is_transactional"]) for row in batches) == expected["transactional_batches"], name
                assert len({row["producer_id"] for row in batches} - {None}) == expected["pids"], name
            if batches and "count_sum" in expected and all(row["magic"] == 2 for row in batches):
                assert sum(int(str(row["record_count"])) for row in batches) == expected["count_sum"], name
                assert batches[0]["base_offset"] == expected["batch_first_base"], name
                assert batches[-1]["last_offset"] == expected["batch_last_offset"], name
    assert checked


def _same_reading(expected, batches, rows):
    """The tool shows batches of a failing CRC, and stops at lost framing: then there is nothing to compare."""
    return len(batches) == expected["batches"] or all(row["row"] == "batch" for row in rows)


def _kafka_python(data):
    from kafka.record import MemoryRecords

    return MemoryRecords(data)


def _aiokafka(data):
    from aiokafka.record.memory_records import MemoryRecords

    return MemoryRecords(data)


@pytest.mark.parametrize("reader", [_kafka_python, _aiokafka])
def test_records_of_every_client_are_what_independent_readers_read(evidence, reader):
    compared = 0
    for path in sorted(evidence.capture("clients-mix").glob("logdirs/b1/mix-*/*.log")):
        ours = [row for row in rows_of(path, records=True) if row["row"] == "record"]
        theirs = []
        records = reader(path.read_bytes())
        while records.has_next():
            theirs += list(records.next_batch())
        assert len(ours) == len(theirs)
        for row, record in zip(ours, theirs, strict=True):
            assert (row["offset"], row["timestamp"]) == (record.offset, record.timestamp)
            assert row["timestamp_type"] == ("CreateTime", "LogAppendTime")[record.timestamp_type]
            assert (_bytes(row["key"]), _bytes(row["value"])) == (record.key, record.value)
            assert [(header["key"], _bytes(header["value"])) for header in row["headers"]] == list(record.headers)
        compared += len(ours)
    assert compared > 5000


def _bytes(shown):
    if shown is None:
        return None
    data = shown["text"].encode() if shown["encoding"] == "utf8" else bytes.fromhex(shown["text"])
    assert (len(data), shown["truncated"]) == (shown["size"], False)
    return data


def test_records_of_old_formats_are_all_there(evidence):
    root = evidence.capture("legacy-formats") / "logdirs" / "b0"
    offsets = {
        topic: [row["offset"] for row in rows_of(root / f"{topic}-0", records=True) if row["row"] == "record"]
        for topic in ("m0-gzip", "m1-snappy", "up-0-1-2")
        if (root / f"{topic}-0").exists()
    }
    assert offsets
    for found in offsets.values():
        assert found == list(range(len(found)))
        assert found


def test_wrappers_name_their_last_offset_only_until_they_are_opened(evidence):
    root = evidence.capture("legacy-formats") / "logdirs" / "b0"
    seen = 0
    for path in root.glob("m1-*/*.log"):
        for row in rows_of(path):
            if row["codec"] == "none":
                continue
            assert (row["base_offset"], row["record_count"]) == (None, None)
            raw = path.read_bytes()[row["position"] : row["position"] + row["size"]]
            assert [record.offset for record in read_legacy_records(parse_message(raw))][-1] == row["last_offset"]
            seen += 1
    assert seen


def test_every_side_file_of_every_capture_decodes(evidence):
    for capture in CAPTURES:
        if capture == "torn-writes":
            continue
        rows = list(inspect_rows(InspectOptions([str(evidence.capture(capture))]), batches=False))
        damaged = [row["file"] for row in rows if row["status"] not in ("ok", "empty", "unknown", "zero-tail")]
        assert damaged == [], capture
        kinds = {row["kind"] for row in rows}
        assert {"segment", "index", "timeindex", "checkpoint"} <= kinds
