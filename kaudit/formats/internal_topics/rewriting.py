"""Records of internal topics with other texts in them: numbers stay as they are written, texts and bytes become what a caller makes of them.

Source of the encodings: as of record_schemas, whose table has the fields.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from kaudit.formats.byte_reader import NULL_LENGTH, Reader, unsigned_varint
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.internal_topics.record_schemas import (
    CONTROL,
    FRAMED,
    PROTOCOL,
    SIZES,
    Field,
    Schema,
    known_version,
    schema_of,
    smallest,
)

_SUBSCRIPTION, _ASSIGNMENT = "subscription", "assignment"
_OF_PROTOCOL: Final = {_SUBSCRIPTION: 0, _ASSIGNMENT: 1}
"""Fields of a member of a classic group, and the types of the consumer protocol in them."""


class FieldChange(Protocol):
    """What becomes of texts and bytes; `record` and `field` are Kafka's names of what holds them."""

    def text(self, record: str, field: str, value: str) -> str:
        """Return what takes the place of a text."""

    def content(self, value: bytes) -> bytes:
        """Return what takes the place of bytes that are no text."""


def rewritten_record(
    topic: str, key: bytes | None, value: bytes | None, change: FieldChange
) -> tuple[bytes | None, bytes | None]:
    """Return key and value of a record of an internal topic with the changes; a tombstone stays one.

    Raises WireError for a topic, a type or a version that is not known, and for broken bytes.
    """
    if topic in FRAMED:
        return key if key is None else change.content(key), _framed(topic, value, change)
    if key is None:
        raise WireError(0, Reason.TRUNCATED, f"a record of {topic} without a key")
    reader = Reader(key)
    schema = schema_of(topic, reader.int16("record type"))
    identity = _Rewriting(reader, schema.name, 0, change, flexible=False)
    identity.structure(schema.key or ())
    reader.expect_end()
    new_key = key[:2] + bytes(identity.written)
    if value is None:
        return new_key, None
    reader = Reader(value)
    version = known_version(schema, reader.int16("value version"))
    return new_key, value[:2] + _message(reader, schema, version, change)


def rewritten_control(number: int, value: bytes | None, change: FieldChange) -> bytes | None:
    """Return the value of a control record of KRaft with the changes; `number` is the type in its key. Raises WireError as above."""
    schema = schema_of(CONTROL, number)
    if value is None:
        return None
    version = known_version(schema, Reader(value).int16("version"))
    return _message(Reader(value), schema, version, change)


def _framed(topic: str, value: bytes | None, change: FieldChange) -> bytes:
    if value is None:
        raise WireError(0, Reason.TRUNCATED, f"a record of {topic} without a value")
    reader = Reader(value)
    reader.unsigned_varint("frame version")
    schema = schema_of(topic, reader.unsigned_varint("record type"))
    version = known_version(schema, reader.unsigned_varint("record version"))
    return value[: reader.position] + _message(reader, schema, version, change)


def _message(reader: Reader, schema: Schema, version: int, change: FieldChange) -> bytes:
    flexible = schema.flexible is not None and version >= schema.flexible
    content = _Rewriting(reader, schema.name, version, change, flexible=flexible)
    content.structure(schema.value)
    reader.expect_end()
    return bytes(content.written)


class _Rewriting:
    """Reads fields one after the other, and writes each as it was or changed."""

    def __init__(self, reader: Reader, record: str, version: int, change: FieldChange, *, flexible: bool) -> None:
        self.written = bytearray()
        self._reader = reader
        self._record = record
        self._version = version
        self._change = change
        self._flexible = flexible

    def structure(self, fields: Sequence[Field]) -> None:
        present = [field for field in fields if self._version in field.versions]
        for field in present:
            if field.tag is None:
                self._value(field)
        if not self._flexible:
            return
        known = {field.tag: field for field in present if field.tag is not None}
        tagged = self._reader.tagged_fields()
        self.written += unsigned_varint(len(tagged))
        for tag, data in tagged.items():
            content = self._tagged(known[tag], data) if tag in known else self._change.content(data)
            self.written += unsigned_varint(tag) + unsigned_varint(len(content)) + content

    def _tagged(self, field: Field, data: bytes) -> bytes:
        reader = Reader(data)
        inner = _Rewriting(reader, self._record, self._version, self._change, flexible=True)
        inner._value(field)
        reader.expect_end()
        return bytes(inner.written)

    def _value(self, field: Field) -> None:
        if field.array:
            self._array(field)
        elif field.fields and field.nullable:
            start = self._reader.position
            mark = (
                self._reader.unsigned_varint(field.name) - 1 if field.tag is not None else self._reader.int8(field.name)
            )
            self.written += self._raw(start)
            if mark != NULL_LENGTH:
                self._single(field)
        else:
            self._single(field)

    def _array(self, field: Field) -> None:
        start = self._reader.position
        count_of = self._reader.compact_array_count if self._flexible else self._reader.array_count
        count = count_of(field.name, smallest(field, self._version, flexible=self._flexible))
        self.written += self._raw(start)
        for _ in range(count or 0):
            self._single(field)

    def _single(self, field: Field) -> None:
        reader = self._reader
        if field.fields:
            self.structure(field.fields)
        elif field.type == "string":
            text = reader.compact_nullable_string(field.name) if self._flexible else reader.nullable_string(field.name)
            changed = None if text is None else self._change.text(self._record, field.name, text).encode()
            self._sized(changed, 2)
        elif field.type == "bytes":
            size = reader.unsigned_varint(field.name) - 1 if self._flexible else reader.int32(field.name)
            self._sized(None if size < 0 else self._bytes(field.name, reader.raw(size, field.name)), 4)
        else:
            self.written += reader.raw(SIZES[field.type], field.name)

    def _bytes(self, field: str, data: bytes) -> bytes:
        """Return bytes with the changes; those of the consumer protocol are read by its own fields, what they do not explain is bytes."""
        number = _OF_PROTOCOL.get(field)
        if number is not None:
            schema, reader = schema_of(PROTOCOL, number), Reader(data)
            try:
                version = min(reader.int16("version"), schema.versions.stop - 1)
                inner = _Rewriting(reader, schema.name, version, self._change, flexible=False)
                inner.structure(schema.value)
            except WireError:
                return self._change.content(data)
            return data[:2] + bytes(inner.written) + self._change.content(reader.rest())
        return self._change.content(data)

    def _sized(self, content: bytes | None, width: int) -> None:
        size = NULL_LENGTH if content is None else len(content)
        self.written += unsigned_varint(size + 1) if self._flexible else size.to_bytes(width, "big", signed=True)
        self.written += content or b""

    def _raw(self, start: int) -> bytes:
        """Return the bytes from `start` to where the reader is."""
        end, self._reader.position = self._reader.position, start
        return self._reader.raw(end - start, "what was read")
