"""Rows of `kaudit inspect` as the table shows them, to the letter: each cell of each kind of row, and what a width leaves out."""

import re

import pytest

from kaudit.report.console import Console
from kaudit.report.text import inspect_table
from kaudit.report.text.inspect_table import table

T = 1_700_000_000_000  # 2023-11-14T22:13:20Z
SEGMENT = {"topic": "orders", "partition": 0, "replica": "b1", "segment": "00.log"}


def batch(offset, **changes):
    return {
        "row": "batch",
        **SEGMENT,
        "position": offset * 70,
        "size": 70,
        "base_offset": offset,
        "last_offset": offset + 2,
        "record_count": 3,
        "leader_epoch": 4,
        "magic": 2,
        "crc": 0xC0FFEE,
        "crc_valid": True,
        "codec": "none",
        "max_timestamp": T + offset * 1000,
        "is_transactional": False,
        "is_control": False,
        "control_type": None,
        "producer_id": 7,
        "producer_epoch": 0,
        "base_sequence": offset,
        "last_sequence": offset + 2,
        **changes,
    }


def record(offset, key, value, headers):
    return {
        "row": "record",
        **SEGMENT,
        "offset": offset,
        "timestamp": T + 3000,
        "producer_id": 7,
        "producer_epoch": 0,
        "sequence": offset,
        "key": key,
        "value": value,
        "headers": headers,
    }


def text(shown, size=None, *, encoding="utf-8", truncated=False):
    return {"text": shown, "size": size, "encoding": encoding, "truncated": truncated}


def damage(position, size, kind, first, last, detail, broker):
    return {
        "row": "damage",
        **SEGMENT,
        "position": position,
        "size": size,
        "kind": kind,
        "first_missing_offset": first,
        "last_missing_offset": last,
        "detail": detail,
        "broker": broker,
    }


NO_SEQUENCE = {"base_sequence": None, "last_sequence": None}
ROWS = [
    batch(0),
    batch(3, is_transactional=True, crc_valid=False),
    record(3, text("k1"), None, []),
    record(4, None, text(""), [{"key": "h", "value": text("v")}, {"key": "i", "value": None}]),
    record(5, text("ff00", 2, encoding="hex"), text("abc", 900, truncated=True), None),
    damage(420, 33, "garbage", 6, 8, "no batch", "truncates here"),
    damage(490, 3, "torn", 9, None, "cut", None),
    batch(9, is_control=True, control_type="COMMIT", record_count=1, last_offset=9, **NO_SEQUENCE),
    {
        "row": "marker",
        **SEGMENT,
        "offset": 9,
        "timestamp": T,
        "producer_id": 7,
        "producer_epoch": 0,
        "control_type": "COMMIT",
        "coordinator_epoch": 3,
    },
    batch(10, is_control=True, record_count=0, max_timestamp=None, producer_id=None, **NO_SEQUENCE),
    batch(13, segment="13.log"),
    {"row": "checkpoint", "topic": "orders", "partition": 0, "file": "b1/recovery-point", "offset": 12},
    {"row": "checkpoint", "topic": "pay", "partition": 3, "file": "b1/recovery-point", "offset": 5},
]


def shown(rows, width=None):
    return "".join(table(rows, Console(width=width))).splitlines()


WHOLE = """\
orders-0 b1 00.log
byte  size  offset  records  time (UTC)               producer  epoch  sequence  leader epoch  kind            codec  magic  crc
0     70    0..2    3        2023-11-14 22:13:20.000  7         0      0..2      4             -               none   2      00c0ffee
210   70    3..5    3        2023-11-14 22:13:23.000  7         0      3..5      4             txn             none   2      00c0ffee BAD
    offset  time (UTC)               producer  epoch  sequence  key     value             headers
    3       2023-11-14 22:13:23.000  7         0      3         k1      null              -
    4       2023-11-14 22:13:23.000  7         0      4         null    ''                h=v, i=null
    5       2023-11-14 22:13:23.000  7         0      5         0xff00  abc… (900 bytes)  -
byte  size  damage   offsets lost  detail    broker's reaction
420   33    garbage  6..8          no batch  truncates here
490   3     torn     9..           cut       -
630   70    9       1        2023-11-14 22:13:29.000  7         0      -         4             COMMIT marker   none   2      00c0ffee
    offset  time (UTC)               producer  epoch  marker  coordinator epoch
    9       2023-11-14 22:13:20.000  7         0      COMMIT  3
700   70    10..12  0        -                        -         0      -         4             emptied marker  none   2      00c0ffee

orders-0 b1 13.log
byte  size  offset  records  time (UTC)               producer  epoch  sequence  leader epoch  kind  codec  magic  crc
910   70    13..15  3        2023-11-14 22:13:33.000  7         0      13..15    4             -     none   2      00c0ffee

b1/recovery-point
partition  offset
orders-0   12
pay-3      5
"""


def test_every_cell():
    assert shown(ROWS) == WHOLE.splitlines()


def test_what_all_rows_share_stands_above_a_narrow_table_and_a_bad_crc_is_never_left_out():
    assert shown(ROWS, 80)[:5] == [
        "orders-0 b1 00.log",
        "in every row: magic 2, codec none, leader epoch 4, epoch 0; no room at 80",
        "columns for: size, records",
        "byte  offset  date        time (UTC)    producer  sequence  kind            crc",
        "0     0..2    2023-11-14  22:13:20.000  7         0..2      -               00c0ffee",
    ]
    assert shown(ROWS, 60)[-9:-5] == [
        "in every row: date 2023-11-14, magic 2, codec none, leader",
        "epoch 4, epoch 0, producer 7; no room at 60 columns for: crc",
        "byte  size  offset  records  time (UTC)    sequence",
        "910   70    13..15  3        22:13:33.000  13..15",
    ]


def test_a_table_that_just_fits_is_whole():
    whole = shown([batch(0)])
    width = max(map(len, whole))
    assert shown([batch(0)], width) == whole
    assert shown([batch(0)], width - 1)[1].startswith("in every row: ")


def test_records_alone_are_not_indented_and_keep_room():
    lines = shown([record(3, text("k"), text("v"), [])])
    assert lines[1].startswith("offset  time (UTC)")
    width = max(map(len, lines))
    assert shown([record(3, text("k"), text("v"), [])], width) == lines
    # under a batch they have four columns less
    under = shown([batch(0), record(3, text("k"), text("v"), [])], 200)
    assert under[3].startswith("    offset")


def test_files_of_a_directory():
    def file(name, **more):
        return {"row": "file", "file": name, "size": 5, "status": "ok", "entries": None, "detail": None, **more}

    rows = [
        file("b1/orders-0/00.log", first_offset=0, last_offset=8),
        file("b1/orders-0/00.index", entries=2, status="damaged"),
        file("b1/meta.properties"),
    ]
    assert shown(rows) == [
        "b1/orders-0",
        "file      size  status   offset  entries  detail",
        "00.log    5     ok       0..8    -        -",
        "00.index  5     damaged  -       2        -",
        "",
        "b1",
        "file             size  status  offset  entries  detail",
        "meta.properties  5     ok      -       -        -",
    ]


def test_what_is_wrong_stands_out():
    """ANSI colours: red for damage, bold for what was asked for."""
    rows = [batch(0), batch(3, crc_valid=False), batch(6, here=True), damage(9, 1, "torn", None, None, "cut", None)]
    painted = "".join(table(rows, Console(color=True))).splitlines()
    colours = [re.match(r"\x1b\[[0-9;]+m", line) for line in painted]
    assert [colour and colour[0] for colour in colours] == [
        "\x1b[1m",  # the title
        "\x1b[2m",
        None,
        "\x1b[1;31m",
        "\x1b[1m",
        "\x1b[2m",
        "\x1b[1;31m",
    ]


def test_rows_of_internal_topics():
    def row(kind, **fields):
        return {"row": kind, **SEGMENT, "offset": 4, **fields}

    state = {"transactional_id": "x", "producer_id": 7, "producer_epoch": 1, "transaction_timeout_ms": 60000}
    places = [{"topic": "a", "partitions": [0, 3]}, {"topic": "b", "partitions": [1]}]
    lines = shown([
        row("txn_state", status="Ongoing", partitions=places, last_update_timestamp=T, start_timestamp=None, **state),
        row("txn_state", status=None, tombstone=True, transactional_id="y"),
    ])  # fmt: skip
    assert lines[2].split() == [
        "4",
        "x",
        "Ongoing",
        "7",
        "1",
        "2023-11-14",
        "22:13:20.000",
        "-",
        "60000",
        "a-0,3",
        "b-1",
    ]
    assert lines[3].split()[:3] == ["4", "y", "tombstone"]
    assert lines[3].endswith("-")
    commits = shown([
        row("offset_commit", group="g", committed_topic="a", committed_partition=2, committed_offset=0, metadata=""),
        row("offset_commit", group="g", committed_topic="a", committed_partition=2, tombstone=True),
        row("metadata", timestamp=T, api_key=12, version=0, name="FeatureLevelRecord", feature="f", feature_level=3),
        row("metadata", timestamp=T, api_key=15, version=0, name="ProducerIdsRecord", next_producer_id=2000, broker_id=1),
        row("metadata", timestamp=T, api_key=99, version=0, name="?", error="unknown record"),
        row("metadata", timestamp=T, api_key=2, version=0, name="TopicRecord"),
    ])  # fmt: skip
    assert [line.split()[:4] for line in commits[2:4]] == [["4", "g", "a-2", "0"], ["4", "g", "a-2", "tombstone"]]
    assert [line.rsplit("  ", 1)[1] for line in commits[5:]] == [
        "f 3",
        "broker 1: ids up to 2000, exclusive",
        "unknown record",
        "-",
    ]


@pytest.mark.parametrize(("name", "heading"), [
    ("record_count", "records"),  # the table of columns has a heading
    ("leader_epoch", "leader epoch"),  # it has none
    ("no_such_column", "no such column"),
])  # fmt: skip
def test_a_columns_heading_is_its_own_or_its_name(name, heading):
    assert inspect_table._heading(name) == heading
