"""Protobuf by a .proto file: bytes made by the encoding's specification (protobuf.dev/programming-guides/encoding)."""

import struct

import pytest

from kaudit.formats.payloads.json_values import PayloadError
from kaudit.formats.payloads.schemas import Schemas, parse_schema
from tests.formats.encoders import unsigned_varint

VARINT, FIXED64, SIZED, FIXED32 = 0, 1, 2, 5
TWO_TO_64 = 1 << 64


def number(value):
    return unsigned_varint(value % TWO_TO_64)


def sized(content):
    return unsigned_varint(len(content)) + content


def field(tag, wire, content):
    return unsigned_varint(tag << 3 | wire) + content


def zigzag(value):
    return number(2 * value if value >= 0 else -2 * value - 1)


def read(proto, data):
    return Schemas(parse_schema("a.proto", proto)).decode(data)


SCALARS = [
    *(("int32", VARINT, number(value), value) for value in (0, 1, 127, 128, 2**31 - 1, -1, -(2**31))),
    *(("int64", VARINT, number(value), value) for value in (0, 2**63 - 1, -1, -(2**63))),
    *(("uint32", VARINT, number(value), value) for value in (0, 2**32 - 1)),
    *(("uint64", VARINT, number(value), value) for value in (0, 2**63, 2**64 - 1)),
    *(("sint32", VARINT, zigzag(value), value) for value in (0, -1, 1, 2**31 - 1, -(2**31))),
    *(("sint64", VARINT, zigzag(value), value) for value in (0, -1, 2**63 - 1, -(2**63))),
    *(("bool", VARINT, number(value), value > 0) for value in (0, 1, 2)),
    *(("Colour", VARINT, number(value), value) for value in (0, 3, -1)),
    *(("fixed32", FIXED32, struct.pack("<I", value), value) for value in (0, 2**32 - 1)),
    *(("sfixed32", FIXED32, struct.pack("<i", value), value) for value in (1, -(2**31))),
    *(("float", FIXED32, struct.pack("<f", value), value) for value in (0.0, -1.5)),
    *(("fixed64", FIXED64, struct.pack("<Q", value), value) for value in (0, 2**64 - 1)),
    *(("sfixed64", FIXED64, struct.pack("<q", value), value) for value in (1, -(2**63))),
    *(("double", FIXED64, struct.pack("<d", value), value) for value in (0.0, -1.5)),
    *(("string", SIZED, sized(value.encode()), value) for value in ("", "é")),
    *(("bytes", SIZED, sized(value), value) for value in (b"", b"\xff")),
    ("Inner", SIZED, sized(b""), {}),
    ("Inner", SIZED, sized(field(1, SIZED, sized(b"x"))), {"name": "x"}),
]
ENUM_AND_MESSAGE = "enum Colour { RED = 0; } message Inner { string name = 1; }"


@pytest.mark.parametrize(("kind", "wire", "content", "value"), SCALARS)
def test_types_at_their_bounds(kind, wire, content, value):
    def proto(label, after=""):
        return f"message A {{ {label} {kind} it = 5; {after} }} {ENUM_AND_MESSAGE}"

    once, twice = field(5, wire, content), field(5, wire, content) * 2
    assert read(proto("optional"), once) == read(proto("required"), twice) == read(proto(""), once) == {"it": value}
    assert read(proto("repeated"), once) == {"it": [value]}
    assert read(proto("repeated"), twice) == {"it": [value, value]}
    entry = sized(field(1, SIZED, sized(b"k")) + field(2, wire, content))
    mapped = f"message A {{ map<string, {kind}> it = 5; }} {ENUM_AND_MESSAGE}"
    assert read(mapped, field(5, SIZED, entry)) == {"it": {"k": value}}
    for cut in range(1, len(once)):
        with pytest.raises(PayloadError):
            read(proto(""), once[:cut])
    packed = field(5, SIZED, sized(content * 3))
    if wire != SIZED:
        assert read(proto("repeated"), packed) == {"it": [value] * 3}
        assert read(proto(""), packed) == {"it": value}
        assert read(proto(""), field(5, SIZED, sized(b""))) == {}
    others = {VARINT: b"\1", FIXED64: bytes(8), FIXED32: bytes(4), SIZED: b"\0"}
    for other in others.keys() - {wire, SIZED}:
        with pytest.raises(PayloadError, match=f"it has wire type {other}"):
            read(proto(""), field(5, other, others[other]))


@pytest.mark.parametrize("wire", [3, 4, 6, 7])
def test_groups_and_wire_types_that_there_are_not_are_refused(wire):
    with pytest.raises(PayloadError, match=f"wire type {wire}"):
        read("message A { string it = 1; }", field(9, wire, bytes(20)))


def test_fields_that_the_file_does_not_know_are_passed_over():
    others = (
        field(2, VARINT, b"\5") + field(3, FIXED64, bytes(8)) + field(4, SIZED, b"\2ab") + field(5, FIXED32, bytes(4))
    )
    assert read("message A { string it = 1; }", others + field(1, SIZED, b"\1x") + others) == {"it": "x"}


def test_numbers_have_ten_bytes_at_most():
    proto = "message A { uint64 it = 1; }"
    assert read(proto, field(1, VARINT, b"\xff" * 9 + b"\x7f")) == {"it": TWO_TO_64 - 1}
    for content in (b"\x80" * 10 + b"\0", b"\x80" * 9):
        with pytest.raises(PayloadError):
            read(proto, field(1, VARINT, content))


def test_texts_are_utf8():
    with pytest.raises(PayloadError, match="utf-8"):
        read("message A { string it = 1; }", field(1, SIZED, b"\1\xff"))


@pytest.mark.parametrize(
    ("proto", "value"),
    [
        # the innermost definition of a name counts, as in C++'s scopes
        ("message A { message X { string inner = 1; } X it = 1; } message X { string outer = 1; }", {"inner": "x"}),
        ("message A { X it = 1; } message X { string outer = 1; }", {"outer": "x"}),
        ("package p.q; message A { X it = 1; } message X { string outer = 1; }", {"outer": "x"}),
        ("package p.q; message A { q.X it = 1; } message X { string outer = 1; }", {"outer": "x"}),
        (
            "package p; message A { message X { string inner = 1; } .p.X it = 1; } message X { string a = 1; }",
            {"a": "x"},
        ),
        ("message A { B.X it = 1; } message B { message X { string inner = 1; } }", {"inner": "x"}),
        ("message A { oneof one { X it = 1; string b = 2; } } message X { string outer = 1; }", {"outer": "x"}),
        # of another file
        ("import 'x.proto'; message A { other.X it = 1; }", b"\x0a\1x"),
        ("message A { message B { enum X { RED = 0; } } X it = 1; }", b"\x0a\1x"),
    ],
)
def test_what_a_types_name_means(proto, value):
    assert read(proto, field(1, SIZED, b"\3\x0a\1x")) == {"it": value}


@pytest.mark.parametrize(
    "proto",
    [
        "message A { enum X { RED = 0; } X it = 1; } message X { string a = 1; }",
        "package p; enum X { RED = 0; } message A { X it = 1; }",
        "message A { enum X { RED = 0; option allow_alias = true; } message B { X a = 1; } X it = 1; }",
        "message A { other.X it = 1; }",
    ],
)
def test_enums_are_numbers(proto):
    assert read(proto, field(1, VARINT, b"\7")) == {"it": 7}


@pytest.mark.parametrize(
    "before",
    [
        "// message B { string no = 1; }\n",
        "/* message B {\n */",
        'syntax = "proto2"; import public "a{.proto"; package a.b;',
        "option java_package = 'message {';",
        "option (x) = { a: 1; b { c: 2; } };",
        "extend google.protobuf.MessageOptions { optional string more = 51234; }",
        "service S { rpc Get (A) returns (stream A) { option x = 1; } rpc Two (A) returns (A); }",
        "enum E { option allow_alias = true; NO = 0; YES = 1 [deprecated = true]; }",
    ],
)
def test_what_stands_before_a_message(before):
    assert read(before + "message A { string it = 1; }", field(1, SIZED, b"\1x")) == {"it": "x"}


@pytest.mark.parametrize(
    "before",
    [
        ";",
        "option (x) = { a: 1; b: 2 };",
        "reserved 2, 15, 9 to 11; reserved 'foo', \"bar}\";",
        "extensions 100 to 199;",
        "extend Other { optional int32 b = 126; }",
        "enum E { NO = 0; }",
        "message Nested { string it = 1; message Deeper { string it = 1; } }",
        "oneof one { string a = 2; int32 b = 3 [deprecated = true]; }",
        "map<int32, string> named = 2 [deprecated = true];",
        "string other = 0x2 [(rule).text = { min: 1; }, json_name = 'x;'];",
    ],
)
def test_what_stands_before_a_field(before):
    proto = f"message A {{ {before} string it = 1; }} message B {{ }}"
    assert read(proto, field(1, SIZED, b"\1x")) == {"it": "x"}
    assert Schemas(parse_schema("a.proto", proto)).decode(b"\0\0\0\0\1\2\2" + b"") == {}


def test_keys_of_maps_are_texts_and_the_last_value_of_a_key_counts():
    def pair(key, value):
        return field(1, SIZED, sized(field(1, VARINT, number(key)) + field(2, VARINT, number(value))))

    proto = "message A { map<int64, int32> it = 1; }"
    assert read(proto, pair(-1, 5) + pair(7, 6) + pair(-1, 8)) == {"it": {"-1": 8, "7": 6}}
    assert read(proto, field(1, SIZED, b"\0")) == {"it": {"": None}}
    with pytest.raises(PayloadError, match="it has wire type 0"):
        read(proto, field(1, VARINT, b"\1"))


@pytest.mark.parametrize(("around", "good"), [(64, True), (65, False)])
def test_messages_inside_one_another(around, good):
    data = b""
    for _ in range(around):
        data = field(1, SIZED, sized(data))
    if good:
        assert "it" in read("message A { A it = 1; }", data)
    else:
        with pytest.raises(PayloadError, match="nested too deeply"):
            read("message A { A it = 1; }", data)


PATHS = "message A { message B { string b = 1; message C { string c = 1; } } message D { string d = 1; } } message E { string e = 1; }"


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (b"\0", {}),
        (b"\2\0", {}),
        (b"\4\0\0", {"b": "x"}),
        (b"\6\0\0\0", {"c": "x"}),
        (b"\4\0\2", {"d": "x"}),
        (b"\2\2", {"e": "x"}),
    ],
)
def test_the_way_to_a_message(way, value):
    schemas, data = Schemas(parse_schema("a.proto", PATHS)), field(1, SIZED, b"\1x")
    assert schemas.decode(b"\0\0\0\0\1" + way + data) == value
    for cut in range(1, len(way)):
        with pytest.raises(PayloadError):
            schemas.decode(b"\0\0\0\0\1" + way[:cut])


@pytest.mark.parametrize(
    "way", [b"\2\4", b"\2\1", b"\4\2\0", b"\6\0\0\2", b"\1", b"\xfe\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\1"]
)
def test_ways_to_no_message(way):
    with pytest.raises(PayloadError):
        Schemas(parse_schema("a.proto", PATHS)).decode(b"\0\0\0\0\1" + way)


@pytest.mark.parametrize(
    "proto",
    [
        "",
        "enum A { B = 0; }",
        "message",
        "message A",
        "message A }",
        "message A { string }",
        "message A { string a",
        "message A { string a =",
        "message A { string a = b; }",
        "message A { string a - 1; }",
        "message A { map<string a = 1; }",
        "message A { map{string, string> a = 1; }",
        "message A { map<string, string>",
        "message A { oneof a; }",
        "message A { message B { }",
    ],
)
def test_what_is_no_proto_file(proto):
    with pytest.raises(PayloadError, match=r"no \.proto file"):
        parse_schema("a.proto", proto)
