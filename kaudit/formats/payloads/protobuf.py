"""Protobuf messages by a .proto file (proto2 and proto3), as Python's values: what paths of identities lead into.

A message is a dict by field name; fields that are not there are missing, as is what the file does not know. Enums are numbers.
"""

import re
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

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
_VARINTS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool")
_LABELS = ("optional", "required", "repeated")
_MOST_DEPTH = 64


class _Field(NamedTuple):
    """`type`: a scalar's name, or that of a message or enum as written; `key`: of a map the type of its keys."""

    name: str
    type: str
    repeated: bool
    key: str = ""


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
        self._by_name: dict[str, _Message] = {}
        self._enums: set[str] = set()
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
                self._enums.add(".".join(filter(None, (package, next(words)))))
                _skip_block(words)
            elif word in ("service", "extend"):
                _skip_block(words)

    def _message(self, words: Iterator[str], scope: str) -> _Message:
        name = ".".join(filter(None, (scope, next(words))))
        message = _Message(name, {}, [])
        self._by_name[name] = message
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
                self._enums.add(f"{message.full_name}.{next(words)}")
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
        at = 0
        while at < len(data):
            tag, at = _varint(data, at)
            number, wire = tag >> 3, tag & 7
            raw, at = _raw(data, at, wire)
            field = message.fields.get(number)
            if field is not None:
                self._add(found, field, (wire, raw), message, depth)
        return found

    def _add(self, found: dict[str, Any], field: _Field, value: tuple[int, Any], message: _Message, depth: int) -> None:
        if field.key:
            if value[0] != 2:
                raise PayloadError(f"{field.name} has wire type {value[0]}")
            entry = _Message(
                message.full_name, {1: _Field("key", field.key, False), 2: _Field("value", field.type, False)}, []
            )
            pair = self._decode(value[1], entry, depth + 1)
            found.setdefault(field.name, {})[str(pair.get("key", ""))] = pair.get("value")
            return
        values = self._values(field, value, message, depth)
        if field.repeated:
            found.setdefault(field.name, []).extend(values)
        elif values:
            found[field.name] = values[-1]

    def _values(self, field: _Field, value: tuple[int, Any], message: _Message, depth: int) -> list[Any]:
        """Return the value, or the values of a packed field."""
        wire, raw = value
        if field.type in ("string", "bytes"):
            if wire != 2:
                raise PayloadError(f"{field.name} has wire type {wire}")
            return [raw if field.type == "bytes" else _text(raw)]
        is_message = field.type not in _FIXED and field.type not in _VARINTS and self._is_message(field.type, message)
        if is_message:
            if wire != 2:
                raise PayloadError(f"{field.name} has wire type {wire}")
            return [self._decode(raw, self._resolved(field.type, message), depth + 1)]
        if wire != 2:
            return [_scalar(field.type, raw)]
        values, at = [], 0
        inner = 0 if field.type not in _FIXED else 5 if _FIXED[field.type].size == 4 else 1
        while at < len(raw):
            one, at = _raw(raw, at, inner)
            values.append(_scalar(field.type, one))
        return values

    def _is_message(self, name: str, message: _Message) -> bool:
        return not any(scoped in self._enums for scoped in _scopes(name, message)) and any(
            scoped in self._by_name for scoped in _scopes(name, message)
        )

    def _resolved(self, name: str, message: _Message) -> _Message:
        return next(self._by_name[scoped] for scoped in _scopes(name, message) if scoped in self._by_name)


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
    repeated, kind, key = first == "repeated", first, ""
    if first in _LABELS:
        kind = next(words)
    if kind == "map":
        if next(words) != "<":
            raise ValueError(kind)
        key = next(words)
        next(words)
        kind = next(words)
        next(words)
    name = next(words)
    if next(words) != "=":
        raise ValueError(name)
    message.fields[int(next(words), 0)] = _Field(name, kind, repeated, key)
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


def _varint(data: bytes, at: int) -> tuple[int, int]:
    raw = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise PayloadError(f"a number without end at byte {at}")


def _raw(data: bytes, at: int, wire: int) -> tuple[Any, int]:
    if wire == 0:
        return _varint(data, at)
    if wire == 2:
        size, at = _varint(data, at)
    elif wire in (1, 5):
        size = 8 if wire == 1 else 4
    else:
        raise PayloadError(f"wire type {wire} at byte {at}")
    if size > len(data) - at:
        raise PayloadError(f"{size} bytes wanted at byte {at} of {len(data)}")
    return data[at : at + size], at + size


def _scalar(kind: str, raw: Any) -> Any:  # noqa: ANN401 - a number of a varint, or bytes
    if kind in _FIXED:
        if not isinstance(raw, bytes) or len(raw) != _FIXED[kind].size:
            raise PayloadError(f"{kind} has another wire type")
        return _FIXED[kind].unpack(raw)[0]
    if not isinstance(raw, int):
        raise PayloadError(f"{kind} has another wire type")
    if kind in ("sint32", "sint64"):
        return (raw >> 1) ^ -(raw & 1)
    if kind == "bool":
        return raw != 0
    if kind in ("uint32", "uint64"):
        return raw
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise PayloadError(str(error)) from error
