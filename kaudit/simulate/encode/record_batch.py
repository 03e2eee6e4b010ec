"""Record batches of magic 2 as clients and coordinators write them.

Source of the format: DefaultRecordBatch, DefaultRecord, EndTransactionMarker. Base offset and leader epoch are not
covered by the CRC: a leader sets them without touching the rest.
"""

import struct
from collections.abc import Sequence

from kaudit.formats.log.crc32c import crc32c
from kaudit.model.batch_fields import CONTROL_FLAG, NO_SEQUENCE, TRANSACTIONAL_FLAG

HEADER_SIZE = 61
_TAIL = struct.Struct(">hiqqqhii")
"""attributes, last offset delta, base and max timestamp, producer id and epoch, base sequence, record count."""
_HEAD = struct.Struct(">qiibI")
"""base offset, length, leader epoch, magic, crc."""
_PLACE = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_OVERHEAD = 12
_MAGIC = 2
_CLIENT_LEADER_EPOCH = -1
_MARKER_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
_MORE = 0x80


def varint(value: int) -> bytes:
    """Zigzag varint of a signed number."""
    rest = value << 1 if value >= 0 else (-value << 1) - 1
    if rest < _MORE:
        return _ONE_BYTE[rest]
    out = bytearray()
    while rest >= _MORE:
        out.append(rest & 0x7F | _MORE)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_ONE_BYTE = tuple(bytes([value]) for value in range(_MORE))
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
    return _HEAD.pack(0, 9 + len(body), _CLIENT_LEADER_EPOCH, _MAGIC, crc32c(body)) + body


def marker(producer_id: int, epoch: int, coordinator_epoch: int, timestamp: int, *, commit: bool) -> bytes:
    """Encode an end of transaction marker."""
    key, value = _MARKER_KEY.pack(0, int(commit)), _MARKER_VALUE.pack(0, coordinator_epoch)
    return batch(
        [record(0, 0, key, value)],
        (producer_id, epoch, NO_SEQUENCE),
        (timestamp, timestamp),
        transactional=True,
        control=True,
    )


def placed(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Return a batch as it lies in a log: at `base_offset`, written under `leader_epoch`."""
    return _PLACE.pack(base_offset) + data[8:_OVERHEAD] + _LEADER_EPOCH.pack(leader_epoch) + data[16:]
