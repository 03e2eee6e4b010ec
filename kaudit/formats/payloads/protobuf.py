"""Protobuf messages by a .proto file (proto2 and proto3), as Python's values: what paths of identities lead into.

A message is a dict by field name; fields that are not there are missing, as is what the file does not know. Enums are numbers.
"""

import re
import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from kaudit.formats.byte_reader import Reader, unzigzag
from kaudit.formats.payloads.json_values import PayloadError

_WORDS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[\w.]+|[{}<>\[\]();=,-]', re.DOTALL)
_FIXED = {
    "fixed32": struct.Struct("<I"),
    "sfixed32": struct.Struct("<i"),
    "float": struct.Struct("<f"),
    "fixed64": struct.Struct("<Q"),
    "sfixed64": struct.Struct("<q"),
    "double": struct.Struct("<d"),
}
_SIZED = 2
"""The wire type of what its length stands before."""
_SIZES = {1: 8, 5: 4}
"""Bytes of the wire types of numbers of a fixed size."""
_WIRES = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool"), 0),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), 1),
    **dict.fromkeys(("string", "bytes"), _SIZED),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), 5),
}
_LABELS = ("optional", "required", "repeated")
_MOST_DEPTH = 64


class _Field(NamedTuple):
    """`type`: a scalar's name, or that of a message or enum as written; `entry`: the message that a map's pairs are."""

    name: str
    type: str
    repeated: bool
    entry: "_Message | None" = None


class _Message(NamedTuple):
    full_name: str
    fields: dict[int, _Field]
    nested: list["_Message"]


class ProtoFile:
    """A .proto file, ready to read messages of its types."""

    def __init__(self, text: str) -> None:
        """Parse a file. Raises PayloadError where it is none."""
        self._text = text
        self._messages: list[_Message] = []
        self._types: dict[str, _Message | None] = {}
        """By full name; None: an enum."""
        words = [word for word in _WORDS.findall(text) if not word.startswith(("//", "/*"))]
        try:
            self._parse(iter(words))
        except (StopIteration, ValueError, RuntimeError) as error:
            raise PayloadError(
                "no .proto file: it ends inside a definition, or has a word that is not expected"
            ) from error
        if not self._messages:
            raise PayloadError("no .proto file: it defines no message")

    def __reduce__(self) -> tuple[type["ProtoFile"], tuple[str]]:
        return ProtoFile, (self._text,)

    def decode(self, data: bytes, indexes: list[int]) -> dict[str, Any]:
        """Return the message that the indexes lead to, as Confluent's serializer writes them. Raises PayloadError."""
        message, siblings = None, self._messages
        for index in indexes or [0]:
            if not 0 <= index < len(siblings):
                raise PayloadError(f"the schema has no message number {index}")
            message = siblings[index]
            siblings = message.nested
        assert message is not None
        return self._decode(data, message, 0)

    def _parse(self, words: Iterator[str]) -> None:
        package = ""
        for word in words:
            if word == "package":
                package = next(words)
            elif word == "message":
                self._messages.append(self._message(words, package))
            elif word == "enum":
                self._types[".".join(filter(None, (package, next(words))))] = None
                _skip_block(words)
            elif word in ("service", "extend"):
                _skip_block(words)

    def _message(self, words: Iterator[str], scope: str) -> _Message:
        name = ".".join(filter(None, (scope, next(words))))
        message = _Message(name, {}, [])
        self._types[name] = message
        if next(words) != "{":
            raise ValueError(name)
        self._body(words, message)
        return message

    def _body(self, words: Iterator[str], message: _Message) -> None:
        for word in words:
            if word == "}":
                return
            if word == "message":
                message.nested.append(self._message(words, message.full_name))
            elif word == "enum":
                self._types[f"{message.full_name}.{next(words)}"] = None
                _skip_block(words)
            elif word == "oneof":
                next(words)
                if next(words) != "{":
                    raise ValueError("oneof")
                self._body(words, message)
            elif word in ("option", "reserved", "extensions"):
                _skip_statement(words)
            elif word == "extend":
                _skip_block(words)
            elif word != ";":
                _field(words, word, message)
        raise ValueError(f"{message.full_name} has no end")

    def _decode(self, data: bytes, message: _Message, depth: int) -> dict[str, Any]:
        if depth > _MOST_DEPTH:
            raise PayloadError("nested too deeply")
        found: dict[str, Any] = {}
        left = Reader(data)
        while left.remaining:
            tag = left.unsigned_varint("tag")
            raw = _raw(left, tag & 7)
            field = message.fields.get(tag >> 3)
            if field is None:
                continue
            values = self._values(field, tag & 7, raw, message, depth)
            if field.entry is not None:
                pairs = ((str(pair.get("key", "")), pair.get("value")) for pair in values)
                found.setdefault(field.name, {}).update(pairs)
            elif field.repeated:
                found.setdefault(field.name, []).extend(values)
            elif values:
                found[field.name] = values[-1]
        return found

    def _values(self, field: _Field, wire: int, raw: Any, message: _Message, depth: int) -> list[Any]:  # noqa: ANN401 - as _raw returns it
        """Return the value, or the values of a packed field; of a type that another file defines as it lies there."""
        expected, named = _WIRES.get(field.type), field.entry
        if expected is None or named is not None:
            scopes = [scope for scope in _scopes(field.type, message) if scope in self._types]
            if named is None and not scopes:
                return [raw]
            named = self._types[scopes[0]] if named is None else named
            expected = 0 if named is None else _SIZED
        if wire == _SIZED != expected:
            left, values = Reader(raw), []
            while left.remaining:
                values.append(_scalar(field.type, _raw(left, expected)))
            return values
        if wire != expected:
            raise PayloadError(f"{field.name} has wire type {wire}")
        return [_scalar(field.type, raw) if named is None else self._decode(raw, named, depth + 1)]


def _scopes(name: str, message: _Message) -> Iterator[str]:
    """Yield the full names that a type's name may stand for in a message, the innermost first."""
    if name.startswith("."):
        yield name[1:]
        return
    scope = message.full_name
    while scope:
        yield f"{scope}.{name}"
        scope = scope.rpartition(".")[0]
    yield name


def _field(words: Iterator[str], first: str, message: _Message) -> None:
    kind, entry = next(words) if first in _LABELS else first, None
    if kind == "map":
        less, key, _, value, _ = islice(words, 5)
        if less != "<":
            raise ValueError(kind)
        types = {1: _Field("key", key, repeated=False), 2: _Field("value", value, repeated=False)}
        entry = _Message(message.full_name, types, [])
    name = next(words)
    if next(words) != "=":
        raise ValueError(name)
    message.fields[int(next(words), 0)] = _Field(name, kind, first == "repeated", entry)
    _skip_statement(words)


def _skip_statement(words: Iterator[str]) -> None:
    depth = 0
    for word in words:
        depth += (word == "{") - (word == "}")
        if word == ";" and not depth:
            return


def _skip_block(words: Iterator[str]) -> None:
    depth = 0
    for word in words:
        depth += (word == "{") - (word == "}")
        if word == "}" and not depth:
            return


def _raw(left: Reader, wire: int) -> int | bytes:
    if wire == 0:
        return left.unsigned_varlong("number")
    if wire in _SIZES:
        return left.raw(_SIZES[wire], "number")
    if wire != _SIZED:
        raise PayloadError(f"wire type {wire} before byte {left.position}")
    return left.raw(left.unsigned_varlong("length"), "field")


def _scalar(kind: str, raw: Any) -> Any:  # noqa: ANN401 - a number of a varint, or bytes
    if kind in _FIXED:
        return _FIXED[kind].unpack(raw)[0]
    if kind == "string":
        return _text(raw)
    if kind in ("sint32", "sint64"):
        return unzigzag(raw)
    if kind == "bool":
        return raw != 0
    if kind in ("bytes", "uint32", "uint64"):
        return raw
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise PayloadError(str(error)) from error
