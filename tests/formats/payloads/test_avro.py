"""Avro by its schema: bytes made by the specification (avro.apache.org/docs/1.12.0/specification, Binary Encoding)."""

import json
import struct

import pytest

from kaudit.formats.payloads.json_values import PayloadError
from kaudit.formats.payloads.schemas import Schemas, parse_schema
from tests.formats.encoders import unsigned_varint

FRAMED = b"\0\0\0\0\7"
"""Confluent's magic byte, and the id of a schema."""


def long(value):
    return unsigned_varint(2 * value if value >= 0 else -2 * value - 1)


def text(value):
    return long(len(value.encode())) + value.encode()


def schemas(schema):
    return Schemas(parse_schema("a.avsc", json.dumps(schema)))


def record(name, *types, **more):
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{at}", "type": one} for at, one in enumerate(types)],
        **more,
    }


VALUES = [
    *(("int", long(value), value) for value in (0, -1, 63, -64, 64, -65, 2**31 - 1, -(2**31))),
    *(("long", long(value), value) for value in (0, -1, 2**63 - 1, -(2**63))),
    *(("boolean", bytes([value]), bool(value)) for value in (0, 1)),
    *(("float", struct.pack("<f", value), value) for value in (0.0, -1.5)),
    *(("double", struct.pack("<d", value), value) for value in (0.0, -1.5)),
    *(("bytes", long(len(value)) + value, value) for value in (b"", b"\xff\0", bytes(100))),
    *(("string", text(value), value) for value in ("", "é", "x" * 64)),
    ({"type": "long", "logicalType": "timestamp-millis"}, long(5), 5),
    ({"type": "fixed", "name": "F", "size": 3}, b"abc", b"abc"),
    ({"type": "fixed", "name": "F", "size": 0}, b"", b""),
    *(({"type": "enum", "name": "E", "symbols": ["A", "B"]}, long(at), name) for at, name in enumerate("AB")),
    *(
        (["null", "string", "int"], way, value)
        for way, value in ((b"\0", None), (b"\2" + text("a"), "a"), (b"\4\3", -2))
    ),
    ({"type": "array", "items": "int"}, b"\0", []),
    ({"type": "array", "items": "int"}, b"\2\7\0", [-4]),
    ({"type": "array", "items": "int"}, b"\4\0\1" + b"\2\2" + b"\0", [0, -1, 1]),
    ({"type": "array", "items": "int"}, long(-2) + long(2) + b"\0\1" + b"\2\2" + b"\0", [0, -1, 1]),
    ({"type": "map", "values": "int"}, b"\0", {}),
    ({"type": "map", "values": "int"}, b"\2\2a\4" + long(-1) + long(3) + b"\2b\1" + b"\0", {"a": 2, "b": -1}),
    ({"type": "map", "values": "int"}, b"\4\2a\4\2a\6\0", {"a": 3}),
    (record("R", "int", "string", "null"), b"\2" + text("a"), {"f0": 1, "f1": "a", "f2": None}),
    ({**record("R", "boolean"), "type": "error"}, b"\1", {"f0": True}),
    (record("R"), b"", {}),
]


@pytest.mark.parametrize(("schema", "content", "value"), VALUES)
def test_types_at_their_bounds(schema, content, value):
    read = schemas(schema)
    assert read.decode(FRAMED + content) == value
    assert type(read.decode(FRAMED + content)) is type(value)
    if not content.startswith(b"\0"):
        assert read.decode(content) == value
    for wrong in (*(content[:cut] for cut in range(len(content))), content + b"\0"):
        with pytest.raises(PayloadError):
            read.decode(FRAMED + wrong)


@pytest.mark.parametrize(
    ("schema", "content"),
    [
        ("boolean", b"\2"),
        ("boolean", b"\xff"),
        ("string", b"\2\xff"),
        ("string", b"\1"),
        ("bytes", b"\3"),
        ("long", b"\x80" * 10 + b"\0"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, long(2)),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, long(-1)),
        (["null", "int"], long(2) + b"\0"),
        (["null", "int"], long(-1) + b"\0"),
    ],
)
def test_what_is_not_by_the_schema(schema, content):
    with pytest.raises(PayloadError):
        schemas(schema).decode(content)


def test_numbers_have_ten_bytes_of_which_64_bits_count():
    ones = b"\xff" * 9
    assert schemas("long").decode(ones + b"\1") == schemas("long").decode(ones + b"\x7f") == -(2**63)
    assert schemas("long").decode(b"\xfe" + ones[1:] + b"\1") == 2**63 - 1


@pytest.mark.parametrize(
    ("names", "reference"),
    [
        ({"name": "In"}, "In"),
        ({"name": "In", "namespace": "a.b"}, "a.b.In"),
        ({"name": "a.b.In"}, "a.b.In"),
        ({"name": "a.b.In", "namespace": "ignored"}, "a.b.In"),
    ],
)
@pytest.mark.parametrize("kind", [{"type": "fixed", "size": 1}, {"type": "enum", "symbols": ["x"]}, record("")])
def test_types_are_known_by_their_full_names(kind, names, reference):
    outer = record("Out", {**kind, **names}, reference)
    content = b"x" if kind["type"] == "fixed" else b"\0" if kind["type"] == "enum" else b""
    read = schemas(outer).decode(content * 2)
    assert read["f0"] == read["f1"]


def test_names_without_a_dot_belong_to_the_namespace_around_them():
    outer = record("Out", {"type": "fixed", "name": "In", "size": 1}, "In", "a.In", namespace="a")
    assert schemas(outer).decode(b"xyz") == {"f0": b"x", "f1": b"y", "f2": b"z"}
    inner = record("b.Mid", {"type": "fixed", "name": "In", "size": 1}, "In")
    assert schemas(record("Out", inner, "b.In", namespace="a")).decode(b"xyz")["f1"] == b"z"
    for reference in ("In", "a.In"):
        with pytest.raises(PayloadError, match="no type"):
            schemas(record("Out", inner, reference, namespace="a"))


@pytest.mark.parametrize(
    "schema",
    ["In", "a.In", {"type": "recrod"}, {"type": "enum", "name": "E"}, {"type": "fixed", "name": "F"}, {"type": "array"},
     {"type": "map"}, {"type": "fixed", "name": "F", "size": "x"}, {"name": "a"}, [["no such"]], 5, None],
)  # fmt: skip
def test_what_is_no_schema(schema):
    with pytest.raises(PayloadError):
        schemas(schema)


@pytest.mark.parametrize(("around", "good"), [(63, True), (64, False)])
def test_records_inside_one_another(around, good):
    read = schemas({"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]})
    content = b"\2" * around + b"\0"
    if good:
        assert read.decode(content)["r"]["r"] is not None
    else:
        with pytest.raises(PayloadError, match="nested too deeply"):
            read.decode(content)


def test_records_beside_one_another_are_not_inside():
    assert len(schemas({"type": "array", "items": record("R", "int")}).decode(long(100) + bytes(100) + b"\0")) == 100


def test_items_without_bytes_are_bounded():
    nothings = schemas({"type": "array", "items": "null"})

    def content(count):
        return long(count) + b"\0"

    most = 4 + (1 << 16)
    assert len(content(most)) == 4
    assert nothings.decode(content(most)) == [None] * most
    for wrong in (content(most + 1), long(most - 4) + long(9) + b"\0"):
        with pytest.raises(PayloadError, match=f"items in {len(wrong)} bytes"):
            nothings.decode(wrong)
