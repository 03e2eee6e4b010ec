import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.control import (
    USUAL_MARKER,
    USUAL_MARKER_LENGTH,
    ControlRecord,
    ControlType,
    is_usual_marker,
    parse_control,
    parse_marker,
    read_control_records,
)
from kaudit.formats.log.record_batch import decode_headers
from tests.formats import encoders
from tests.formats.fuzz import damaged, outcome, quick
from tests.formats.log.raw_batches import batches, segments


@given(
    st.sampled_from([0, 1]), st.integers(-(2**31), 2**31 - 1), st.integers(0, 9), st.integers(0, 9), st.integers(0, 4)
)
@quick
def test_markers_round_trip(control_type, coordinator_epoch, version, value_version, codec):
    raw = encoders.marker(control_type, coordinator_epoch, version, value_version, codec=codec)
    expected = ControlRecord(ControlType(control_type), coordinator_epoch, version, control_type, value_version)
    assert parse_marker(memoryview(raw)) == expected


def test_a_marker_that_was_cleaned_away():
    assert parse_marker(encoders.batch([], flags=encoders.CONTROL)) is None


def test_markers_of_unusual_shape_take_the_long_way():
    key, value = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 7)
    with_header = encoders.batch([encoders.record(0, 0, key, value, [(b"h", b"")])], flags=encoders.CONTROL)
    longer_value = encoders.batch([encoders.record(0, 0, key, value + b"more")], flags=encoders.CONTROL)
    expected = ControlRecord(ControlType.COMMIT, 7, 0, 1, 0)
    assert parse_marker(with_header) == parse_marker(longer_value) == expected


UNDECODED, NO_EPOCH = -2, -1
KEY, VALUE = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 7)
FORMS = [
    (encoders.marker(0, 5), 0, 5),
    (encoders.marker(1, -(2**31)), 1, -(2**31)),
    (encoders.marker(1, 2**31 - 1, leader_epoch=9), 1, 2**31 - 1),
    (encoders.marker(1, 8, version=3, value_version=2), 1, 8),
    (encoders.marker(0, 9, codec=encoders.GZIP), 0, 9),
    (encoders.marker(2, 9), 2, NO_EPOCH),
    (encoders.marker(6, 9), 6, NO_EPOCH),
    (encoders.marker(7, 9), -1, NO_EPOCH),
    (encoders.marker(256, 9), -1, NO_EPOCH),
    (encoders.marker(1, 9, version=-1), UNDECODED, NO_EPOCH),
    (encoders.marker(1, 9, value_version=-1), UNDECODED, NO_EPOCH),
    (encoders.batch([encoders.record(0, -1, KEY, VALUE)], flags=encoders.CONTROL), 1, 7),
    (encoders.batch([encoders.record(3, 0, KEY, VALUE)], flags=encoders.CONTROL, last_offset_delta=3), 1, 7),
    (encoders.batch([encoders.record(0, 0, KEY, VALUE, [(b"h", b"")])], flags=encoders.CONTROL), 1, 7),
    (encoders.batch([encoders.record(0, 0, KEY, VALUE + b"more")], flags=encoders.CONTROL), 1, 7),
    (encoders.batch([encoders.record(0, 0, KEY, VALUE[:5])], flags=encoders.CONTROL), UNDECODED, NO_EPOCH),
    (encoders.batch([encoders.record(0, 0, KEY + b"x", VALUE)], flags=encoders.CONTROL), 1, 7),
    (encoders.batch([encoders.record(0, 0, KEY, VALUE)], flags=encoders.CONTROL, count=0), UNDECODED, NO_EPOCH),
    (encoders.batch([encoders.record(index, 0, KEY, VALUE) for index in (0, 1)], flags=encoders.CONTROL), 1, 7),
    (encoders.batch([], flags=encoders.CONTROL), -1, NO_EPOCH),
    (encoders.batch([encoders.record(0, 0, KEY, VALUE)]), -1, NO_EPOCH),
]
"""Batches, and the type and coordinator epoch a column has of each."""


@pytest.mark.parametrize("order", [1, -1])
def test_markers_of_any_form_side_by_side(order):
    forms = FORMS[::order]
    buffer = b"".join(raw for raw, _, _ in forms)
    positions = np.array([0, *itertools.accumulate(len(raw) for raw, _, _ in forms)][:-1])
    columns = decode_headers(memoryview(buffer), positions, 5000)
    assert columns["control_type"].tolist() == [kind for _, kind, _ in forms]
    assert columns["coordinator_epoch"].tolist() == [epoch for _, _, epoch in forms]
    assert columns["position"].tolist() == (positions + 5000).tolist()
    assert columns["size"].tolist() == [len(raw) for raw, _, _ in forms]
    for index, (raw, kind, epoch) in enumerate(forms):
        alone = decode_headers(memoryview(raw), np.array([0]), int(positions[index]))
        assert (alone["control_type"].tolist(), alone["coordinator_epoch"].tolist()) == ([kind], [epoch])


@pytest.mark.parametrize(
    ("raw", "usual"),
    [
        (encoders.marker(0, 5), True),
        (encoders.marker(1, -(2**31), version=2**15 - 1, value_version=2**15 - 1), True),
        (encoders.marker(2, 9), False),
        (encoders.marker(256, 9), False),
        (encoders.marker(1, 9, version=-1), False),
        (encoders.marker(1, 9, value_version=-1), False),
        (encoders.batch([encoders.record(0, 0, KEY + b"xy", VALUE[:4])], flags=encoders.CONTROL), False),
        (encoders.batch([encoders.record(0, 0, KEY, VALUE[:4], [(b"", b"")])], flags=encoders.CONTROL), False),
        (encoders.batch([encoders.record(1, 0, KEY, VALUE)], flags=encoders.CONTROL), False),
    ],
)
def test_the_usual_form_is_known_by_its_bytes(raw, usual):
    """The long way decodes it all the same: this is what saves it for nearly all markers."""
    records = np.frombuffer(raw[61:78], USUAL_MARKER, count=1)
    assert is_usual_marker(records).tolist() == [usual]


TYPES = ["ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"]


@pytest.mark.parametrize(("type_id", "name"), list(enumerate(TYPES)))
def test_types_have_the_names_of_control_record_type(type_id, name):
    (control,) = [control for _, control in read_control_records(encoders.marker(type_id, 3))]
    assert (control.type.name, control.type_id) == (name, type_id)
    assert control.type.ends_transaction == (type_id in (0, 1))


@pytest.mark.parametrize("type_id", [7, 99, -1, -5])
def test_types_of_the_future_stay_unknown(type_id):
    expected = ControlRecord(ControlType.UNKNOWN, None, 0, type_id, None)
    assert parse_marker(encoders.marker(type_id, 3)) == expected
    assert not expected.type.ends_transaction


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"", Reason.TRUNCATED),
        (b"\x00\x00\x00", b"", Reason.TRUNCATED),
        (b"\xff\xff\x00\x01", bytes(6), Reason.VERSION),
        (b"\x00\x00\x00\x01", bytes(5), Reason.TRUNCATED),
        (b"\x00\x00\x00\x01", None, Reason.TRUNCATED),
        (b"\x00\x00\x00\x00", b"\xff\xff" + bytes(4), Reason.VERSION),
    ],
)
def test_control_records_a_broker_refuses(key, value, reason):
    with pytest.raises(WireError) as caught:
        parse_control(key, value)
    assert caught.value.reason is reason
    with pytest.raises(WireError):
        parse_marker(encoders.batch([encoders.record(0, 0, key, value)], flags=encoders.CONTROL))


@pytest.mark.parametrize(
    "raw",
    [
        encoders.batch([encoders.record(0, 0, bytes(4), bytes(6))]),
        encoders.marker(1, 1)[:-1],
        encoders.marker(1, 1, magic=1),
        encoders.marker(1, 1, length=70),
        b"",
    ],
)
def test_what_is_no_control_batch(raw):
    with pytest.raises(WireError):
        parse_marker(raw)


def test_every_control_batch_of_real_brokers(evidence):
    """The quick way and the long way agree, and the totals are what kafka-dump-log counted (endTxnMarker lines)."""
    root = evidence.capture("txn-mix-2.8.2")
    dumped = {"COMMIT": 0, "ABORT": 0}
    seen = {"COMMIT": 0, "ABORT": 0}
    for dump in sorted((root / "dumps").glob("*.deep.txt")):
        relative = dump.name.removesuffix(".deep.txt").replace("__", "/")
        if "///" in relative or "//" in relative:
            continue  # internal topics: their own underscores make the name ambiguous
        for line in dump.read_text(errors="replace").splitlines():
            for name in dumped:
                dumped[name] += f"endTxnMarker: {name}" in line
        for _, raw in batches((root / relative).read_bytes()):
            if raw[22] & 0x20:
                marker = parse_marker(raw)
                assert [marker] == [control for _, control in read_control_records(raw)]
                assert marker is not None
                seen[marker.type.name] += 1
    assert seen == dumped
    assert min(seen.values()) > 20


def test_kraft_control_records(evidence):
    kinds = set()
    for segment in segments(evidence.oracle("4.2.0", "logdir")):
        if segment.parent.name == "__cluster_metadata-0":
            for _, raw in batches(segment.read_bytes()):
                if raw[22] & 0x20:
                    kinds |= {control.type for _, control in read_control_records(raw)}
    assert ControlType.LEADER_CHANGE in kinds
    assert ControlType.UNKNOWN not in kinds


SAMPLES = [encoders.marker(kind, 3, codec=codec) for kind in (0, 1, 2, 9) for codec in (0, 1, 4)]


@given(damaged(SAMPLES))
@quick
def test_fuzz(data):
    marker, error = outcome(parse_marker, data)
    assert marker is None or marker.version >= 0
    assert error is None or error.position >= 0


def test_the_markers_of_brokers_have_the_usual_length():
    """78 bytes in all, as brokers write them; 66 behind the length field."""
    raw = encoders.marker(1, 7, producer_id=5, producer_epoch=0)
    assert (len(raw), USUAL_MARKER_LENGTH) == (78, 66)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
@pytest.mark.parametrize("flags", [0, 8])
def test_the_columns_of_messages_before_magic_2(magic, codec, flags):
    """One that is compressed wraps an unknown number of records; attributes that mean something later mean nothing yet."""
    current = encoders.batch([encoders.record(0)] * 3, 5, producer_id=9, producer_epoch=2, base_sequence=4)
    old = encoders.message(77, magic, b"k", b"v", codec, 123, flags | 0x30)
    (first, row) = decode_headers(memoryview(current + old), np.array([0, len(current)]), 1000)
    assert (first["base_offset"], first["record_count"], first["producer_id"], first["position"]) == (5, 3, 9, 1000)
    assert {name: int(row[name]) for name in row} == {
        "position": 1000 + len(current),
        "size": len(old),
        "base_offset": 77,
        "last_offset_delta": 0,
        "leader_epoch": -1,
        "magic": magic,
        "crc": int.from_bytes(old[12:16], "big"),
        "attributes": codec | flags,
        "base_timestamp": 123 if magic else -1,
        "max_timestamp": 123 if magic else -1,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": 1 if codec == 0 else -1,
        "control_type": -1,
        "coordinator_epoch": -1,
    }
