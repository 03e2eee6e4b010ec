"""The parts of one record that an identity names, as bytes."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from kaudit.formats.byte_reader import varint
from kaudit.formats.log.legacy import LegacyRecord
from kaudit.formats.log.records import Header, Record
from kaudit.formats.payloads.json_values import MISSING, PayloadError, canonical, value_at
from kaudit.formats.payloads.schemas import Schemas
from kaudit.reading.identity.grammar import Identity, Of, Part

AnyRecord = Record | LegacyRecord
Decoder = Callable[[bytes], Any]
"""Bytes of a key or a value to Python's values. Raises PayloadError."""
_POSITIONS: Mapping[str, tuple[str, ...]] = {
    "postgresql": ("lsn",),
    "mysql": ("gtid", "file", "pos", "row"),
    "mariadb": ("gtid", "file", "pos", "row"),
    "sqlserver": ("commit_lsn", "change_lsn", "event_serial_no"),
    "db2": ("commit_lsn", "change_lsn"),
    "informix": ("commit_lsn", "change_lsn"),
    "oracle": ("scn", "commit_scn", "rs_id", "ssn", "redo_thread"),
    "mongodb": ("ts_ms", "ord"),
    "vitess": ("vgtid",),
    "cassandra": ("file", "pos"),
}
"""What names a place in the database's log, by `connector` (Debezium's io.debezium.connector.*.SourceInfo)."""
_CLOCKS = frozenset(("ts_ms", "ts_us", "ts_ns", "snapshot", "version", "name", "sequence"))
"""Of a connector not named there all of `source` counts but these: clocks, and what a restart changes."""


decode_payload: Decoder = Schemas().decode
"""Reads JSON, with Confluent's magic byte and schema id before it or not."""


class PartReader(Struct, frozen=True):
    """Takes the parts of an identity out of records; keys and values are decoded once for all parts, and only for paths."""

    identity: Identity
    decode_key: Decoder = decode_payload
    decode_value: Decoder = decode_payload

    def read(self, record: AnyRecord) -> bytes | None:
        """Return bytes that are equal for equal parts; None where the record lacks a part, or it cannot be read."""
        key, value = _Payload(record.key, self.decode_key), _Payload(record.value, self.decode_value)
        for choice in self.identity.choices:
            found = [_bytes_of(part, record, key, value) for part in choice]
            if None not in found:
                return b"".join(varint(len(content)) + content for content in found if content is not None)
        return None


class _Payload:
    """A key or a value, decoded when a path asks for it."""

    __slots__ = ("_content", "_decode", "_value")

    def __init__(self, content: bytes | None, decode: Decoder) -> None:
        self._content = content
        self._decode = decode
        self._value: Any = self

    def at(self, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - any value
        """Return what lies at the path; MISSING where there is nothing."""
        if self._value is self:
            self._value = MISSING
            if self._content is not None:
                try:
                    self._value = self._decode(self._content)
                except PayloadError:
                    self._value = MISSING
        return value_at(self._value, path)


def _bytes_of(part: Part, record: AnyRecord, key: _Payload, value: _Payload) -> bytes | None:
    if part.of in _ENCODED:
        return _ENCODED[part.of](record)
    if part.of is Of.HEADER:
        named = _name(part.name)
        return next((_sized(each.value) for each in reversed(headers_of(record)) if each.key == named), None)
    found = (key if part.of is Of.KEY_PATH else value).at(part.path)
    if part.of is Of.DEBEZIUM:
        found = position_of(found)
    elif part.of is Of.SNAPSHOT_ROW:
        found = found.get("after", MISSING) if isinstance(found, dict) and found.get("op") == "r" else MISSING
    try:
        return None if found is MISSING else canonical(found)
    except PayloadError:
        return None


def position_of(source: Any) -> Any:  # noqa: ANN401 - any value
    """Return what of `source` in a change event is its place in the database's log, by name; MISSING without any."""
    if not isinstance(source, dict):
        return MISSING
    names = _POSITIONS.get(str(source.get("connector")))
    if names is None:
        found = {name: value for name, value in source.items() if name not in _CLOCKS}
        return found or MISSING
    found = {name: source[name] for name in names if source.get(name) is not None}
    return found or MISSING


@lru_cache(maxsize=64)
def _name(name: str) -> bytes:
    return name.encode()


def encoded_key(record: AnyRecord) -> bytes:
    """Return the key as DefaultRecord writes it, its length before it."""
    return _sized(record.key)


def headers_of(record: AnyRecord) -> tuple[Header, ...]:
    """Return the headers; messages of magic 0 and 1 have none."""
    return record.headers if isinstance(record, Record) else ()


def encoded_headers(record: AnyRecord) -> bytes:
    """Return the headers as DefaultRecord writes them."""
    headers = headers_of(record)
    return varint(len(headers)) + b"".join(_sized(each.key) + _sized(each.value) for each in headers)


def timestamp_of(record: AnyRecord) -> int:
    """Return the timestamp in ms, -1 where there is none."""
    return -1 if record.timestamp is None else record.timestamp


def _sized(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


_ENCODED: dict[Of, Callable[[AnyRecord], bytes]] = {
    Of.KEY: encoded_key,
    Of.VALUE: lambda record: _sized(record.value),
    Of.HEADERS: encoded_headers,
    Of.TIMESTAMP: lambda record: timestamp_of(record).to_bytes(8, "big", signed=True),
}
"""Parts that every record has, as a batch of magic 2 holds them."""


def content_of(record: AnyRecord, parts: tuple[Part, ...]) -> bytes:
    """Return those of key, value and headers that are among the parts, as a batch of magic 2 holds them."""
    return b"".join(_ENCODED[part.of](record) for part in parts if part.of is not Of.TIMESTAMP)
