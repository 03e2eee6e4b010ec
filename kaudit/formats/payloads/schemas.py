"""Schema files of keys and values (Avro's .avsc, Protobuf's .proto, JSON Schema's .json), and what is read by them.

Confluent's serializers write a magic byte 0 and four bytes of the schema's id before the payload, Protobuf's the way to the message
after them (io.confluent.kafka.serializers.AbstractKafkaSchemaSerDe, MessageIndexes). Without them all of the bytes are the payload.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from msgspec import Struct, field

from kaudit.formats.byte_reader import Reader
from kaudit.formats.errors import WireError
from kaudit.formats.payloads.avro import AvroSchema
from kaudit.formats.payloads.json_values import PayloadError, decode_json
from kaudit.formats.payloads.protobuf import ProtoFile

_MAGIC = 0
_ID_BYTES = 5


class JsonSchema:
    """A JSON Schema: the payload is JSON, whatever it says."""


Schema = AvroSchema | ProtoFile | JsonSchema


def parse_schema(name: str, text: str) -> Schema:
    """Parse a schema file by its name's suffix. Raises PayloadError for one that is none."""
    suffix = PurePath(name).suffix.lower()
    if suffix == ".avsc":
        return AvroSchema(text)
    if suffix == ".proto":
        return ProtoFile(text)
    if suffix == ".json":
        decode_json(text.encode())
        return JsonSchema()
    raise PayloadError("a schema is an .avsc, .proto or .json file")


class Schemas(Struct, frozen=True):
    """The schemas of keys or of values: `any_id` reads what no other is for, None: JSON; `by_id` are for one id of the registry."""

    any_id: Schema | None = None
    by_id: Mapping[int, Schema] = field(default_factory=dict)

    def decode(self, content: bytes) -> Any:  # noqa: ANN401 - any value
        """Return the value of a key or value. Raises PayloadError where it cannot be read by its schema."""
        framed = len(content) >= _ID_BYTES and content[0] == _MAGIC
        schema = self.any_id
        if framed:
            schema = self.by_id.get(int.from_bytes(content[1:_ID_BYTES], "big"), schema)
            content = content[_ID_BYTES:]
        try:
            if isinstance(schema, AvroSchema):
                return schema.decode(content)
            if isinstance(schema, ProtoFile):
                indexes, content = _indexes(content) if framed else ([0], content)
                return schema.decode(content, indexes)
        except WireError as error:
            raise PayloadError(str(error)) from error
        return decode_json(content)


def _indexes(content: bytes) -> tuple[list[int], bytes]:
    """Return the numbers of the message and of those around it, the outermost first, and the message; no number stands for the first."""
    left = Reader(content)
    count = left.varint("way to the message")
    if count < 0:
        raise PayloadError(f"{count} numbers on the way to the message")
    return [left.varint("way to the message") for _ in range(count)] or [0], left.rest()
