"""Whole rows of files packed by hand: each field of a side file, and what each byte of a header means."""

import struct
import zlib
from typing import Any

import crc32c
import pytest

from kaudit.inspect import side_files
from kaudit.inspect.internal_topics import content_row, dump_content_row
from kaudit.inspect.walk import InspectOptions, inspect_rows
from tests.formats.encoders import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    batch,
    marker,
    message,
    record,
    string,
)
from tests.logs import BASE_TIMESTAMP

NAME = "00000000000000001000.log"
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAABw"
OF_ANY = {"topic": "orders", "partition": 3, "replica": "data"}


def rows_of(directory, name, data, **options) -> list[dict[str, Any]]:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(data)
    return list(inspect_rows(InspectOptions([str(directory / name)], **options), batches=True))


def snapshot(*entries):
    body = struct.pack(">i", len(entries)) + b"".join(struct.pack(">qhiqiqiq", *entry) for entry in entries)
    return struct.pack(">hI", 1, crc32c.crc32c(body)) + body


SIDE_FILES: dict[str, tuple[bytes, str, list[dict[str, Any]]]] = {
    "00000000000000001000.index": (
        struct.pack(">iiii", 4, 100, 9, 4200),
        "index",
        [
            {"position": 0, "offset": 1004, "relative_offset": 4, "log_position": 100},
            {"position": 8, "offset": 1009, "relative_offset": 9, "log_position": 4200},
        ],
    ),
    "00000000000000001000.timeindex": (
        struct.pack(">qiqi", BASE_TIMESTAMP, 4, BASE_TIMESTAMP + 5, 9),
        "timeindex",
        [
            {"position": 0, "timestamp": BASE_TIMESTAMP, "offset": 1004, "relative_offset": 4},
            {"position": 12, "timestamp": BASE_TIMESTAMP + 5, "offset": 1009, "relative_offset": 9},
        ],
    ),
    "00000000000000001000.txnindex": (
        struct.pack(">hqqqq", 0, 77, 1001, 1005, 1003) + struct.pack(">hqqqq", 0, 78, 1002, 1008, 1009),
        "txnindex",
        [
            {"position": 0, "producer_id": 77, "first_offset": 1001, "last_offset": 1005, "last_stable_offset": 1003},
            {"position": 34, "producer_id": 78, "first_offset": 1002, "last_offset": 1008, "last_stable_offset": 1009},
        ],
    ),
    "00000000000000001000.snapshot": (
        snapshot((77, 3, 41, 990, 7, BASE_TIMESTAMP, 5, 980), (78, -1, -1, -1, 0, -1, -1, -1)),
        "snapshot",
        [
            {
                "position": 10, "snapshot_offset": 1000, "producer_id": 77, "producer_epoch": 3, "last_sequence": 41,
                "last_offset": 990, "offset_delta": 7, "timestamp": BASE_TIMESTAMP, "coordinator_epoch": 5,
                "current_txn_start_offset": 980,
            },
            {
                "position": 56, "snapshot_offset": 1000, "producer_id": 78, "producer_epoch": None,
                "last_sequence": None, "last_offset": None, "offset_delta": 0, "timestamp": None,
                "coordinator_epoch": None, "current_txn_start_offset": None,
            },
        ],
    ),
    "leader-epoch-checkpoint": (
        b"0\n2\n0 0\n7 1005\n",
        "leader_epoch",
        [{"leader_epoch": 0, "offset": 0}, {"leader_epoch": 7, "offset": 1005}],
    ),
    "replication-offset-checkpoint": (
        b"0\n2\norders 3 11\npay-ments 12 7\n",
        "checkpoint",
        [{"topic": "orders", "partition": 3, "offset": 11}, {"topic": "pay-ments", "partition": 12, "offset": 7}],
    ),
    "partition.metadata": (
        f"version: 0\ntopic_id: {TOPIC_ID}".encode(),
        "partition_metadata",
        [{"version": 0, "topic_id": TOPIC_ID}],
    ),
    "meta.properties": (
        b"#\nnode.id=3\nversion=1\ncluster.id=Lu\ndirectory.id=Dir\nother.key=x\n",
        "meta_properties",
        [{"version": 1, "node_id": 3, "cluster_id": "Lu", "directory_id": "Dir", "others": {"other.key": "x"}}],
    ),
    ".kafka_cleanshutdown": (b'{"version":0,"brokerEpoch":12}', "clean_shutdown", [{"broker_epoch": 12}]),
    "quorum-state": (b'{"leaderId":1}', "quorum_state", [{"content": {"leaderId": 1}}]),
}  # fmt: skip


@pytest.mark.parametrize("name", SIDE_FILES)
def test_each_field_of_a_side_file(tmp_path, name):
    data, kind, expected = SIDE_FILES[name]
    segment = NAME if name.startswith("0") else None
    common = {**OF_ANY, "row": kind, "segment": segment, "file": name}
    assert rows_of(tmp_path / "data" / "orders-3", name, data) == [common | row for row in expected]


@pytest.mark.parametrize(
    ("name", "position", "end", "kind"),
    [
        ("00000000000000001000.index", 16, 19, "truncated"),
        ("00000000000000001000.timeindex", 24, 27, "truncated"),
        ("00000000000000001000.txnindex", 68, 71, "truncated"),
    ],
)
def test_what_follows_the_last_whole_entry_is_damage(tmp_path, name, position, end, kind):
    data, _, entries = SIDE_FILES[name]
    *rows, damage = rows_of(tmp_path / "data" / "orders-3", name, data + b"\1\2\3")
    assert len(rows) == len(entries)
    assert damage == {
        **OF_ANY, "row": "damage", "segment": NAME, "file": name, "position": position, "end": end, "size": 3,
        "kind": kind, "detail": damage["detail"], "broker": damage["broker"],
    }  # fmt: skip


@pytest.mark.parametrize("name", ["00000000000000001000.snapshot", "leader-epoch-checkpoint", "quorum-state"])
def test_a_file_that_says_nothing_is_damage_from_its_fault_to_its_end(tmp_path, name):
    data = b"{x" if name == "quorum-state" else SIDE_FILES[name][0][:-2] + b"?!"
    (damage,) = [row for row in rows_of(tmp_path / "orders-3", name, data) if row["row"] == "damage"]
    assert damage["end"] == len(data)
    assert damage["size"] == damage["end"] - damage["position"]
    assert 0 <= damage["position"] < len(data)


@pytest.mark.parametrize(("limit", "kinds"), [(16, ["index", "index"]), (15, ["damage"])])
def test_a_side_file_beyond_the_limit_is_not_decoded(tmp_path, monkeypatch, limit, kinds):
    monkeypatch.setattr(side_files, "MAX_SIDE_FILE", limit)
    rows = rows_of(tmp_path / "orders-3", "00000000000000001000.index", SIDE_FILES["00000000000000001000.index"][0])
    assert [row["row"] for row in rows] == kinds
    if kinds == ["damage"]:
        assert (rows[0]["kind"], rows[0]["position"], rows[0]["end"]) == ("limit", 0, limit + 1)


# -- one header, byte by byte


def fields_at(directory, data, at=0, name=NAME) -> dict[str, dict[str, Any]]:
    return {row["field"]: row for row in rows_of(directory / "data" / "orders-3", name, data, at=at)}


def meanings(directory, data, at=0) -> dict[str, str]:
    return {name: row["meaning"] for name, row in fields_at(directory, data, at).items()}


def crc_of(raw):
    return f"0x{int.from_bytes(raw[17:21], 'big'):08x}"


ONE = [record(0, value=b"v")]
TWO = [record(0, value=b"v"), record(1, value=b"w")]


def test_what_each_field_of_a_batch_means(tmp_path):
    raw = batch(
        TWO, base_offset=1000, producer_id=77, producer_epoch=3, base_sequence=2**31 - 1, leader_epoch=9,
        flags=TRANSACTIONAL, max_timestamp=BASE_TIMESTAMP + 1,
    )  # fmt: skip
    assert meanings(tmp_path, raw + raw) == {
        "base_offset": "offsets 1000 to 1001",
        "batch_length": f"ends at byte {len(raw)}",
        "leader_epoch": "",
        "magic": "",
        "crc": f"{crc_of(raw)}, matches",
        "attributes": "none, CreateTime, transactional",
        "last_offset_delta": "",
        "base_timestamp": "2023-11-14T22:13:20.000Z",
        "max_timestamp": "2023-11-14T22:13:20.001Z",
        "producer_id": "",
        "producer_epoch": "",
        "base_sequence": f"sequences {2**31 - 1} to 0",
        "record_count": "",
        "payload": f"{len(raw) - 61} bytes to byte {len(raw)}",
    }


def test_a_header_that_begins_inside_the_file(tmp_path):
    raw = batch(ONE, base_offset=1001, base_sequence=0)
    before = batch(TWO, base_offset=1000)
    found = meanings(tmp_path, before + raw, at=len(before))
    end = len(before) + len(raw)
    assert (found["crc"], found["base_offset"], found["base_sequence"]) == (
        f"{crc_of(raw)}, matches", "offsets 1001 to 1001", "sequences 0 to 0",
    )  # fmt: skip
    assert found["batch_length"] == f"ends at byte {end}, the end of the file"
    assert found["payload"] == f"{len(raw) - 61} bytes to byte {end}"


def test_what_a_field_means_that_holds_minus_one(tmp_path):
    raw = batch(ONE, base_offset=1000, leader_epoch=-1, base_timestamp=-1)
    found = meanings(tmp_path, raw)
    none = ("leader_epoch", "producer_id", "producer_epoch", "base_timestamp", "max_timestamp")
    assert [found[name] for name in none] == ["none"] * 5
    assert found["base_sequence"] == "no sequence"
    assert found["batch_length"] == f"ends at byte {len(raw)}, the end of the file"


def test_what_a_field_means_that_no_broker_writes(tmp_path):
    raw = batch(
        ONE, base_offset=1000, count=3, base_sequence=-2, base_timestamp=2**62, last_offset_delta=-1, producer_id=-2
    )
    found = meanings(tmp_path, raw)
    assert found["record_count"] == "the last offset delta implies 0"
    assert (found["base_sequence"], found["producer_id"]) == ("", "")
    assert found["base_timestamp"] == "outside the calendar"
    assert meanings(tmp_path, batch(ONE, base_sequence=5, last_offset_delta=-1))["base_sequence"] == ""


@pytest.mark.parametrize(
    ("codec", "flags", "meaning"),
    [
        (0, 0, "none, CreateTime"),
        (1, 0, "gzip, CreateTime"),
        (4, LOG_APPEND_TIME, "zstd, LogAppendTime"),
        (0, TRANSACTIONAL | CONTROL, "none, CreateTime, transactional, control"),
        (0, CONTROL | DELETE_HORIZON, "none, CreateTime, control, horizon"),
        (5, 0, "codec-5, CreateTime"),
    ],
)
def test_what_attributes_mean(tmp_path, codec, flags, meaning):
    found = meanings(tmp_path, batch(ONE, codec=codec, flags=flags))
    assert found["attributes"] == meaning
    horizon = ", the delete horizon" if flags & DELETE_HORIZON else ""
    assert found["base_timestamp"] == "2023-11-14T22:13:20.000Z" + horizon


@pytest.mark.parametrize(("magic", "codec"), [(0, 0), (0, 2), (1, 0), (1, 3)])
def test_what_the_fields_of_old_messages_mean(tmp_path, magic, codec):
    raw = message(1000, magic, key=None, value=b"value", codec=codec, timestamp=BASE_TIMESTAMP)
    found = fields_at(tmp_path, raw + raw, at=12)
    expected = {
        "offset": "",
        "message_size": f"ends at byte {len(raw)}",
        "crc": f"0x{zlib.crc32(raw[16:]):08x}, matches",
        "magic": "",
        "attributes": ("none", "gzip", "snappy", "lz4")[codec] + (", CreateTime" if magic else ""),
        **({"timestamp": "2023-11-14T22:13:20.000Z"} if magic else {}),
    }
    assert {name: found[name]["meaning"] for name in expected} == expected
    assert [name for name, row in found.items() if row["here"]] == ["crc"]


def test_a_crc_that_does_not_match_is_computed(tmp_path):
    raw = bytearray(batch(ONE, base_offset=1000))
    raw[-1] ^= 1
    computed = crc32c.crc32c(bytes(raw[21:]))
    found = fields_at(tmp_path, bytes(raw))
    assert found["crc"]["meaning"] == f"{crc_of(raw)}, computed 0x{computed:08x}"
    assert found["crc"]["value"] == int.from_bytes(raw[17:21], "big")


def test_the_crc_of_a_large_batch_is_computed_in_pieces(tmp_path):
    raw = batch([record(0, value=bytes(3 << 20))], base_offset=1000)
    assert meanings(tmp_path, raw)["crc"] == f"{crc_of(raw)}, matches"
    assert meanings(tmp_path, raw)["payload"] == f"{len(raw) - 61} bytes to byte {len(raw)}"


@pytest.mark.parametrize(
    ("length", "meaning", "checked", "payload"),
    [
        (-5, "too short for a batch", False, "{rest} bytes to byte {size}"),
        (-1, "too short for a batch", False, "{rest} bytes to byte {size}"),
        (0, "too short for a batch", True, None),
        (48, "too short for a batch", True, None),
        (49, "ends at byte 61", True, None),
        (50, "ends at byte 62", True, "1 bytes to byte 62"),
        (1000, "ends at byte 1012, beyond the file's {size}", False, "{rest} bytes to byte {size}"),
    ],
)
def test_what_a_length_means(tmp_path, length, meaning, checked, payload):
    raw = batch(ONE, base_offset=1000, length=length)
    found = meanings(tmp_path, raw)
    size = {"size": len(raw), "rest": len(raw) - 61}
    assert found["batch_length"] == meaning.format(**size)
    assert found["crc"].endswith("cannot be checked") is not checked
    assert found.get("payload") == (None if payload is None else payload.format(**size))


def test_what_the_length_of_an_old_message_means(tmp_path):
    """Kafka's LegacyRecord.RECORD_OVERHEAD_V0 is 14 bytes behind offset and length: crc, magic, attributes, two lengths."""
    raw = message(1000, 0)
    assert len(raw) == 12 + 14
    for length, meaning in ((13, "too short for a batch"), (14, "ends at byte 26, the end of the file")):
        data = raw[:8] + struct.pack(">i", length) + raw[12:]
        assert meanings(tmp_path, data)["message_size"] == meaning


def test_a_header_that_the_file_cuts_off(tmp_path):
    raw = batch(ONE, base_offset=1000)
    found = fields_at(tmp_path, raw + raw[:19], at=len(raw))
    assert list(found) == ["base_offset", "batch_length", "leader_epoch", "magic", "crc"]
    assert (found["crc"]["meaning"], found["crc"]["value"], found["crc"]["length"]) == (
        "cut off by the end of the file", None, 2,
    )  # fmt: skip
    assert found["base_offset"]["meaning"] == ""
    short = fields_at(tmp_path, raw + raw[:10], at=len(raw))
    assert short["batch_length"]["meaning"] == "cut off by the end of the file"
    assert list(fields_at(tmp_path, raw + raw[:16], at=len(raw))) == ["base_offset", "batch_length", "leader_epoch"]
    old = message(1000, 1, value=b"v", timestamp=BASE_TIMESTAMP)
    whole, cut = (fields_at(tmp_path, raw + old[:size], at=len(raw)) for size in (18, 17))
    assert list(whole) == ["offset", "message_size", "crc", "magic", "attributes"]
    assert list(cut) == ["offset", "message_size", "crc", "magic"]


def test_the_payload_is_where_the_header_ends(tmp_path):
    raw = batch([record(0, value=b"x" * 100)], base_offset=1000)
    first, last = 61, len(raw) - 1
    for at in (first, last):
        payload = fields_at(tmp_path, raw + raw, at)["payload"]
        assert (payload["position"], payload["length"], payload["here"]) == (61, len(raw) - 61, True)
        assert bytes.fromhex(payload["hex"]) == raw[61:93]
    small = batch(ONE, base_offset=1000)
    assert bytes.fromhex(fields_at(tmp_path, small + raw)["payload"]["hex"]) == small[61:]
    assert not fields_at(tmp_path, raw + raw, 60)["payload"]["here"]
    assert fields_at(tmp_path, raw + raw, len(raw))["payload"]["position"] == len(raw) + 61
    assert "payload" not in fields_at(tmp_path, batch([]))


def test_bytes_inside_damage_are_shown_as_a_header_from_there_on(tmp_path):
    raw = batch(ONE, base_offset=1000)
    garbage = b"\xaa" * 200
    data = raw + garbage + batch(ONE, base_offset=1001)
    starts = {
        at: fields_at(tmp_path, data, len(raw) + at)["base_offset"]["position"] - len(raw) for at in (0, 60, 61, 99)
    }
    assert starts == {0: 0, 60: 0, 61: 61, 99: 99}


def test_only_batches_of_magic_2_have_a_delete_horizon(tmp_path):
    raw = (
        message(1000, 1, value=b"v", attributes=DELETE_HORIZON)
        + batch(ONE, 1001, flags=DELETE_HORIZON)
        + batch(ONE, 1002)
    )
    rows = rows_of(tmp_path, NAME, raw)
    assert [row["delete_horizon_ms"] for row in rows] == [None, BASE_TIMESTAMP, None]
    assert [(row["is_transactional"], row["is_control"]) for row in rows] == [(False, False)] * 3


def control(key, value=None, records=1):
    return batch([record(0, key=key, value=value)][:records], flags=CONTROL, count=records)


@pytest.mark.parametrize(
    ("raw", "kind", "coordinator_epoch"),
    [
        (marker(1, 6), "COMMIT", 6),
        (marker(0, 7), "ABORT", 7),
        (control(struct.pack(">hh", 0, 2), b"leader"), "LEADER_CHANGE", None),
        (control(struct.pack(">hh", 0, 6), b"voters"), "KRAFT_VOTERS", None),
        (control(struct.pack(">hh", 0, 99), b"?"), "UNKNOWN", None),
        (control(b"\0"), "UNDECODED", None),
        # what compaction has left of a batch says nothing
        (control(b"", records=0), None, None),
        (batch(ONE), None, None),
    ],
)
def test_what_a_control_batch_says(tmp_path, raw, kind, coordinator_epoch):
    (row,) = rows_of(tmp_path, NAME, raw)
    assert (row["is_control"], row["control_type"], row["coordinator_epoch"]) == (
        raw[22] & CONTROL != 0,
        kind,
        coordinator_epoch,
    )


GARBAGE, ZEROS = b"\xaa" * 100, bytes(512)


@pytest.mark.parametrize(
    ("content", "status", "batches", "damage_at"),
    [
        ([batch(TWO, 1000), batch(TWO, 1002)], "ok", 2, None),
        ([], "empty", 0, None),
        ([batch(TWO, 1000), batch(TWO, 1002), ZEROS], "zero-tail", 2, 2),
        ([ZEROS], "zero-tail", 0, 0),
        ([batch(TWO, 1000), ZEROS, batch(TWO, 1002)], "damaged", 2, 1),
        ([batch(TWO, 1000), GARBAGE, batch(TWO, 1002), ZEROS], "damaged", 2, 1),
        ([batch(TWO, 1000), batch(TWO, 1002)[:-3]], "damaged", 1, 1),
    ],
)
def test_the_status_of_a_segment_in_a_list_of_files(tmp_path, content, status, batches, damage_at):
    (tmp_path / NAME).write_bytes(b"".join(content))
    (row,) = inspect_rows(InspectOptions([str(tmp_path)]), batches=False)
    last = {0: None, 1: 1001, 2: 1003}[batches]
    assert (row["status"], row["entries"], row["size"]) == (status, batches, sum(map(len, content)))
    assert (row["first_offset"], row["last_offset"]) == (1000 if batches else None, last)
    position = None if damage_at is None else sum(map(len, content[:damage_at]))
    assert str(row["detail"]).partition(":")[0] == (str(None) if position is None else f"byte {position}")


@pytest.mark.parametrize(
    ("name", "content", "offsets", "entries"),
    [
        ("00000000000000001000.index", SIDE_FILES["00000000000000001000.index"][0], (1004, 1009), 2),
        ("00000000000000001000.timeindex", SIDE_FILES["00000000000000001000.timeindex"][0], (1004, 1009), 2),
        # an aborted transaction that began first may end last
        (
            "00000000000000001000.txnindex",
            struct.pack(">hqqqq", 0, 77, 1001, 1009, 1003) + struct.pack(">hqqqq", 0, 78, 1000, 1005, 1009),
            (1000, 1009), 2,
        ),
        ("00000000000000001000.snapshot", SIDE_FILES["00000000000000001000.snapshot"][0], (None, None), 2),
        ("leader-epoch-checkpoint", SIDE_FILES["leader-epoch-checkpoint"][0], (0, 1005), 2),
        ("replication-offset-checkpoint", SIDE_FILES["replication-offset-checkpoint"][0], (None, None), 2),
        ("quorum-state", SIDE_FILES["quorum-state"][0], (None, None), 1),
    ],
)  # fmt: skip
def test_the_offsets_of_a_side_file_in_a_list_of_files(tmp_path, name, content, offsets, entries):
    (tmp_path / name).write_bytes(content)
    (row,) = inspect_rows(InspectOptions([str(tmp_path)]), batches=False)
    assert ((row["first_offset"], row["last_offset"]), row["entries"]) == (offsets, entries)
    assert (row["status"], row["detail"]) == ("ok", None)


@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_line_that_is_no_offset_is_damage_of_its_checkpoint(tmp_path, name):
    content = b"0\n3\norders 3 5\norders x 6\nusers 0 7\n"
    rows = rows_of(tmp_path, name, content)
    assert [row["row"] for row in rows if row["row"] != "damage"] == ["checkpoint"] * (len(rows) - 1)
    assert (rows[0]["topic"], rows[0]["partition"], rows[0]["offset"]) == ("orders", 3, 5)
    (damage,) = [row for row in rows if row["row"] == "damage"]
    assert (damage["file"], damage["position"]) == (name, content.index(b"orders x"))


@pytest.mark.parametrize(
    ("name", "content", "missing"),
    [
        (NAME, [GARBAGE, batch(TWO, 1004)], (1000, 1003)),
        (NAME, [batch(TWO, 1000), GARBAGE, batch(TWO, 1004)], (1002, 1003)),
        (NAME, [batch(TWO, 1000), GARBAGE, batch(TWO, 1002)], (None, None)),
        (NAME, [batch(TWO, 1000), batch(TWO, 1002)[:-3]], (1002, None)),
    ],
)
def test_which_offsets_damage_cost(tmp_path, name, content, missing):
    (damage,) = [row for row in rows_of(tmp_path, name, b"".join(content)) if row["row"] == "damage"]
    assert (damage["first_missing_offset"], damage["last_missing_offset"]) == missing


# -- texts of kafka-dump-log

PRINTED = (
    "baseOffset: {0} lastOffset: {1} count: 2 baseSequence: 0 lastSequence: 1 producerId: 77 producerEpoch: 3 "
    "partitionLeaderEpoch: 5 isTransactional: true isControl: false deleteHorizonMs: OptionalLong.empty "
    "position: {2} CreateTime: 1700000000000 size: 80 magic: 2 compresscodec: none crc: 123 isvalid: true\n"
)
RECORD = "| offset: {0} CreateTime: 1700000000000 keySize: -1 valueSize: 1 sequence: {1} headerKeys: []\n"


def test_a_printed_record_has_what_its_batch_says(tmp_path):
    """Records up to the batch's last offset are in it; one behind it stands alone (a text with lines cut out)."""
    text = "Starting offset: 1000\n" + PRINTED.format(1000, 1001, 0)
    text += "".join(RECORD.format(1000 + number, number) for number in range(3))
    batch_row, *records = rows_of(tmp_path, "dump.txt", text.encode(), records=True)
    assert (batch_row["row"], batch_row["segment"], batch_row["last_offset_delta"]) == ("batch", NAME, 1)
    of_batch = ("position", "producer_id", "producer_epoch", "leader_epoch", "is_transactional")
    assert [[row[name] for name in of_batch] for row in records] == [[0, 77, 3, 5, True]] * 2 + [[None] * 5]
    assert [row["value"] for row in records] == [{"text": None, "encoding": None, "size": 1, "truncated": False}] * 3
    assert [(row["offset"], row["sequence"], row["key"], row["segment"]) for row in records] == [
        (1000, 0, None, NAME), (1001, 1, None, NAME), (1002, 2, None, NAME),
    ]  # fmt: skip


@pytest.mark.parametrize("control_type", ["COMMIT", "ABORT"])
def test_a_printed_marker_is_a_row_of_its_own_kind(tmp_path, control_type):
    text = "Starting offset: 1000\n" + PRINTED.format(1000, 1000, 0).replace("isControl: false", "isControl: true")
    text += RECORD.format(1000, -1).rstrip() + f" endTxnMarker: {control_type} coordinatorEpoch: 12\n"
    batch_row, row = rows_of(tmp_path, "dump.txt", text.encode(), records=True)
    assert batch_row["is_control"] is True
    of_marker = ("row", "control_type", "coordinator_epoch", "offset", "producer_id", "producer_epoch", "sequence")
    assert [row[name] for name in of_marker] == ["marker", control_type, 12, 1000, 77, 3, None]


@pytest.mark.parametrize(
    ("times", "shown"),
    [
        # as 2.8 prints it, as 4.2 does, a producer known by its marker alone
        (" firstSequence: 7 lastSequence: 9 lastOffset: 9 offsetDelta: 2 timestamp: 1700000000000", 1_700_000_000_000),
        (
            " lastTimestamp: 1700000000005 firstSequence: 7 lastSequence: 9 lastOffset: 9 offsetDelta: 2 timestamp: 17",
            1_700_000_000_005,
        ),
        (" lastTimestamp: 1700000000005", 1_700_000_000_005),
        ("", None),
    ],
)
def test_when_a_producer_of_a_printed_snapshot_wrote_last(tmp_path, times, shown):
    text = (
        "Dumping /data/orders-3/00000000000000001000.snapshot\n"
        f"producerId: 900001 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: None{times}\n"
    )
    (row,) = rows_of(tmp_path, "dump.txt", text.encode())
    assert (row["row"], row["producer_id"], row["snapshot_offset"], row["timestamp"]) == (
        "snapshot", 900001, 1000, shown,
    )  # fmt: skip


def test_a_text_that_names_its_file_keeps_that_name(tmp_path):
    text = f"Dumping /data/orders-3/{NAME}\nStarting offset: 1005\n" + PRINTED.format(1005, 1006, 0)
    (row,) = rows_of(tmp_path, "dump.txt", text.encode())
    assert (row["topic"], row["partition"], row["segment"], row["base_offset"]) == ("orders", 3, NAME, 1005)


# -- what records of internal topics mean

STATE_TEXT = (
    b"producerId:5,producerEpoch:0,state=Ongoing,partitions=HashSet(orders-3),"
    b"txnLastUpdateTimestamp=7,txnTimeoutMs=60000"
)
"""As the tool of 2.8 prints it."""
STATE_JSON = (
    b'{"version":"1","data":{"producerId":5,"producerEpoch":0,"transactionTimeoutMs":60000,"transactionStatus":0,'
    b'"transactionPartitions":[],"transactionLastUpdateTimestampMs":7,"transactionStartTimestampMs":-1}}'
)
KEY_JSON = b'{"type":"0","data":{"transactionalId":"x"}}'
RECORD_ROW = {"row": "record", "topic": "__transaction_state", "offset": 9, "key": 1, "value": 2, "headers": []}


GROUP_ROW = {"row": "record", "topic": "__consumer_offsets", "offset": 9, "leader_epoch": 4, "key": 1, "value": 2}
COMMIT_KEY = struct.pack(">h", 1) + string("g") + string("orders") + struct.pack(">i", 3)
GROUP_KEY = struct.pack(">h", 2) + string("g")
MEMBERS = [
    string(member) + string(None) + string("client") + string("/h") + struct.pack(">iiii", 60000, 45000, 0, 0)
    for member in ("m-1", "m-2")
]
"""As version 3 has them: ids, host, time-outs, and an empty subscription and assignment."""
NO_BYTES = {"text": "", "encoding": "utf8", "size": 0, "truncated": False}


@pytest.mark.parametrize(
    ("key", "value", "meaning"),
    [
        (
            COMMIT_KEY,
            struct.pack(">hqi", 3, 1234, 6) + string("note") + struct.pack(">q", BASE_TIMESTAMP),
            {
                "row": "offset_commit", "group": "g", "committed_topic": "orders", "committed_partition": 3,
                "tombstone": False, "committed_offset": 1234, "committed_leader_epoch": 6, "metadata": "note",
                "commit_timestamp": BASE_TIMESTAMP,
            },
        ),
        (
            COMMIT_KEY,
            struct.pack(">hqi", 3, 0, -1) + string("") + struct.pack(">q", -1),
            {
                "row": "offset_commit", "group": "g", "committed_topic": "orders", "committed_partition": 3,
                "tombstone": False, "committed_offset": 0, "committed_leader_epoch": None, "metadata": "",
                "commit_timestamp": None,
            },
        ),
        (
            COMMIT_KEY, None,
            {
                "row": "offset_commit", "group": "g", "committed_topic": "orders", "committed_partition": 3,
                "tombstone": True,
            },
        ),
        (
            GROUP_KEY,
            struct.pack(">h", 3) + string("consumer") + struct.pack(">i", 17) + string("range") + string("m-1")
            + struct.pack(">qi", BASE_TIMESTAMP, 2) + b"".join(MEMBERS),
            {
                "row": "group_metadata", "group": "g", "tombstone": False, "generation": 17,
                "protocol_type": "consumer", "protocol": "range", "leader": "m-1", "members": ["m-1", "m-2"],
                "content": {
                    "protocolType": "consumer", "generation": 17, "protocol": "range", "leader": "m-1",
                    "currentStateTimestamp": BASE_TIMESTAMP,
                    "members": [
                        {
                            "memberId": member, "groupInstanceId": None, "clientId": "client", "clientHost": "/h",
                            "rebalanceTimeout": 60000, "sessionTimeout": 45000, "subscription": NO_BYTES, "assignment": NO_BYTES,
                        }
                        for member in ("m-1", "m-2")
                    ],
                },
            },
        ),
        (GROUP_KEY, None, {"row": "group_metadata", "group": "g", "tombstone": True}),
    ],
)  # fmt: skip
def test_what_a_record_of_a_consumer_group_means(key, value, meaning):
    assert content_row(GROUP_ROW, key, value) == {
        "topic": "__consumer_offsets", "offset": 9, "leader_epoch": 4, **meaning,
    }  # fmt: skip


IDS_ROW = {"row": "metadata", "broker_id": 3, "broker_epoch": 70, "next_producer_id": 9000}
FEATURE_ROW = {"row": "metadata", "name": "FeatureLevelRecord", "feature": "metadata.version", "feature_level": 25}
METADATA_ROW = {**RECORD_ROW, "topic": "__cluster_metadata"}


@pytest.mark.parametrize(
    ("value", "printed", "meaning"),
    [
        (
            b"\x01\x0f\x00" + struct.pack(">iqq", 3, 70, 9000) + b"\x00",
            b'{"type":"PRODUCER_IDS_RECORD","version":0,"data":{"brokerId":3,"brokerEpoch":70,"nextProducerId":9000}}',
            {
                **IDS_ROW, "api_key": 15, "name": "ProducerIdsRecord", "version": 0,
                "content": {"brokerId": 3, "brokerEpoch": 70, "nextProducerId": 9000},
            },
        ),
        (
            b"\x01\x0c\x00\x11metadata.version" + struct.pack(">h", 25) + b"\x00",
            b'{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":25}}',
            {**FEATURE_ROW, "api_key": 12, "version": 0, "content": {"name": "metadata.version", "featureLevel": 25}},
        ),
        (
            b"\x01\x02\x00\x02a" + bytes(15) + b"\x07\x00",
            b'{"type":"TOPIC_RECORD","version":0,"data":{"name":"a","topicId":"AAAAAAAAAAAAAAAAAAAABw"}}',
            {
                "row": "metadata", "api_key": 2, "name": "TopicRecord", "version": 0,
                "content": {"name": "a", "topicId": "AAAAAAAAAAAAAAAAAAAABw"},
            },
        ),
    ],
)  # fmt: skip
def test_what_a_metadata_record_means(value, printed, meaning):
    """Frame version, api key, record version, and what each of the two records holds that kaudit knows (KIP-631)."""
    expected = {"topic": "__cluster_metadata", "offset": 9, **meaning}
    assert content_row(METADATA_ROW, None, value) == expected
    assert dump_content_row(METADATA_ROW, None, printed) == expected


def test_a_value_that_the_tool_did_not_print_is_no_tombstone(tmp_path):
    """kafka-dump-log prints a key with --print-data-log; `valueSize: -1` alone is a value that is null."""
    text = "Dumping /data/__transaction_state-3/00000000000000001000.log\nStarting offset: 1000\n"
    text += PRINTED.format(1000, 1001, 0)
    line = "| offset: {0} CreateTime: 1700000000000 keySize: 1 valueSize: {1} sequence: 0 headerKeys: [] key: {2}{3}\n"
    key = "transaction_metadata::transactionalId=x"
    text += line.format(1000, 5, key, "") + line.format(1001, -1, key, "")
    _, unprinted, null = rows_of(tmp_path, "dump.txt", text.encode(), records=True)
    assert (null["row"], null["transactional_id"], null["tombstone"]) == ("txn_state", "x", True)
    assert unprinted.get("tombstone") is not True


@pytest.mark.parametrize(("magic", "least"), [(0, 14), (1, 14), (2, 49)])
def test_bytes_under_any_name_are_a_segment_from_the_least_length_of_a_batch_on(tmp_path, magic, least):
    """A batch of magic 2 has 49 bytes behind its length at least, a message of magic 0 or 1 14 (LegacyRecord)."""
    for length in (least, least - 1, 0, -1):
        (tmp_path / f"part{length}").write_bytes(struct.pack(">qiiB", 1000, length, 5, magic) + bytes(range(1, 200)))
    kinds = {row["file"]: row["kind"] for row in inspect_rows(InspectOptions([str(tmp_path)]), batches=False)}
    assert {name: kind == "segment" for name, kind in kinds.items()} == {
        f"part{least}": True, f"part{least - 1}": False, "part0": False, "part-1": False,
    }  # fmt: skip


def test_a_row_of_a_topic_of_users_stays_as_it_is():
    row = {**RECORD_ROW, "topic": "orders"}
    assert content_row(row, b"k", b"v") is row
    assert dump_content_row(row, b"k", b"v") is row


def test_a_record_that_is_of_no_known_kind_keeps_its_row():
    row = {**RECORD_ROW, "topic": "__consumer_offsets"}
    unknown = "record type 9 of __consumer_offsets is not known (at byte 0)"
    assert content_row(row, struct.pack(">h", 9), struct.pack(">h", 0)) == row | {"error": unknown}
    assert content_row(row, None, None)["error"]
    unprinted = {**RECORD_ROW, "topic": "__cluster_metadata"}
    assert dump_content_row(unprinted, None, None) == unprinted


def test_a_metadata_record_that_is_not_known_keeps_its_type():
    row = content_row(METADATA_ROW, None, b"\x01\x02\x07rest")
    assert (row["row"], row["name"], row["version"]) == ("metadata", "TopicRecord", 7)
    assert row["error"] == "version 7 of TopicRecord, known is 0 (at byte 0)"
    assert content_row(METADATA_ROW, None, b"\x01\x02\x00rest")["error"]


def test_secrets_of_the_metadata_are_hidden():
    """SCRAM credentials, and settings whose value is a password or holds one."""
    scram = b"\x01\x0b\x00\x02u\x02\x03ab\x03cd\x03ef" + struct.pack(">i", 4096) + b"\x00"
    assert content_row(METADATA_ROW, None, scram)["content"] == {
        "name": "u", "mechanism": 2, "salt": "(hidden)", "storedKey": "(hidden)", "serverKey": "(hidden)", "iterations": 4096,
    }  # fmt: skip
    for name, shown in (
        ("listener.ssl.keystore.password", "(hidden)"),
        ("sasl.jaas.config", "(hidden)"),
        ("retention.ms", "5"),
    ):
        setting = b"\x01\x04\x00\x04\x021" + bytes([len(name) + 1]) + name.encode() + b"\x025\x00"
        content = content_row(METADATA_ROW, None, setting)["content"]
        assert content == {"resourceType": 4, "resourceName": "1", "name": name, "value": shown}


@pytest.mark.parametrize(
    ("payload", "key", "version"),
    [
        (STATE_JSON, KEY_JSON, 1),
        (None, KEY_JSON, None),
        (STATE_TEXT, b"transaction_metadata::transactionalId=x", None),
        (None, b"transaction_metadata::transactionalId=x", None),
    ],
)
def test_the_version_of_a_printed_state_is_known_where_the_tool_prints_it(payload, key, version):
    row = dump_content_row(RECORD_ROW, key, payload)
    assert (row["row"], row["transactional_id"], row["tombstone"]) == ("txn_state", "x", payload is None)
    assert row.get("version") == version
    assert not {"key", "value", "headers"} & set(row)
    of_state = (row.get("producer_id"), row.get("last_update_timestamp"), row.get("transaction_timeout_ms"))
    assert of_state == ((None,) * 3 if payload is None else (5, 7, 60000))
