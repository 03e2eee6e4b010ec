"""Records of __transaction_state as coordinators write them.

Source of the format: TransactionLogKey.json, TransactionLogValue.json (version 1 is the flexible one of 4.0+).
"""

import struct
from typing import NamedTuple

from kaudit.broker.response import TopicPartition
from kaudit.formats.byte_reader import unsigned_varint
from kaudit.formats.internal_topics.transaction_state import (
    KEY_VERSION,
    TAG_CLIENT_TRANSACTION_VERSION,
    VALUE_HEAD,
    VALUE_TIMES,
    VALUE_VERSION_FIXED,
    VALUE_VERSION_FLEXIBLE,
)

_HEAD = VALUE_HEAD.struct()
_TIMES = VALUE_TIMES.struct()


class TransactionValue(NamedTuple):
    """What a coordinator writes about a transactional id; times in ms since 1970, `status` its stored number."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: int
    partitions: tuple[TopicPartition, ...]
    updated_at: int
    started_at: int
    last_epoch: int


def key(transactional_id: str) -> bytes:
    """Encode the key: version 0 and the id."""
    return struct.pack(">h", KEY_VERSION) + _string(transactional_id)


def fixed_value(value: TransactionValue) -> bytes:
    """Encode a value of version 0; no partitions are a null array."""
    grouped = _grouped(value.partitions)
    if grouped:
        body = struct.pack(">i", len(grouped))
        for topic, numbers in grouped.items():
            body += _string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    else:
        body = struct.pack(">i", -1)
    return _head(VALUE_VERSION_FIXED, value) + body + _TIMES.pack(value.updated_at, value.started_at)


def flexible_value(value: TransactionValue) -> bytes:
    """Encode a value of version 1, with the tag of the client's transaction version as releases since 4.0 write it."""
    grouped = _grouped(value.partitions)
    body = b"\0"
    if grouped:
        body = unsigned_varint(len(grouped) + 1)
        for topic, numbers in grouped.items():
            name = topic.encode()
            body += unsigned_varint(len(name) + 1) + name
            body += unsigned_varint(len(numbers) + 1) + struct.pack(f">{len(numbers)}i", *numbers) + b"\0"
    version2 = struct.pack(">h", 2)
    tags = (
        unsigned_varint(1) + unsigned_varint(TAG_CLIENT_TRANSACTION_VERSION) + unsigned_varint(len(version2)) + version2
    )
    return _head(VALUE_VERSION_FLEXIBLE, value) + body + _TIMES.pack(value.updated_at, value.started_at) + tags


def _head(version: int, value: TransactionValue) -> bytes:
    return _HEAD.pack(version, value.producer_id, value.producer_epoch, value.timeout_ms, value.status)


def _grouped(partitions: tuple[TopicPartition, ...]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, number in partitions:
        grouped.setdefault(topic, []).append(number)
    return grouped


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw
