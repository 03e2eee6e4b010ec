"""Avro and Protobuf payloads by local schema files: bytes from the specifications, and what is refused."""

import json
import pickle
import random

import pytest

from kaudit.formats.payloads.json_values import PayloadError
from kaudit.formats.payloads.schemas import Schemas, parse_schema
from tests.formats.encoders import unsigned_varint, varint

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": {"type": "string", "avro.java.string": "String"}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "sku", "type": "string"}, {"name": "count", "type": "int"}]}}},
        {"name": "more", "type": ["null", "Order"], "default": None},
        {"name": "tags", "type": {"type": "map", "values": "long"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "sum", "type": {"type": "fixed", "name": "Sum", "size": 2}},
        {"name": "weight", "type": "double"},
        {"name": "paid", "type": "boolean"},
    ],
}  # fmt: skip


def text(value):
    return varint(len(value)) + value.encode()


def order(identifier, more=b"\0", paid=b"\1"):
    return (
        text(identifier)
        + (
            varint(-2) + varint(8) + text("a") + varint(3) + text("bc") + varint(-4) + varint(0)
        )  # a block with its size
        + more
        + (varint(1) + text("x") + varint(-1) + varint(0))
        + varint(1)
        + (varint(2) + b"\1\2")
        + b"zz"
        + b"\0\0\0\0\0\0\xe0\x3f"
        + paid
    )


AVRO = Schemas(parse_schema("order.avsc", json.dumps(ORDER)))


def test_avro():
    read = AVRO.decode(order("o-1", varint(1) + order("o-2")))
    assert read == {
        "id": "o-1",
        "lines": [{"sku": "a", "count": 3}, {"sku": "bc", "count": -4}],
        "more": {**{key: value for key, value in read.items() if key != "id"}, "id": "o-2", "more": None},
        "tags": {"x": -1},
        "state": "PAID",
        "total": b"\1\2",
        "sum": b"zz",
        "weight": 0.5,
        "paid": True,
    }


def test_schemas_are_chosen_by_the_id_in_front_of_the_payload():
    schemas = Schemas(parse_schema("a.avsc", '"int"'), {7: parse_schema("b.avsc", '"string"')})
    assert schemas.decode(b"\0\0\0\0\7" + text("o")) == "o"
    assert schemas.decode(b"\0\0\0\0\1" + varint(-5)) == -5
    assert Schemas().decode(b'\0\0\0\0\1{"a":1}') == {"a": 1}
    assert pickle.loads(pickle.dumps(schemas)).decode(varint(4)) == 4


PROTO = """
syntax = "proto3"; // "quoted {"
package shop;
/* enum { */
enum Currency { EUR = 0; USD = 1; }
message First { string a = 1; }
message Order {
  option deprecated = true;
  reserved 15, 20 to 30;
  string id = 1 [json_name = "ident{"];
  repeated Line lines = 2;
  message Line { bytes sku = 1; sint32 count = 2; message Deep { bool on = 1; } Deep deep = 3; }
  oneof how { fixed32 card = 3; double cash = 4; }
  map<string, int64> tags = 5;
  repeated int32 packed = 6;
  Currency currency = 7;
  optional .shop.First first = 8;
}
service Shop { rpc Get (First) returns (Order) { option x = 1; } }
"""
SHOP = Schemas(parse_schema("shop.proto", PROTO))


def field(number, wire, content):
    body = varint_of(content) if wire == 0 else content
    return unsigned_varint(number << 3 | wire) + (unsigned_varint(len(body)) + body if wire == 2 else body)


def varint_of(number):
    return unsigned_varint(number & 0xFFFFFFFFFFFFFFFF)


MESSAGE = b"".join(
    [
        field(1, 2, b"o-1"),
        field(2, 2, field(1, 2, b"a") + field(2, 0, 5) + field(3, 2, field(1, 0, 1))),
        field(2, 2, b""),
        field(3, 5, b"\1\0\0\0"),
        field(5, 2, field(1, 2, b"x") + field(2, 0, -1)),
        field(6, 2, varint_of(1) + varint_of(-1)),
        field(7, 0, 1),
        field(8, 2, field(1, 2, b"f")),
        field(99, 2, b"not in the file"),
    ]
)
READ = {
    "id": "o-1",
    "lines": [{"sku": b"a", "count": -3, "deep": {"on": True}}, {}],
    "card": 1,
    "tags": {"x": -1},
    "packed": [1, -1],
    "currency": 1,
    "first": {"a": "f"},
}


@pytest.mark.parametrize(
    ("way", "message", "value"),
    [
        (varint(1) + varint(1), MESSAGE, READ),
        (varint(3) + varint(1) + varint(0) + varint(0), field(1, 0, 0), {"on": False}),
        (b"\0", field(1, 2, b"f"), {"a": "f"}),
    ],
    ids=["second", "nested", "first"],
)
def test_protobuf(way, message, value):
    assert SHOP.decode(b"\0\0\0\0\1" + way + message) == value


def test_protobuf_without_a_registry_is_the_first_message():
    assert SHOP.decode(field(1, 2, b"f")) == {"a": "f"}


@pytest.mark.parametrize(
    ("schemas", "good"),
    [(AVRO, order("o-1")), (SHOP, b"\0\0\0\0\1" + varint(1) + varint(1) + MESSAGE)],
    ids=["avro", "protobuf"],
)
def test_damaged_payloads_are_refused_or_read_and_never_raise_anything_else(schemas, good):
    rng = random.Random(3)
    refused = 0
    for _ in range(400):
        damaged = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            schemas.decode(bytes(damaged[: rng.randint(0, len(damaged))]))
        except PayloadError:
            refused += 1
    assert refused


def test_an_array_of_nothing_is_bounded():
    schema = Schemas(parse_schema("n.avsc", '{"type": "array", "items": "null"}'))
    with pytest.raises(PayloadError, match="items in"):
        schema.decode(varint(1 << 40) + varint(0))


def test_a_value_inside_itself_is_bounded():
    with pytest.raises(PayloadError, match="deeply"):
        Schemas(parse_schema("n.avsc", '{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}')).decode(b"")


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("a.avsc", "{"),
        ("a.avsc", '{"type": "recrod"}'),
        ("a.avsc", '{"type": "record", "name": "A"}'),
        ("a.proto", "message A {"),
        ("a.proto", "syntax = 3;"),
        ("a.proto", "message A { string a 1; }"),
        ("a.json", "{"),
        ("a.txt", "{}"),
    ],
)
def test_files_that_are_no_schemas_are_refused(name, schema):
    with pytest.raises(PayloadError):
        parse_schema(name, schema)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"\0\0\0\0\7", None),
        (b"\0\0\0\0\x08\2x", "x"),
        (b"\0\x08\0\0\0\2\4\6\x08", {"a": 1, "b": 2, "c": 3, "d": 4}),
        # four bytes are no header, nor are five that begin otherwise
        (b"\0\2\4\6", {"a": 0, "b": 1, "c": 2, "d": 3}),
        (b"\2\0\0\x80\1", {"a": 1, "b": 0, "c": 0, "d": 64}),
    ],
)
def test_which_schema_a_payload_has(content, value):
    four = {"type": "record", "name": "R", "fields": [{"name": name, "type": "int"} for name in "abcd"]}
    by_id = {7: parse_schema("B.AVSC", '"null"'), 8: parse_schema("c.avsc", '"string"')}
    assert Schemas(parse_schema("any.avsc", json.dumps(four)), by_id).decode(content) == value


def test_json_is_read_with_and_without_a_header_whatever_its_schema_says():
    for schemas in (Schemas(), Schemas(parse_schema("a.json", '{"type": "string"}'))):
        assert schemas.decode(b'{"a":1}') == schemas.decode(b'\0\0\0\0\1{"a":1}') == {"a": 1}
        with pytest.raises(PayloadError, match="no JSON"):
            schemas.decode(b"\0\0\0\0\1")
