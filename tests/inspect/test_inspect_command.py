"""`kaudit inspect` on the command line: what it shows of files, directories, damage, and its exit codes."""

import json
import os
import re
import struct
from pathlib import Path

import pytest

from kaudit.cli.inspection import parse_offsets
from kaudit.errors import UsageError
from kaudit.source.inspect_columns import INSPECT_TABLES
from tests.cli.conftest import kaudit, plain_environment  # noqa: F401 - fixtures
from tests.logs import Log, data, marker

NAME = "00000000000000000000.log"


@pytest.fixture
def log(tmp_path):
    log = Log()
    for sequence in range(0, 30, 3):
        log.append(data(7, 0, sequence, 3, payload=b"p%02d" % sequence))
    log.append(data(8, 2, 0, transactional=True, leader_epoch=4))
    log.append(marker(8, 2, commit=False, coordinator_epoch=6, leader_epoch=4))
    return log, log.write(tmp_path / "orders-3") / NAME


def lines(outcome):
    assert outcome.code == 0, outcome.err
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_a_batch_row_has_exactly_the_contracts_fields(kaudit, log):  # noqa: F811
    rows = lines(kaudit("inspect", log[1], "--output-format", "jsonl"))
    assert len(rows) == 12
    for row in rows:
        assert set(row) == {"row", *INSPECT_TABLES["batch"]}
    assert rows[1] == {
        "row": "batch",
        "topic": "orders",
        "partition": 3,
        "replica": log[1].parent.parent.name,
        "segment": NAME,
        "position": rows[0]["size"],
        "size": rows[0]["size"],
        "base_offset": 3,
        "last_offset": 5,
        "last_offset_delta": 2,
        "record_count": 3,
        "leader_epoch": 0,
        "magic": 2,
        "crc": struct.unpack(">I", log[0].batches[1].encode()[17:21])[0],
        "crc_valid": True,
        "codec": "none",
        "timestamp_type": "CreateTime",
        "base_timestamp": log[0].batches[1].timestamp,
        "max_timestamp": log[0].batches[1].timestamp,
        "is_transactional": False,
        "is_control": False,
        "control_type": None,
        "coordinator_epoch": None,
        "producer_id": 7,
        "producer_epoch": 0,
        "base_sequence": 3,
        "last_sequence": 5,
        "delete_horizon_ms": None,
    }
    assert (rows[-1]["control_type"], rows[-1]["coordinator_epoch"], rows[-1]["base_sequence"]) == ("ABORT", 6, None)


def test_only_minus_one_is_null(kaudit, tmp_path):  # noqa: F811
    log = Log()
    log.append(data(-2, -2, 0, 1), keep_time=False)
    log.append(data(2**63 - 1, 32767, 2**31 - 1, 2))
    log.append(data(-1, -1, -1, 1))
    path = log.write(tmp_path / "a-0") / NAME
    first, second, third = lines(kaudit("inspect", path, "--output-format", "jsonl"))
    assert (first["producer_id"], first["producer_epoch"]) == (-2, -2)
    assert (second["producer_id"], second["producer_epoch"], second["last_sequence"]) == (2**63 - 1, 32767, 0)
    assert (third["producer_id"], third["producer_epoch"]) == (None, None)


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        (("--producer-id", 8), [30, 31]),
        (("--producer-epoch", 2), [30, 31]),
        (("--leader-epoch", 4), [30, 31]),
        (("--offset", "4..7"), [3, 6]),
        (("--offset", "31"), [31]),
        (("--offset", "29.."), [27, 30, 31]),
        (("--since", 1_700_000_000_011), [30, 31]),
        (("--until", 1_700_000_000_002), [0, 3]),
        (("--around", 31), [15, 18, 21, 24, 27, 30, 31][-6:]),
        (("--around", 4), [0, 3, 6, 9, 12, 15, 18]),
        (("--around", 1000), [18, 21, 24, 27, 30, 31][-5:]),
    ],
)
def test_filters(kaudit, log, options, offsets):  # noqa: F811
    rows = lines(kaudit("inspect", log[1], "--output-format", "jsonl", *options))
    assert [row["base_offset"] for row in rows][-len(offsets) :] == offsets


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        (None, (None, None)),
        ("0", (0, 0)),
        ("4..7", (4, 7)),
        ("4..4", (4, 4)),
        ("4..", (4, None)),
        ("..7", (None, 7)),
        (f"0..{2**63 - 1}", (0, 2**63 - 1)),
    ],
)
def test_offsets_are_typed_as_one_or_two(text, offsets):
    assert parse_offsets(text) == offsets


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((text, "write an offset, or two with .. between") for text in ("", "..", "a", "4..a", "a..4", "4...7", "-1")),
        ("7..4", "nothing lies between"),
        *((text, "larger than any there can be") for text in (f"{2**63}", f"..{2**63}", f"{2**63}..")),
    ],
)
def test_offsets_that_are_none(text, says):
    with pytest.raises(UsageError, match=f"^--offset {re.escape(text.strip('.'))}.*{re.escape(says)}"):
        parse_offsets(text)


def test_records_follow_their_batch_with_whole_keys_and_values(kaudit, log):  # noqa: F811
    rows = lines(kaudit("inspect", log[1], "--records", "--offset", "4", "--output-format", "jsonl"))
    assert [row["row"] for row in rows] == ["batch", "record"]
    assert rows[1]["value"] == {"text": "p03", "encoding": "utf8", "size": 3, "truncated": False}
    assert (rows[1]["key"], rows[1]["sequence"], rows[1]["offset"]) == (None, 4, 4)


def test_bytes_as_hex_and_cut(kaudit, log):  # noqa: F811
    rows = lines(
        kaudit("inspect", log[1], "--records", "--offset", "4", "--hex", "--max-bytes", 1, "--output-format", "jsonl")
    )
    assert rows[1]["value"] == {"text": b"p".hex(), "encoding": "hex", "size": 3, "truncated": True}


def test_a_marker_is_a_row_of_its_own(kaudit, log):  # noqa: F811
    rows = lines(kaudit("inspect", log[1], "--records", "--offset", "31", "--output-format", "jsonl"))
    assert (rows[1]["row"], rows[1]["control_type"], rows[1]["coordinator_epoch"]) == ("marker", "ABORT", 6)


def test_values_cannot_drive_a_terminal(kaudit, tmp_path):  # noqa: F811
    log = Log()
    log.append(data(1, 0, 0, payload=b"\x1b]0;owned\x07"))
    out = kaudit("inspect", log.write(tmp_path / "a-0") / NAME, "--records").out
    assert "\x1b" not in out
    assert "\\x1b]0;owned" in out


def test_damage_is_a_row_and_reading_goes_on(kaudit, log):  # noqa: F811
    path = log[1]
    whole = bytearray(path.read_bytes())
    size = len(log[0].batches[0].encode())
    whole[3 * size + 70] ^= 1
    path.write_bytes(bytes(whole[: 6 * size]) + b"\xaa" * 100 + bytes(whole[6 * size :]) + b"\0" * 512)
    rows = lines(kaudit("inspect", path, "--output-format", "jsonl"))
    assert [row["row"] for row in rows] == ["batch"] * 6 + ["damage"] + ["batch"] * 6 + ["damage"]
    assert [row["position"] for row in rows if row.get("crc_valid") is False] == [3 * size]
    garbage, zeros = (row for row in rows if row["row"] == "damage")
    assert (garbage["position"], garbage["end"], garbage["kind"]) == (6 * size, 6 * size + 100, "unparsable")
    assert (zeros["kind"], zeros["size"]) == ("zeros", 512)


def test_the_fields_of_one_header_byte_by_byte(kaudit, log):  # noqa: F811
    size = len(log[0].batches[0].encode())
    rows = lines(kaudit("inspect", log[1], "--at", size + 45, "--output-format", "jsonl"))
    header = log[0].batches[1].encode()
    assert [row["position"] - size for row in rows] == [0, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57, 61]
    for row in rows:
        at = row["position"] - size
        assert bytes.fromhex(row["hex"]) == header[at : at + row["length"]][:32]
    assert [row["field"] for row in rows if row["here"]] == ["producer_id"]
    by_name = {row["field"]: row for row in rows}
    assert by_name["crc"]["meaning"].endswith("matches")
    assert by_name["base_offset"]["meaning"] == "offsets 3 to 5"
    assert by_name["base_sequence"]["meaning"] == "sequences 3 to 5"
    assert by_name["batch_length"]["meaning"] == f"ends at byte {2 * size}"


def test_a_header_in_damage_is_shown_as_what_it_may_have_been(kaudit, log):  # noqa: F811
    size = len(log[0].batches[0].encode())
    whole = bytearray(log[1].read_bytes())
    whole[size + 16] = 10
    log[1].write_bytes(bytes(whole))
    rows = {row["field"]: row for row in lines(kaudit("inspect", log[1], "--at", size, "--output-format", "jsonl"))}
    assert (rows["magic"]["value"], rows["magic"]["meaning"]) == (10, "unknown message format")


def test_a_directory_is_one_row_a_file(kaudit, log):  # noqa: F811
    directory = log[1].parent
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (directory / "00000000000000000000.index").write_bytes(bytes(80))
    (directory / "00000000000000000032.snapshot").write_bytes(b"\0\1")
    (directory / "notes.txt").write_text("hello")
    document = json.loads(kaudit("inspect", directory, "--output-format", "json").out)
    assert document["schema"] == "kaudit.inspect/1"
    table = {
        row["file"]: (row["kind"], row["status"], row["first_offset"], row["last_offset"], row["entries"])
        for row in document["rows"]
    }
    assert table == {
        NAME: ("segment", "ok", 0, 31, 12),
        "leader-epoch-checkpoint": ("leader_epoch", "ok", 0, 0, 1),
        "00000000000000000000.index": ("index", "ok", None, None, 0),
        "00000000000000000032.snapshot": ("snapshot", "damaged", None, None, 0),
        "notes.txt": ("unknown", "unknown", None, None, None),
    }


def test_a_directorys_batches_come_in_order(kaudit, tmp_path):  # noqa: F811
    log = Log()
    for sequence in range(6):
        log.append(data(1, 0, sequence))
    log.write(tmp_path / "data" / "b-0", segment_starts=(2, 4))
    log.write(tmp_path / "data" / "a-10", segment_starts=(3,))
    rows = lines(kaudit("inspect", tmp_path / "data", "--output-format", "jsonl"))
    assert [(row["topic"], row["base_offset"]) for row in rows] == [("a", n) for n in range(6)] + [
        ("b", n) for n in range(6)
    ]
    near = lines(kaudit("inspect", tmp_path / "data", "--around", 3, "--output-format", "jsonl"))
    assert [row["base_offset"] for row in near if row["topic"] == "b"] == [0, 1, 2, 3, 4, 5]


def test_batches_in_a_file_of_any_name_can_be_named(kaudit, log, tmp_path):  # noqa: F811
    copy = tmp_path / "dump.bin"
    copy.write_bytes(log[1].read_bytes())
    rows = lines(kaudit("inspect", copy, "--topic", "orders", "--partition", 5, "--output-format", "jsonl"))
    assert {(row["topic"], row["partition"], row["segment"]) for row in rows} == {("orders", 5, "dump.bin")}


def test_exit_codes(kaudit, log, tmp_path):  # noqa: F811
    assert kaudit("inspect", tmp_path / "none").code == 2
    assert kaudit("inspect", log[1], "--at", 10**9).code == 2
    assert kaudit("inspect", log[1].parent, "--at", 0).code == 2
    assert kaudit("inspect", log[1], "--hex", "--utf8").code == 2
    assert kaudit("inspect", log[1], "--offset", "9..3").code == 2
    assert kaudit("inspect", log[1], "--output-format", "jsonlines").code == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    outcome = kaudit("inspect", empty, "--output-format", "json")
    assert (outcome.code, json.loads(outcome.out)["rows"]) == (3, [])
    odd = tmp_path / "odd.txt"
    odd.write_text("nothing of Kafka's")
    assert kaudit("inspect", odd).code == 3


def test_an_unreadable_file_is_exit_4(kaudit, log, monkeypatch):  # noqa: F811
    def refuse(*_arguments):
        raise PermissionError(13, "Permission denied", str(log[1]))

    monkeypatch.setattr(os, "open", refuse)
    outcome = kaudit("inspect", log[1], "--output-format", "json")
    assert (outcome.code, json.loads(outcome.out)["rows"]) == (4, [])
    assert "Permission denied" in outcome.err
    (row,) = json.loads(kaudit("inspect", log[1].parent, "--output-format", "json").out)["rows"]
    assert (row["status"], row["detail"]) == ("unreadable", "Permission denied")


def test_a_gigabyte_in_a_few_kilobytes_is_not_unpacked(kaudit, tmp_path):  # noqa: F811
    import gzip

    import crc32c

    bomb = gzip.compress(bytes(300 << 20), 9)
    whole = bytearray(data(1, 0, 0).encode()[:61]) + bomb
    whole[8:12] = struct.pack(">i", len(whole) - 12)
    whole[21:23] = struct.pack(">h", 1)
    whole[17:21] = struct.pack(">I", crc32c.crc32c(bytes(whole[21:])))
    directory = tmp_path / "a-0"
    directory.mkdir()
    (directory / NAME).write_bytes(whole)
    rows = lines(kaudit("inspect", directory / NAME, "--records", "--output-format", "jsonl"))
    assert [(row["row"], row.get("kind")) for row in rows] == [("batch", None), ("damage", "limit-exceeded")]


def test_internal_topics_are_shown_by_what_their_records_mean(kaudit, evidence):  # noqa: F811
    logs = evidence.capture("txn-mix-2.8.2") / "logdirs" / "b0"
    rows = lines(kaudit("inspect", logs, "--topic", "__transaction_state", "--records", "--output-format", "jsonl"))
    states = [row for row in rows if row["row"] == "txn_state"]
    assert {row["transactional_id"] for row in states} >= {"t-commit", "t-dead", "t-timeout", "t-zombie"}
    dead = [row["status"] for row in states if row["transactional_id"] == "t-dead"]
    assert dead[-1] == "Ongoing"
    offsets = lines(kaudit("inspect", logs, "--topic", "__consumer_offsets", "--records", "--output-format", "jsonl"))
    assert {row["committed_topic"] for row in offsets if row["row"] == "offset_commit"} == {"in"}


INTERNAL = Path(__file__).parents[1] / "data" / "internal-topics" / "4.4.0"


def test_states_of_share_groups_and_remote_segments_are_named(kaudit):  # noqa: F811
    shares = kaudit("inspect", INTERNAL / "__share_group_state-0", "--records").out
    assert "groupId=workers topicId=sshfGUdmTD2NCO3AGv7_Ww partition=0" in shares
    assert "stateBatches=[0..2 ACKNOWLEDGED x1, 3..3 AVAILABLE x1, 4..4 ACKNOWLEDGED x1, 5..5 ARCHIVED x1," in shares
    segments = kaudit("inspect", INTERNAL / "__remote_log_metadata-0", "--records").out
    assert "customMetadata=bucket/1024 remoteLogSegmentState=COPY_SEGMENT_FINISHED" in segments
    rows = lines(kaudit("inspect", INTERNAL / "__share_group_state-0", "--records", "--output-format", "jsonl"))
    records = [row for row in rows if row["row"] == "internal_record"]
    assert [row["name"] for row in records] == ["ShareSnapshot"] + ["ShareUpdate"] * 5
    assert {row["group"] for row in records} == {"workers"}


@pytest.mark.parametrize("topic", ["__share_group_state-0", "__consumer_offsets-0", "__cluster_metadata-0"])
def test_printed_records_of_newer_topics_are_inspected_like_their_files(kaudit, topic):  # noqa: F811
    """But for members of classic groups, whose protocol the tool nests otherwise."""
    own, told = (
        [
            row
            for row in lines(kaudit("inspect", path, "--records", "--output-format", "jsonl"))
            if row["row"] != "batch"
        ]
        for path in (INTERNAL / topic / NAME, INTERNAL / f"{topic}.txt")
    )
    kinds = ("internal_record", "offset_commit", "metadata")
    names = ("row", "offset", "name", "version", "group", "identity", "content", "tombstone", "committed_offset")
    meant = [[{name: row.get(name) for name in names} for row in rows if row["row"] in kinds] for rows in (own, told)]
    assert len(meant[0]) > 5
    assert without_zero_ids(meant[1]) == without_zero_ids(meant[0])


def without_zero_ids(rows):
    return json.loads(json.dumps(rows).replace('"AAAAAAAAAAAAAAAAAAAAAA"', "null"))


def test_text_of_the_tool_is_inspected_like_its_files(kaudit, evidence):  # noqa: F811
    for version in ("1.1.1", "4.2.0"):
        dumps = evidence.oracle(version, "dumps")
        for name, kind in (("snapshots.txt", "snapshot"), ("txnindex.txt", "txnindex"), ("index-plain.txt", "index")):
            (path,) = dumps.rglob(name)
            rows = lines(kaudit("inspect", path, "--output-format", "jsonl"))
            assert kind in {row["row"] for row in rows}


def test_a_checkpoint_is_one_table(kaudit, tmp_path):  # noqa: F811
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n2\norders 0 11\npay-ments 12 7\n")
    shown = kaudit("inspect", tmp_path / "recovery-point-offset-checkpoint")
    assert [line.split() for line in shown.out.splitlines()] == [
        ["recovery-point-offset-checkpoint"],
        ["partition", "offset"],
        ["orders-0", "11"],
        ["pay-ments-12", "7"],
    ]


def test_a_damage_says_which_offsets_it_cost(kaudit, log):  # noqa: F811
    size = len(log[0].batches[0].encode())
    whole = log[1].read_bytes()
    log[1].write_bytes(whole[: 3 * size] + b"\xaa" * size + whole[4 * size :])
    shown = kaudit("inspect", log[1])
    (line,) = [line for line in shown.out.splitlines() if "unparsable" in line]
    assert line.split()[:4] == [str(3 * size), str(size), "unparsable", "9..11"]


def test_control_and_metadata_records_are_readable(kaudit, evidence):  # noqa: F811
    """The tool's own text of this log (cluster-metadata.txt) has these feature levels and this control record."""
    root = evidence.oracle("3.9.1", "logdir") / "main" / "__cluster_metadata-0"
    for path in (root / NAME, evidence.oracle("3.9.1", "dumps") / "cluster-metadata.txt"):
        out = kaudit("inspect", path, "--records").out.splitlines()
        assert any(line.split()[-3:] == ["FeatureLevelRecord", "metadata.version", "21"] for line in out)
        assert any("LEADER_CHANGE" in line and line.split()[0] == "0" for line in out)
        assert not any(line.rstrip().endswith("marker  coordinator epoch") for line in out)
