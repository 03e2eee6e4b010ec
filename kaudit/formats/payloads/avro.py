"""Values of Avro's binary encoding by their writer's schema (Apache Avro 1.12 specification), as Python's values.

Logical types are the numbers and bytes that they are written as; a record is a dict, an enum's symbol and a string are texts.
"""

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

from kaudit.formats.byte_reader import Reader
from kaudit.formats.payloads.json_values import PayloadError

Read = Callable[["_Bytes"], Any]
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_MOST_DEPTH = 64
"""Records inside one another, which a schema that refers to itself allows without end."""
_MOST_EMPTY = 1 << 16
"""Items of an array that take no bytes: their number alone would be unbounded."""


class _Bytes(Reader):
    """What is left to read of one value, and how many records it is in."""

    depth = 0


class AvroSchema:
    """A schema (.avsc), ready to read values that were written by it."""

    def __init__(self, text: str) -> None:
        """Parse a schema. Raises PayloadError where it is none."""
        self._named: dict[str, Read] = {}
        self._text = text
        try:
            self._read = self._reader(json.loads(text), "")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise PayloadError(f"no Avro schema: {error!r}") from error

    def __reduce__(self) -> tuple[type["AvroSchema"], tuple[str]]:
        return AvroSchema, (self._text,)

    def decode(self, data: bytes) -> Any:  # noqa: ANN401 - any value
        """Return the value of all these bytes. Raises PayloadError or WireError where they are not by this schema."""
        left = _Bytes(data)
        value = self._read(left)
        left.expect_end()
        return value

    def _reader(self, schema: Any, namespace: str) -> Read:  # noqa: ANN401 - JSON
        if isinstance(schema, list):
            return _union([self._reader(each, namespace) for each in schema])
        if isinstance(schema, str):
            return _PRIMITIVES[schema] if schema in _PRIMITIVES else self._of_name(schema, namespace)
        kind = schema["type"]
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(schema, kind, namespace)
        if kind == "array":
            return _array(self._reader(schema["items"], namespace))
        if kind == "map":
            return _map(self._reader(schema["values"], namespace))
        return self._reader(kind, namespace)

    def _of_name(self, name: str, namespace: str) -> Read:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self._named:
            raise PayloadError(f"no type {full}")

        def read(left: _Bytes) -> Any:  # noqa: ANN401 - any value
            return self._named[full](left)  # looked up now: a record may hold itself, whose reader was not made yet

        return read

    def _define(self, schema: Mapping[str, Any], kind: str, namespace: str) -> Read:
        name: str = schema["name"]
        own = name.rpartition(".")[0] or schema.get("namespace", namespace)
        full = name if "." in name or not own else f"{own}.{name}"
        if kind == "enum":
            read = _enum(schema["symbols"])
        elif kind == "fixed":
            size = int(schema["size"])
            read = lambda left: left.raw(size, "fixed")  # noqa: E731 - one of several readers
        else:
            self._named[full] = _undefined
            read = _record([(field["name"], self._reader(field["type"], own)) for field in schema["fields"]])
        self._named[full] = read
        return read


def _undefined(left: _Bytes) -> Any:  # noqa: ANN401, ARG001 - a reader
    raise PayloadError("a type that is not defined yet")


def _boolean(left: _Bytes) -> bool:
    byte = left.int8("boolean")
    if byte not in (0, 1):
        raise PayloadError(f"{byte} where a boolean was expected")
    return byte == 1


def _bytes(left: _Bytes) -> bytes:
    return left.raw(left.varlong("length"), "text or bytes")


def _text(left: _Bytes) -> str:
    try:
        return _bytes(left).decode()
    except UnicodeDecodeError as error:
        raise PayloadError(str(error)) from error


_PRIMITIVES: Mapping[str, Read] = {
    "null": lambda _: None,
    "boolean": _boolean,
    "int": lambda left: left.varlong("int"),
    "long": lambda left: left.varlong("long"),
    "float": lambda left: _FLOAT.unpack(left.raw(4, "float"))[0],
    "double": lambda left: _DOUBLE.unpack(left.raw(8, "double"))[0],
    "bytes": _bytes,
    "string": _text,
}


def _choice(left: _Bytes, count: int) -> int:
    index = left.varlong("choice")
    if not 0 <= index < count:
        raise PayloadError(f"choice {index} of {count}")
    return index


def _union(readers: list[Read]) -> Read:
    return lambda left: readers[_choice(left, len(readers))](left)


def _enum(symbols: list[str]) -> Read:
    return lambda left: symbols[_choice(left, len(symbols))]


def _record(fields: list[tuple[str, Read]]) -> Read:
    def read(left: _Bytes) -> dict[str, Any]:
        left.depth += 1
        if left.depth > _MOST_DEPTH:
            raise PayloadError("nested too deeply")
        value = {name: reader(left) for name, reader in fields}
        left.depth -= 1
        return value

    return read


def _blocks(left: _Bytes, add: Callable[[], None]) -> None:
    """Read the blocks of an array or map; a negative count stands before the block's size in bytes."""
    items = 0
    while count := left.varlong("items"):
        if count < 0:
            count = -count
            left.varlong("size of a block")
        items += count
        if items > left.position + left.remaining + _MOST_EMPTY:
            raise PayloadError(f"{items} items in {left.position + left.remaining} bytes")
        for _ in range(count):
            add()


def _array(item: Read) -> Read:
    def read(left: _Bytes) -> list[Any]:
        found: list[Any] = []
        _blocks(left, lambda: found.append(item(left)))
        return found

    return read


def _map(value: Read) -> Read:
    def read(left: _Bytes) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def add() -> None:
            name = _text(left)
            found[name] = value(left)

        _blocks(left, add)
        return found

    return read
