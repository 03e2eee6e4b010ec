"""Record batches of magic 2 as clients and coordinators write them.

Source of the format: DefaultRecordBatch, DefaultRecord, EndTransactionMarker. Base offset and leader epoch are not
covered by the CRC: a leader sets them without touching the rest.

Records of __transaction_state as coordinators write them.

Source of the format: TransactionLogKey.json, TransactionLogValue.json (version 1 is the flexible one of 4.0+).
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from kaudit.broker.response import TopicPartition
from kaudit.crc import crc32c
from kaudit.formats.byte_reader import unsigned_varint, varint
from kaudit.formats.internal_topics.transaction_state import (
    KEY_VERSION,
    TAG_CLIENT_TRANSACTION_VERSION,
    VALUE_HEAD,
    VALUE_TIMES,
    VALUE_VERSION_FIXED,
    VALUE_VERSION_FLEXIBLE,
)
from kaudit.formats.log.batch_header import (
    ATTRIBUTES_OFFSET,
    CURRENT_MAGIC,
    HEADER,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
)
from kaudit.formats.log.control import KEY, VALUE
from kaudit.model.batch_fields import (
    ABORT_MARKER,
    COMMIT_MARKER,
    CONTROL_FLAG,
    NO_LEADER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)
from kaudit.model.grouping import grouped

_VALUE_HEAD = VALUE_HEAD.struct()
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
    by_topic = grouped(value.partitions)
    if by_topic:
        body = struct.pack(">i", len(by_topic))
        for topic, numbers in by_topic.items():
            body += _string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    else:
        body = struct.pack(">i", -1)
    return _head(VALUE_VERSION_FIXED, value) + body + _TIMES.pack(value.updated_at, value.started_at)


def flexible_value(value: TransactionValue) -> bytes:
    """Encode a value of version 1, with the tag of the client's transaction version as releases since 4.0 write it."""
    by_topic = grouped(value.partitions)
    body = b"\0"
    if by_topic:
        body = unsigned_varint(len(by_topic) + 1)
        for topic, numbers in by_topic.items():
            name = topic.encode()
            body += unsigned_varint(len(name) + 1) + name
            body += unsigned_varint(len(numbers) + 1) + struct.pack(f">{len(numbers)}i", *numbers) + b"\0"
    version2 = struct.pack(">h", 2)
    tags = (
        unsigned_varint(1) + unsigned_varint(TAG_CLIENT_TRANSACTION_VERSION) + unsigned_varint(len(version2)) + version2
    )
    return _head(VALUE_VERSION_FLEXIBLE, value) + body + _TIMES.pack(value.updated_at, value.started_at) + tags


def _head(version: int, value: TransactionValue) -> bytes:
    return _VALUE_HEAD.pack(version, value.producer_id, value.producer_epoch, value.timeout_ms, value.status)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


_HEAD = HEADER.struct_between("base_offset", "crc")
_TAIL = HEADER.struct_between("attributes", "record_count")
_BASE_OFFSET = HEADER.struct("base_offset")
_LEADER_EPOCH = HEADER.struct("leader_epoch")
_MARKER_KEY = KEY.struct()
_MARKER_VALUE = VALUE.struct()
_LENGTH_WITHOUT_BODY = ATTRIBUTES_OFFSET - LOG_OVERHEAD


_VARINTS = tuple(varint(value) for value in range(4096))


def _small(value: int) -> bytes:
    return _VARINTS[value] if 0 <= value < 4096 else varint(value)


def _bytes(content: bytes | None) -> bytes:
    return b"\x01" if content is None else _small(len(content)) + content


def record(offset_delta: int, timestamp_delta: int, key: bytes | None, value: bytes | None) -> bytes:
    """Encode one record without headers."""
    body = b"\0" + _small(timestamp_delta) + _small(offset_delta) + _bytes(key) + _bytes(value) + b"\0"
    return _small(len(body)) + body


def batch(
    records: Sequence[bytes],
    producer: tuple[int, int, int],
    timestamps: tuple[int, int],
    *,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """Encode a batch around encoded `records` as a client sends it: at offset 0, without a leader epoch.

    `producer` is producer id, epoch and base sequence (-1 each for none), `timestamps` the first and greatest, in ms.
    """
    attributes = (TRANSACTIONAL_FLAG if transactional else 0) | (CONTROL_FLAG if control else 0)
    count = len(records)
    body = _TAIL.pack(attributes, count - 1, *timestamps, *producer, count) + b"".join(records)
    return _HEAD.pack(0, _LENGTH_WITHOUT_BODY + len(body), NO_LEADER_EPOCH, CURRENT_MAGIC, crc32c(body)) + body


def marker(producer_id: int, epoch: int, coordinator_epoch: int, timestamp: int, *, commit: bool) -> bytes:
    """Encode an end of transaction marker."""
    key = _MARKER_KEY.pack(0, COMMIT_MARKER if commit else ABORT_MARKER)
    value = _MARKER_VALUE.pack(0, coordinator_epoch)
    return batch(
        [record(0, 0, key, value)],
        (producer_id, epoch, NO_SEQUENCE),
        (timestamp, timestamp),
        transactional=True,
        control=True,
    )


def placed(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Return a batch as it lies in a log: at `base_offset`, written under `leader_epoch`."""
    return b"".join(
        (
            _BASE_OFFSET.pack(base_offset),
            data[LENGTH_OFFSET:LOG_OVERHEAD],
            _LEADER_EPOCH.pack(leader_epoch),
            data[MAGIC_OFFSET:],
        )
    )
