"""Names and values of one line of kafka-dump-log, as Kafka's DumpLogSegments prints them, to the fields of a row."""

import pytest

from kaudit.formats.dump_text.layout import has_open_header_keys, learn, pairs_of
from kaudit.formats.dump_text.rows import DumpAbortedTransaction, DumpBatch, DumpRecord, DumpSnapshotEntry
from kaudit.formats.dump_text.rows import DumpOffsetIndexEntry as OffsetEntry
from kaudit.formats.dump_text.rows import DumpTimeIndexEntry as TimeEntry

BATCH = {
    "baseOffset": ("base_offset", 3),
    "lastOffset": ("last_offset", 7),
    "count": ("record_count", 5),
    "baseSequence": ("base_sequence", -1),
    "lastSequence": ("last_sequence", 4),
    "producerId": ("producer_id", 4001),
    "producerEpoch": ("producer_epoch", 9),
    "partitionLeaderEpoch": ("leader_epoch", 2),
    "isTransactional": ("is_transactional", True),
    "isControl": ("is_control", False),
    "deleteHorizonMs": ("delete_horizon_ms", None),
    "position": ("position", 150),
    "CreateTime": ("max_timestamp", 1_700_000_000_000),
    "size": ("size", 99),
    "magic": ("magic", 2),
    "compresscodec": ("codec", "lz4"),
    "crc": ("crc", 4_294_967_295),
    "isvalid": ("is_valid", True),
}
RECORD = {
    "offset": ("offset", 3),
    "LogAppendTime": ("timestamp", 1_700_000_000_001),
    "keySize": ("key_size", 2),
    "valueSize": ("value_size", 5),
    "position": ("position", 150),
    "magic": ("magic", 2),
    "compresscodec": ("codec", "zstd"),
    "batchSize": ("size", 70),
    "producerId": ("producer_id", 4001),
    "producerEpoch": ("producer_epoch", 9),
    "sequence": ("sequence", 17),
    "isTransactional": ("is_transactional", False),
    "crc": ("crc", None),
    "isvalid": ("is_valid", False),
}
RECORD_OF_OLD = {
    "offset": ("offset", 3),
    "position": ("position", 150),
    "NoTimestampType": ("timestamp", -1),
    "isvalid": ("is_valid", True),
    "keysize": ("key_size", -1),
    "valuesize": ("value_size", 5),
    "magic": ("magic", 1),
    "compresscodec": ("codec", "none"),
    "crc": ("crc", 77),
}
OTHERS = [
    (
        DumpSnapshotEntry,
        {
            "producerId": ("producer_id", 1),
            "producerEpoch": ("producer_epoch", 2),
            "coordinatorEpoch": ("coordinator_epoch", 3),
            "currentTxnFirstOffset": ("current_txn_first_offset", 4),
            "lastTimestamp": ("last_timestamp", 5),
            "firstSequence": ("first_sequence", 6),
            "lastSequence": ("last_sequence", 7),
            "lastOffset": ("last_offset", 8),
            "offsetDelta": ("offset_delta", 9),
            "timestamp": ("timestamp", 10),
        },
    ),
    (
        DumpAbortedTransaction,
        {
            "version": ("version", 0),
            "producerId": ("producer_id", 1),
            "firstOffset": ("first_offset", 2),
            "lastOffset": ("last_offset", 3),
            "lastStableOffset": ("last_stable_offset", 4),
        },
    ),
    (OffsetEntry, {"offset": ("offset", 1), "position": ("position", 2)}),
    (TimeEntry, {"timestamp": ("timestamp", 1), "offset": ("offset", 2)}),
]


def printed(name, value):
    if name == "deleteHorizonMs":
        return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
    if name == "currentTxnFirstOffset":
        return "None" if value is None else f"Some({value})"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def line_of(fields, lead=""):
    return (lead + " ".join(f"{name}: {printed(name, value)}" for name, (_, value) in fields.items())).encode()


def read(line):
    layout = learn(line)
    return None if layout is None else layout.read(line, 12)


KINDS = [
    (DumpBatch, "", BATCH),
    (DumpRecord, "| ", RECORD),
    (DumpRecord, "", RECORD_OF_OLD),
    *((kind, "", of) for kind, of in OTHERS),
]


@pytest.mark.parametrize(("kind", "lead", "fields"), KINDS)
def test_every_name_is_a_field_of_the_row(kind, lead, fields):
    row = read(line_of(fields, lead))
    assert type(row) is kind
    expected = dict(fields.values())
    assert {name: getattr(row, name) for name in expected if name in row._fields} == {
        name: value for name, value in expected.items() if name in row._fields
    }
    assert row.line == 12
    if kind in (DumpBatch, DumpRecord):
        assert expected.keys() <= row.fields
        (time,) = {"CreateTime", "LogAppendTime", "NoTimestampType"} & fields.keys()
        assert row.timestamp_type == time
    assert read(line_of(fields, lead) + b" ") is not None
    assert read(line_of(fields, lead) + b"\r") is not None


@pytest.mark.parametrize(("kind", "lead", "fields"), KINDS)
def test_numbers_are_those_of_64_bits(kind, lead, fields):
    numbers = [name for name, (_, value) in fields.items() if isinstance(value, int) and not isinstance(value, bool)]
    for name in numbers:
        own = fields[name][0]
        for value, good in ((2**63 - 1, True), (2**63, False), (10**18, True), (10**19, False)):
            if name == "crc" and value > 2**63 - 1 and good:
                continue
            row = read(line_of({**fields, name: (own, value)}, lead))
            assert (row is not None and getattr(row, own, value) == value) is good, (name, value)
        if name != "crc":
            for value, good in ((-(2**63), True), (-(2**63) - 1, False)):
                row = read(line_of({**fields, name: (own, value)}, lead))
                assert (row is not None and getattr(row, own, value) == value) is good, (name, value)


@pytest.mark.parametrize("text", ["OptionalLong[5]", "Some(5)", "OptionalLong.empty", "None", "OptionalLong[-5]"])
def test_values_that_may_be_empty(text):
    for fields, name, own in (
        (BATCH, "deleteHorizonMs", "delete_horizon_ms"),
        (OTHERS[0][1], "currentTxnFirstOffset", "current_txn_first_offset"),
    ):
        line = line_of(fields).replace(f"{name}: {printed(name, fields[name][1])}".encode(), f"{name}: {text}".encode())
        assert getattr(read(line), own) == {"OptionalLong[5]": 5, "Some(5)": 5, "OptionalLong[-5]": -5}.get(text)


@pytest.mark.parametrize("missing", ["lastOffset", "baseOffset", "position", "magic", "compresscodec"])
def test_a_batch_has_its_offsets_its_place_and_its_codec(missing):
    without = {name: value for name, value in BATCH.items() if name != missing}
    assert read(line_of(without)) is None or missing == "baseOffset"


def test_flags_are_true_or_false():
    assert read(line_of(BATCH).replace(b"isvalid: true", b"isvalid: TRUE")) is None
    assert read(line_of(BATCH).replace(b"isControl: false", b"isControl: yes")) is None


TAILS = [
    (b"", {}),
    (b" headerKeys: []", {"header_keys": b""}),
    (b" headerKeys: [a,b]", {"header_keys": b"a,b"}),
    (b" headerKeys: [a]b] key: k1", {"header_keys": b"a]b", "key": b"k1"}),
    (b" headerKeys: [a", {"header_keys": b"a"}),
    (b" key: k1", {"key": b"k1"}),
    (b" key: k1 payload: v", {"key": b"k1", "payload": b"v"}),
    (b" key:  p payload: v payload: w", {"key": b" p", "payload": b"v payload: w"}),
    (b" key: decoded payload: v", {"key": b"decoded", "payload": b"v"}),
    (b" key: decoded", {"key": b"decoded"}),
    (b" payload: v key: x", {"payload": b"v key: x"}),
    (b" payload: ", {"payload": b""}),
    (b" headerKeys: [a] key: k1 payload: v\nw", {"header_keys": b"a", "key": b"k1", "payload": b"v\nw"}),
    (b" endTxnMarker: COMMIT coordinatorEpoch: 7", {"end_marker": "COMMIT", "coordinator_epoch": 7}),
    (b" endTxnMarker: ABORT coordinatorEpoch: -1\r", {"end_marker": "ABORT", "coordinator_epoch": -1}),
    (b" headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 0", {"header_keys": b"", "end_marker": "COMMIT", "coordinator_epoch": 0}),
    (b" controlType: LEADER_CHANGE(2)", {"control": "controlType: LEADER_CHANGE(2)"}),
    (b' headerKeys: [] LeaderChange: {"a":0}', {"header_keys": b"", "control": 'LeaderChange: {"a":0}'}),
]  # fmt: skip
FREE = ("header_keys", "key", "payload", "end_marker", "coordinator_epoch", "control")


@pytest.mark.parametrize(("tail", "expected"), TAILS)
def test_what_stands_after_the_pairs_of_a_record(tail, expected):
    row = read(line_of(RECORD, "| ") + tail)
    assert {name: getattr(row, name) for name in FREE} == dict.fromkeys(FREE) | expected
    # a number of nineteen digits takes the slower road to the same row
    slow = read(line_of({**RECORD, "producerId": ("producer_id", 10**18)}, "| ") + tail)
    assert slow._replace(producer_id=4001) == row


@pytest.mark.parametrize("tail", [b" key: k payload: v payload: w", b" key: kkk payload: v payload: w"])
def test_a_key_of_another_size_ends_before_the_first_payload(tail):
    row = read(line_of(RECORD, "| ") + tail)
    assert (row.key, row.payload) == (tail.split(b" payload: ")[0][6:], b"v payload: w")
    old = read(line_of(RECORD_OF_OLD) + tail)
    assert (old.key, old.payload) == (row.key, row.payload)


@pytest.mark.parametrize(
    ("line", "is_open"),
    [
        (b"| offset: 1", False),
        (b"| offset: 1 headerKeys: []", False),
        (b"| offset: 1 headerKeys: [", True),
        (b"| offset: 1 headerKeys: [a,b", True),
        (b"| offset: 1 headerKeys: [a] key: k", False),
        (b"| offset: 1 headerKeys: [a] ke", True),
        (b"| offset: 1 headerKeys: [a] payload: v", False),
        (b"| offset: 1 headerKeys: [a] endTxnMarker: COMMIT", False),
        (b"| offset: 1 headerKeys: [a] LeaderChange: {", False),
    ],
)
def test_lists_of_header_keys_that_are_not_closed(line, is_open):
    assert has_open_header_keys(line) is is_open


def test_pairs_end_where_free_text_begins():
    assert pairs_of(b"| offset: 1 keySize: 2 key: offset: 9") == [(b"offset", b"1", 11), (b"keySize", b"2", 22)]
    assert pairs_of(b"offset: 1 keySize:2") == [(b"offset", b"1", 9)]
    assert pairs_of(b"nothing") == []
    many = b" ".join(b"a%s: 1" % bytes([ord("a") + at % 26]) for at in range(60))
    assert len(pairs_of(many)) == 40


def test_names_that_are_not_known_are_passed_over():
    for at in range(len(BATCH) + 1):
        names = list(BATCH)
        fields = (
            {name: BATCH[name] for name in names[:at]}
            | {"fresh": ("fresh", "x1")}
            | {name: BATCH[name] for name in names[at:]}
        )
        assert read(line_of(fields)) == read(line_of(BATCH))
