"""Batches from the text of kafka-dump-log: what each field of a line means, and that many lines at once are what each says."""

import pytest

from kaudit.formats.dump_text import columns
from kaudit.formats.log.batch_header import HEADER_SIZE
from kaudit.model.batch_fields import COMMIT_MARKER, NO_CONTROL_TYPE
from kaudit.model.damage import DamageKind
from kaudit.model.result import CoverageGap
from kaudit.reading.dump_text import dump_text_batches
from kaudit.source.bytes import LocalFile
from kaudit.source.layout import TextRange
from kaudit.source.text import SegmentText

COUNT = 40
"""More lines than are needed for columns to be made of them."""
LINE = {
    "baseOffset": 0,
    "lastOffset": 1,
    "count": 2,
    "baseSequence": 0,
    "lastSequence": 1,
    "producerId": 7,
    "producerEpoch": 3,
    "partitionLeaderEpoch": 5,
    "isTransactional": "false",
    "isControl": "false",
    "deleteHorizonMs": "OptionalLong.empty",
    "position": 0,
    "CreateTime": 1_700_000_000_000,
    "size": 80,
    "magic": 2,
    "compresscodec": "none",
    "crc": 123,
    "isvalid": "true",
}
KINDS: dict[str, dict[str, object]] = {
    "data": {},
    "transactional": {"isTransactional": "true"},
    "control": {"isTransactional": "true", "isControl": "true", "baseSequence": -1, "lastSequence": -1},
    "invalid": {"isvalid": "false"},
    "compressed": {"compresscodec": "zstd"},
    "unknown codec": {"compresscodec": "brotli"},
    "horizon": {"deleteHorizonMs": "OptionalLong[99]"},
    "no producer": {"producerId": -1, "producerEpoch": -1, "baseSequence": -1, "lastSequence": -1},
    "no time": {"CreateTime": -1},
}


FIELDS = (
    "position", "size", "base_offset", "last_offset_delta", "leader_epoch", "magic", "crc", "attributes",
    "base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "record_count", "control_type",
    "coordinator_epoch",
)  # fmt: skip


def line(number, *, without=(), gap=0, **changes):
    moving = {
        "baseOffset": 2 * number, "lastOffset": 2 * number + 1, "baseSequence": 2 * number, "lastSequence": 2 * number + 1,
        "position": number * (80 + gap),
    }  # fmt: skip
    fields = {**LINE, **moving, **changes}
    return " ".join(f"{name}: {value}" for name, value in fields.items() if name not in without) + "\n"


def read(path, text, start=0):
    path.write_text("Dumping /data/orders-0/00000000000000000000.log\nStarting offset: 0\n" + text)
    source = LocalFile(path)
    try:
        parts = list(dump_text_batches(SegmentText(source, TextRange(0, source.size())), start))
    finally:
        source.close()
    rows = [
        [int(batches[name][index]) for name in FIELDS] for batches, _, _, _ in parts for index in range(len(batches))
    ]
    damages = [(d.kind, d.position, d.end, d.base_offset) for _, found, _, _ in parts for d in found]
    return rows, damages, frozenset().union(*(gaps for _, _, gaps, _ in parts))


TEXTS = {
    **{name: "".join(line(number, **kind) for number in range(COUNT)) for name, kind in KINDS.items()},
    "one invalid": "".join(line(number, isvalid=str(number != 20).lower()) for number in range(COUNT)),
    "some control": "".join(line(number, **(KINDS["control"] if number % 5 == 4 else {})) for number in range(COUNT)),
    "bytes between": "".join(line(number, gap=7 * (number > 20)) for number in range(COUNT)),
    "without counts": "".join(line(number, without=("count",)) for number in range(COUNT)),
    "without control": "".join(line(number, without=("isControl",)) for number in range(COUNT)),
    "without base offsets": "".join(line(number, without=("baseOffset",)) for number in range(COUNT)),
    "columns, then others": "".join(line(number) for number in range(COUNT))
    + line(COUNT, isvalid="false")
    + line(COUNT + 1),
}


@pytest.mark.parametrize("name", TEXTS)
def test_many_lines_at_once_are_what_each_of_them_says(tmp_path, monkeypatch, name):
    together = read(tmp_path / "dump.txt", TEXTS[name])
    monkeypatch.setattr(columns, "_MIN_LINES", 10**9)
    assert together == read(tmp_path / "dump.txt", TEXTS[name])


def test_each_field_of_a_line(tmp_path):
    (row,), damages, gaps = read(tmp_path / "dump.txt", line(0, isTransactional="true", compresscodec="gzip"))
    assert row == [0, 80, 0, 1, 5, 2, 123, 0x11, 1_700_000_000_000, 1_700_000_000_000, 7, 3, 0, 2, NO_CONTROL_TYPE, -1]
    assert (damages, gaps) == ([], frozenset({CoverageGap.RECORDS}))


@pytest.mark.parametrize("count", [1, COUNT])
@pytest.mark.parametrize(
    ("name", "field", "least", "most", "otherwise"),
    [
        ("producerEpoch", "producer_epoch", -(2**15), 2**15 - 1, -1),
        ("partitionLeaderEpoch", "leader_epoch", -(2**31), 2**31 - 1, -1),
        ("baseSequence", "base_sequence", -(2**31), 2**31 - 1, -1),
        ("crc", "crc", 0, 2**32 - 1, 2**32 - 1),
    ],
)
def test_a_number_that_its_field_cannot_hold(tmp_path, count, name, field, least, most, otherwise):
    """No tool prints one: it reads as unknown, of a CRC as one that no batch is likely to have."""
    for value, expected in ((least, least), (most, most), (most + 1, otherwise), (least - 1, otherwise)):
        if name == "crc" and value < 0:
            continue  # the tool prints it unsigned: such a line is no row
        rows, damages, _ = read(
            tmp_path / "dump.txt", "".join(line(number, **{name: value}) for number in range(count))
        )
        assert [row[FIELDS.index(field)] for row in rows] == [expected] * count, value
        assert damages == []


@pytest.mark.parametrize("count", [1, COUNT])
@pytest.mark.parametrize("first", [0, 1, 40])
def test_bytes_that_a_text_passes_over_from_its_beginning(tmp_path, count, first):
    text = "".join(line(number, position=first + 80 * number) for number in range(count))
    rows, damages, _ = read(tmp_path / "dump.txt", text)
    assert [row[0] for row in rows] == [first + 80 * number for number in range(count)]
    assert damages == ([(DamageKind.LEFT_OUT, 0, first, None)] if first else [])


@pytest.mark.parametrize("count", [1, COUNT])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(("codec", "records", "bits"), [("none", 1, 0), ("gzip", -1, 1)])
def test_messages_of_old_formats_are_one_record_or_a_wrapper_of_unknown_many(
    tmp_path, count, magic, codec, records, bits
):
    text = "".join(
        f"offset: {5 + number} position: {80 * number} CreateTime: 9 size: 80 magic: {magic} "
        f"compresscodec: {codec} crc: {number} isvalid: true\n"
        for number in range(count)
    )
    rows, damages, gaps = read(tmp_path / "dump.txt", text)
    assert rows == [
        [80 * number, 80, 5 + number, 0, -1, magic, number, bits, 9, 9, -1, -1, -1, records, NO_CONTROL_TYPE, -1]
        for number in range(count)
    ]
    assert (damages, gaps) == ([], frozenset({CoverageGap.RECORDS}))


def old_record(offset, position, timestamp, sequence, *, transactional="false", more=""):
    """A record as releases 0.11 to 1.1 print it: they print no batches."""
    return (
        f"offset: {offset} position: {position} CreateTime: {timestamp} isvalid: true keysize: -1 valuesize: 1 magic: 2 "
        f"compresscodec: GZIP producerId: 7 sequence: {sequence} isTransactional: {transactional} headerKeys: []{more}\n"
    )


def test_records_printed_with_one_position_are_one_batch(tmp_path):
    """Its timestamp is the latest of them; where the next one begins says how long it is, of the last one nothing does."""
    text = (
        old_record(0, 0, 5, 4)
        + old_record(1, 0, 9, 5)
        + old_record(3, 0, 7, 7)
        + old_record(4, 90, 8, 8, transactional="true")
        + old_record(5, 170, 10, -1, transactional="true", more=" endTxnMarker: COMMIT coordinatorEpoch: 6")
    )
    rows, damages, gaps = read(tmp_path / "dump.txt", text)
    assert rows == [
        [0, 90, 0, 3, -1, 2, 0, 0x01, 9, 9, 7, -1, 4, 3, NO_CONTROL_TYPE, -1],
        [90, 80, 4, 0, -1, 2, 4, 0x11, 8, 8, 7, -1, 8, 1, NO_CONTROL_TYPE, -1],
        [170, HEADER_SIZE, 5, 0, -1, 2, 5, 0x31, 10, 10, 7, -1, -1, 1, COMMIT_MARKER, 6],
    ]
    assert (damages, gaps) == ([], frozenset({CoverageGap.RECORDS, CoverageGap.BATCHES, CoverageGap.COUNTS}))


def test_each_message_of_old_formats_is_a_batch_whatever_its_position(tmp_path):
    """The messages in a compressed wrapper are printed with the position of the wrapper."""
    text = "".join(
        f"offset: {offset} position: 40 CreateTime: {9 - offset} isvalid: true keysize: -1 valuesize: 1 magic: 1 "
        "compresscodec: GZIP\n"
        for offset in (3, 4)
    )
    rows, _, _ = read(tmp_path / "dump.txt", text)
    assert rows == [
        [40, HEADER_SIZE, 3, 0, -1, 1, 3, 0x01, 6, 6, -1, -1, -1, 1, NO_CONTROL_TYPE, -1],
        [40, HEADER_SIZE, 4, 0, -1, 1, 4, 0x01, 5, 5, -1, -1, -1, 1, NO_CONTROL_TYPE, -1],
    ]


@pytest.mark.parametrize("start", [800, 801, 880, 1760])
def test_of_what_lies_before_the_byte_where_reading_begins_nothing_is_reported(tmp_path, start):
    """Every tenth batch is invalid; batches lie at multiples of eighty, and what is read of may begin between two."""
    text = "".join(line(number, isvalid=str(number % 10 != 0).lower()) for number in range(COUNT))
    rows, damages, _ = read(tmp_path / "dump.txt", text, start)
    behind = [number for number in range(COUNT) if 80 * number >= start]
    assert [row[0] for row in rows] == [80 * number for number in behind if number % 10]
    assert damages == [
        (DamageKind.CRC_MISMATCH, 80 * number, 80 * number + 80, 2 * number) for number in behind if number % 10 == 0
    ]
