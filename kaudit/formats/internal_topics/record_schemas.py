"""Records of internal topics by Kafka's schemas: the table in record_schemas.toml beside this module.

Source of the schemas: the messages of type coordinator-key, coordinator-value and metadata in Kafka's jars; of the encodings:
org.apache.kafka.common.protocol.Message and the classes that its MessageGenerator writes. kafka-dump-log decodes the same records.
"""

import base64
import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

import msgspec
from msgspec import Struct

from kaudit.formats.byte_reader import NULL_LENGTH, Buffer, Reader
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.toml import packaged_toml
from kaudit.model.internal_topics import CLUSTER, GROUPS, REMOTE_LOG, SHARE_STATE

Fields = dict[str, object]
"""Values by Kafka's names of fields: numbers, text, bytes, None, and lists and dicts of these."""

CONTROL_TYPES: Final = frozenset({2, 3, 4, 5, 6})
"""Types of control records of KRaft: LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS."""
FRAMED: Final = frozenset({REMOTE_LOG, CLUSTER})
"""Topics whose records have no key of their own: type and version begin the value."""
CONTROL: Final = "control records"
PROTOCOL: Final = "consumer protocol"
_CONSUMER: Final = "consumer"
_NULL_STRUCT: Final = -1
_FRAME_VERSIONS: Final = (0, 1)
_TOKEN: Final = re.compile(r"[\[\]{};?]|[^\s\[\]{};?]+")
_OPENING: Final = ("[", "{")
_CLOSING: Final = ("]", "}")
_IMPLICIT: Final[Mapping[str, object]] = {"bool": False, "int8": 0, "int16": 0, "int32": 0, "int64": 0, "[]": []}
"""Defaults of tagged fields whose schema names none."""
SIZES: Final = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float64": 8, "uuid": 16}
_ANY_VERSION: Final = range(1 << 15)


class Field(Struct, frozen=True):
    """One field. `type` is Kafka's name of it, or empty for a structure of `fields`; `versions` are those that have it.

    `array`: there are several. `tag`: it is one of the tagged fields, and `default` where it is not written. `names` has the
    names of its numbers.
    """

    name: str
    type: str
    fields: "tuple[Field, ...]" = ()
    array: bool = False
    nullable: bool = False
    versions: range = _ANY_VERSION
    tag: int | None = None
    default: object = None
    names: Mapping[int, str] | None = None


class Schema(Struct, frozen=True):
    """One type of record: `type` is its number in the key or the frame; `key` is None where the topic has no keys.

    `versions` are those of the value that are known, `flexible` the first of them in the flexible encoding.
    """

    topic: str
    name: str
    type: int
    versions: range
    flexible: int | None
    key: tuple[Field, ...] | None
    value: tuple[Field, ...]


class InternalRecord(Struct, frozen=True):
    """One record. `key` is None where the topic has no keys; `value` and `version` are None for a tombstone."""

    name: str
    type: int
    version: int | None
    key: Fields | None
    value: Fields | None


class _Row(Struct, frozen=True, forbid_unknown_fields=True):
    topic: str
    name: str
    type: int
    versions: tuple[int, int]
    value: str
    flexible: int | None = None
    key: str | None = None


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    names: dict[str, dict[str, int]]
    records: list[_Row]


@cache
def schemas() -> Mapping[tuple[str, int], Schema]:
    """Return the schemas by topic and type."""
    table = msgspec.convert(packaged_toml("kaudit.formats.internal_topics", "record_schemas.toml"), _Table)
    numbers = {kind: {number: name for name, number in names.items()} for kind, names in table.names.items()}

    def fields(written: str) -> tuple[Field, ...]:
        return _parsed(_TOKEN.findall(written)[::-1], numbers)

    return {
        (row.topic, row.type): Schema(
            row.topic,
            row.name,
            row.type,
            range(row.versions[0], row.versions[1] + 1),
            row.flexible,
            None if row.key is None else fields(row.key),
            fields(row.value),
        )
        for row in table.records
    }


def parse_keyed_record(topic: str, key: Buffer | None, value: Buffer | None) -> InternalRecord:
    """Decode a record of __consumer_offsets or __share_group_state, whose key and value begin with a version of two bytes.

    Raises WireError for a null key, broken bytes, and a type or version that is not known.
    """
    if key is None:
        raise WireError(0, Reason.TRUNCATED, f"a record of {topic} without a key")
    reader = Reader(key)
    schema = schema_of(topic, reader.int16("record type"))
    identity = _structure(reader, schema.key or (), 0, flexible=False)
    reader.expect_end()
    if value is None:
        return InternalRecord(schema.name, schema.type, None, identity, None)
    reader = Reader(value)
    version = known_version(schema, reader.int16("value version"))
    content = _message(reader, schema, version)
    if schema.name == "GroupMetadata" and content["protocolType"] == _CONSUMER:
        content["members"] = [_with_protocol(member) for member in _dicts(content["members"])]
    return InternalRecord(schema.name, schema.type, version, identity, content)


def parse_framed_record(topic: str, value: Buffer | None) -> InternalRecord:
    """Decode a record of __cluster_metadata or __remote_log_metadata, whose value begins with a frame, its type and version.

    Raises WireError for a null value, broken bytes, and a type or version that is not known.
    """
    if value is None:
        raise WireError(0, Reason.TRUNCATED, f"a record of {topic} without a value")
    reader = Reader(value)
    if (frame := reader.unsigned_varint("frame version")) not in _FRAME_VERSIONS:
        raise WireError(0, Reason.VERSION, f"frame version {frame}, known are {_FRAME_VERSIONS}")
    schema = schema_of(topic, reader.unsigned_varint("record type"))
    version = known_version(schema, reader.unsigned_varint("record version"))
    return InternalRecord(schema.name, schema.type, version, None, _message(reader, schema, version))


def parse_internal_record(topic: str, key: Buffer | None, value: Buffer | None) -> InternalRecord:
    """Decode a record of any topic that is decoded by its schemas. Raises WireError as the functions above do."""
    return parse_framed_record(topic, value) if topic in FRAMED else parse_keyed_record(topic, key, value)


def parse_control_record(number: int, value: Buffer | None) -> InternalRecord:
    """Decode the value of a control record of KRaft, which begins with its version; `number` is the type in its key.

    Raises WireError as parse_framed_record does. Markers of transactions have a class of their own (ControlRecord).
    """
    schema = schema_of(CONTROL, number)
    if value is None:
        raise WireError(0, Reason.TRUNCATED, f"{schema.name} without a value")
    version = known_version(schema, Reader(value).int16("version"))
    return InternalRecord(schema.name, schema.type, version, None, _message(Reader(value), schema, version))


def printed_control_record(number: int, fields: object) -> InternalRecord:
    """Return the control record whose fields kafka-dump-log printed as JSON; as printed_record."""
    schema = schema_of(CONTROL, number)
    version = known_version(schema, _integer(_member(fields, "version")))
    return InternalRecord(schema.name, schema.type, version, None, _of_json(fields, schema.value, version))


def printed_record(topic: str, key: object, payload: object) -> InternalRecord:
    """Return the record that kafka-dump-log printed as JSON: `key` of a keyed topic, `payload`, None for a tombstone.

    Fields that its JsonConverter leaves out, because they have their default, are filled in. Raises WireError for other JSON.
    """
    number = _member(key, "type") if topic in (GROUPS, SHARE_STATE) else number_of(topic, _member(payload, "type"))
    schema = schema_of(topic, _integer(number))
    identity = None if schema.key is None else _of_json(_member(key, "data"), schema.key, 0)
    if payload is None:
        return InternalRecord(schema.name, schema.type, None, identity, None)
    version = known_version(schema, _integer(_member(payload, "version")))
    content = _of_json(_member(payload, "data"), schema.value, version)
    return InternalRecord(schema.name, schema.type, version, identity, content)


def number_of(topic: str, name: object) -> int:
    """Return the type of the record that kafka-dump-log calls so, -1 for none."""
    return _numbers().get((topic, str(name).replace("_", "").lower()), -1)


@cache
def _numbers() -> Mapping[tuple[str, str], int]:
    return {(topic, schema.name.lower()): number for (topic, number), schema in schemas().items()}


def _member(document: object, name: str) -> object:
    if not isinstance(document, dict) or name not in document:
        raise WireError(0, Reason.VALUE, f"no {name} as kafka-dump-log prints it")
    return document[name]


def _integer(value: object) -> int:
    text = str(value)
    if not re.fullmatch(r"-?\d{1,5}", text):
        raise WireError(0, Reason.VALUE, f"no number as kafka-dump-log prints it: {text[:80]}")
    return int(text)


def _of_json(data: object, fields: Sequence[Field], version: int) -> Fields:
    if not isinstance(data, dict):
        raise WireError(0, Reason.VALUE, "no fields as kafka-dump-log prints them")
    present = [field for field in fields if version in field.versions]
    return {field.name: _value_of_json(data.get(field.name, field.default), field, version) for field in present}


def _value_of_json(value: object, field: Field, version: int) -> object:
    if field.array and isinstance(value, list):
        return [_single_of_json(item, field, version) for item in value]
    return value if value is None or field.array else _single_of_json(value, field, version)


def _single_of_json(value: object, field: Field, version: int) -> object:
    if field.fields:
        return _of_json(value, field.fields, version)
    if field.type == "bytes" and isinstance(value, str):
        return base64.b64decode(value)
    return field.names.get(value, value) if field.names is not None and isinstance(value, int) else value


def schema_of(topic: str, number: int) -> Schema:
    """Return the schema of a type. Raises WireError for one that is not known."""
    schema = schemas().get((topic, number))
    if schema is None:
        raise WireError(0, Reason.VERSION, f"record type {number} of {topic} is not known")
    return schema


def known_version(schema: Schema, version: int) -> int:
    """Return the version. Raises WireError for one that is not known."""
    if version not in schema.versions:
        known = (
            f"{schema.versions.start} to {schema.versions.stop - 1}"
            if len(schema.versions) > 1
            else schema.versions.start
        )
        raise WireError(0, Reason.VERSION, f"version {version} of {schema.name}, known is {known}")
    return version


def _message(reader: Reader, schema: Schema, version: int) -> Fields:
    flexible = schema.flexible is not None and version >= schema.flexible
    content = _structure(reader, schema.value, version, flexible=flexible)
    reader.expect_end()
    return content


def _structure(reader: Reader, fields: Sequence[Field], version: int, *, flexible: bool) -> Fields:
    """Read the fields of one structure, and its tagged fields; those that are not known are kept under `taggedN`."""
    present = [field for field in fields if version in field.versions]
    found: Fields = {
        field.name: field.default if field.tag is not None else _value(reader, field, version, flexible=flexible)
        for field in present
    }
    if flexible:
        tagged = {field.tag: field for field in present if field.tag is not None}
        for tag, data in reader.tagged_fields().items():
            if tag in tagged:
                inner = Reader(data)
                found[tagged[tag].name] = _value(inner, tagged[tag], version, flexible=True)
                inner.expect_end()
            else:
                found[f"tagged{tag}"] = data
    return found


def _value(reader: Reader, field: Field, version: int, *, flexible: bool) -> object:
    if field.array:
        count = (reader.compact_array_count if flexible else reader.array_count)(
            field.name, smallest(field, version, flexible=flexible)
        )
        if count is not None:
            return [_single(reader, field, version, flexible=flexible) for _ in range(count)]
    elif field.fields and field.nullable:
        if _is_there(reader, field):
            return _single(reader, field, version, flexible=flexible)
    else:
        return _single(reader, field, version, flexible=flexible)
    if not field.nullable:
        raise WireError(reader.position, Reason.COUNT, f"{field.name} must not be null")
    return None


def _is_there(reader: Reader, field: Field) -> bool:
    """Read the mark before a structure that may be null: -1 of one byte, in a tagged field an unsigned varint of 0."""
    if field.tag is not None:
        return reader.unsigned_varint(field.name) != 0
    return reader.int8(field.name) != _NULL_STRUCT


def _single(reader: Reader, field: Field, version: int, *, flexible: bool) -> object:
    if field.fields:
        return _structure(reader, field.fields, version, flexible=flexible)
    nullable = field.nullable and not field.array
    if field.type == "string":
        text = reader.compact_nullable_string(field.name) if flexible else reader.nullable_string(field.name)
        if text is None and not nullable:
            raise WireError(reader.position, Reason.LENGTH, f"{field.name} must not be null")
        return text
    if field.type == "bytes":
        return _bytes(reader, field.name, nullable=nullable, flexible=flexible)
    number = _NUMBERS[field.type](reader, field.name)
    return number if field.names is None or not isinstance(number, int) else field.names.get(number, number)


def _bytes(reader: Reader, name: str, *, nullable: bool, flexible: bool) -> bytes | None:
    start = reader.position
    size = reader.unsigned_varint(name) - 1 if flexible else reader.int32(name)
    if size == NULL_LENGTH and nullable:
        return None
    if size < 0:
        raise WireError(start, Reason.LENGTH, f"{name} of length {size}")
    return reader.raw(size, name)


def _float64(reader: Reader, name: str) -> float:
    return float(struct.unpack(">d", reader.raw(8, name))[0])


def _uuid(reader: Reader, name: str) -> str:
    """As Kafka writes ids: base64 for addresses, without padding."""
    return base64.urlsafe_b64encode(reader.raw(16, name)).decode().rstrip("=")


_NUMBERS: Final[Mapping[str, Callable[[Reader, str], object]]] = {
    "bool": lambda reader, name: reader.int8(name) != 0,
    "int8": Reader.int8,
    "int16": Reader.int16,
    "uint16": lambda reader, name: reader.int16(name) & 0xFFFF,
    "int32": Reader.int32,
    "int64": Reader.int64,
    "float64": _float64,
    "uuid": _uuid,
}


def smallest(field: Field, version: int, *, flexible: bool) -> int:
    """Return the fewest bytes that one element takes, so that no count is believed that the bytes cannot hold."""
    if not field.fields:
        return SIZES.get(field.type, 1 if flexible else 2)
    inner = (each for each in field.fields if version in each.versions and each.tag is None)
    return max(
        1, sum(1 if each.array or each.nullable else smallest(each, version, flexible=flexible) for each in inner)
    )


def _with_protocol(member: Fields) -> Fields:
    """Return a member of a classic consumer group with its subscription and assignment decoded; what does not decode stays."""
    return member | {
        name: _of_protocol(number, member[name]) for number, name in enumerate(("subscription", "assignment"))
    }


def _of_protocol(number: int, data: object) -> object:
    """Later versions have more fields at the end: a reader of the protocol takes what it knows (ConsumerProtocol)."""
    if not isinstance(data, bytes):
        return data
    schema = schemas()[PROTOCOL, number]
    reader = Reader(data)
    try:
        version = min(reader.int16("version"), schema.versions.stop - 1)
        return _structure(reader, schema.value, version, flexible=False)
    except WireError:
        return data


def _dicts(items: object) -> list[Fields]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _parsed(words: list[str], names: Mapping[str, Mapping[int, str]]) -> tuple[Field, ...]:
    """Read `name type; name [type]?; name {name type} 3+ @0 =-1 #names` up to the bracket that closes it; `words` are reversed."""
    found = []
    while words and words[-1] not in _CLOSING:
        found.append(_parsed_field(words, names))
        if words and words[-1] == ";":
            words.pop()
    return tuple(found)


def _parsed_field(words: list[str], names: Mapping[str, Mapping[int, str]]) -> Field:
    name, kind = words.pop(), words.pop()
    array = kind == "["
    fields: tuple[Field, ...] = ()
    if array and words[-2] == "]":
        kind = words.pop()
        words.pop()
    elif kind in _OPENING:
        kind, fields = "", _parsed(words, names)
        words.pop()
    nullable, versions, tag = False, _ANY_VERSION, None
    default: object = None
    numbers: Mapping[int, str] | None = None
    while words and words[-1] not in (";", *_CLOSING):
        word = words.pop()
        if word == "?":
            nullable = True
        elif word.startswith("@"):
            tag, default = int(word[1:]), _IMPLICIT.get("[]" if array else kind)
        elif word.startswith("="):
            default = json.loads(word[1:])
        elif word.startswith("#"):
            numbers = names[word[1:]]
        else:
            first, _, last = word.rstrip("+").partition("-")
            versions = range(int(first), _ANY_VERSION.stop if word.endswith("+") else int(last or first) + 1)
    if numbers is not None and isinstance(default, int):
        default = numbers.get(default, default)
    return Field(name, kind, fields, array, nullable, versions, tag, default, numbers)
