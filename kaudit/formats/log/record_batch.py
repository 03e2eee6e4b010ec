"""Headers of record batches: walking, decoding to columns, CRC.

Formats: DefaultRecordBatch (magic 2, 61-byte header) and LegacyRecord (magic 0 and 1) of Apache Kafka.
"""

import struct
import zlib
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.formats.errors import WireError
from kaudit.formats.log.control import parse_marker
from kaudit.formats.log.crc32c import crc32c
from kaudit.model.batch import BATCH, Batches, empty_batches
from kaudit.model.batch_fields import (
    CODEC_MASK,
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_CONTROL_TYPE,
    NO_COORDINATOR_EPOCH,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    UNDECODED_CONTROL,
)

LOG_OVERHEAD = 12
"""Bytes of offset and length in front of every batch; the length field counts what follows them."""
LENGTH_OFFSET = 8
MAGIC_OFFSET = 16
CRC_OFFSET = 17
ATTRIBUTES_OFFSET = 21
HEADER_SIZE = 61
MIN_LENGTH_V2 = HEADER_SIZE - LOG_OVERHEAD
MIN_LENGTH_LEGACY = 14
"""crc 4, magic 1, attributes 1, key length 4, value length 4 (magic 0)."""
PREFIX_SIZE = MAGIC_OFFSET + 1
"""Bytes needed to know a batch's length and magic."""
CURRENT_MAGIC = 2

WIRE_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
assert WIRE_HEADER.itemsize == HEADER_SIZE
Headers = NDArray[Any]
"""Rows of WIRE_HEADER."""

_LENGTH_AND_MAGIC = struct.Struct(">i4xB")
_LEGACY = struct.Struct(">qiIbb")  # offset, size, crc, magic, attributes
_TIMESTAMP = struct.Struct(">q")
_COPIED = tuple(name for name in WIRE_HEADER.names or () if name != "batch_length")
_LEGACY_ROW = tuple(name for name in BATCH.names or () if name not in ("control_type", "coordinator_epoch"))

# A marker as brokers write it: one uncompressed record, 4-byte key, 6-byte value, no headers.
_MARKER_SIZE = 78
_MARKER = np.dtype(
    [
        (
            "fixed",
            ">u8",
        ),  # length, attributes, timestamp delta, offset delta, key length, key version 2, type's first byte
        ("type", "u1"),
        ("value_length", "u1"),
        ("value_version", "u1"),
        ("value_version_low", "u1"),
        ("coordinator_epoch", ">i4"),
    ]
)
_MARKER_BYTES = np.dtype(f"V{_MARKER.itemsize}")
_MARKER_MASK = 0xFFFFFFFF_FF8000FF
"""Of the key version only the sign matters."""
_MARKER_FIXED = 0x20000000_08000000
"""Zigzag of 16 bytes, zeros, zigzag of 4 bytes, a type below 256."""


class Controls(Struct, frozen=True):
    """What the records of control batches say: rows of the batches with `indexes` among others."""

    indexes: NDArray[np.intp]
    types: NDArray[np.int8]
    coordinator_epochs: NDArray[np.int32]


_NO_CONTROLS = Controls(
    np.empty(0, dtype=np.intp), np.empty(0, dtype=BATCH["control_type"]), np.empty(0, dtype=BATCH["coordinator_epoch"])
)


class Walk(Struct, frozen=True):
    """Where batches start in a buffer, and where and why the walk stopped.

    `sound` is False if the bytes at `stop` cannot be a batch header; True if the buffer just ends before the batch does.
    """

    positions: NDArray[np.int64]
    stop: int
    sound: bool


def plausible_length(magic: int, length: int) -> bool:
    """Tell whether a batch of this magic can have this length field."""
    if magic == CURRENT_MAGIC:
        return length >= MIN_LENGTH_V2
    return magic in (0, 1) and length >= MIN_LENGTH_LEGACY


def walk(buffer: memoryview, start: int, end: int, last_start: int) -> Walk:
    """Follow the length fields from `start`; batches start at `last_start` - 1 at most and end at `end` at most."""
    unpack = _LENGTH_AND_MAGIC.unpack_from
    positions: list[int] = []
    append = positions.append
    lengths = buffer[LENGTH_OFFSET:]
    at, sound = start, True
    limit = min(last_start, end - MAGIC_OFFSET)
    while at < limit:
        length, magic = unpack(lengths, at)
        if (magic != CURRENT_MAGIC or length < MIN_LENGTH_V2) and not plausible_length(magic, length):
            sound = False
            break
        append(at)
        at += LOG_OVERHEAD + length
    if positions and at > end:
        # asked once, not for each batch: what is behind the end of the buffer is behind `limit` too
        at = positions.pop()
    return Walk(np.array(positions, dtype=np.int64), at, sound)


def decode_headers(buffer: memoryview, positions: NDArray[np.int64], file_position: int) -> Batches:
    """Decode the headers at `positions` of `buffer`, whose first byte lies at `file_position` of the file.

    Every batch must lie in the buffer whole; the decoded control type of a marker needs its record.
    """
    if len(positions) == 0:
        return empty_batches()
    headers = gather_headers(buffer, positions)
    batches = header_columns(headers, positions + file_position, decode_controls(buffer, positions, headers))
    legacy = np.flatnonzero(headers["magic"] != CURRENT_MAGIC)
    for index in legacy.tolist():
        row = _legacy_row(buffer, int(positions[index]), file_position)
        for name, value in zip(_LEGACY_ROW, row, strict=True):
            batches[name][index] = value
    return batches


def gather_headers(buffer: memoryview, positions: NDArray[np.int64]) -> Headers:
    """Copy the 61 bytes at each of `positions` out of `buffer`."""
    # Legacy messages may be shorter than 61 bytes: gather only from where 61 bytes exist.
    padded = _readable(buffer, int(positions[-1]) + HEADER_SIZE)
    windows: NDArray[Any] = np.ndarray((len(padded) - HEADER_SIZE + 1,), np.dtype("V61"), padded, 0, (1,))
    headers: Headers = windows[positions].view(WIRE_HEADER)
    return headers


def header_columns(headers: Headers, file_positions: NDArray[np.int64], controls: Controls) -> Batches:
    """Columns of headers of magic 2 that lie at these positions of the file."""
    columns = {name: headers[name].astype(BATCH[name]) for name in _COPIED}
    columns["position"] = file_positions
    columns["size"] = headers["batch_length"].astype(np.int64) + LOG_OVERHEAD
    if len(controls.indexes):
        columns["control_type"] = np.full(len(headers), NO_CONTROL_TYPE, dtype=BATCH["control_type"])
        columns["coordinator_epoch"] = np.full(len(headers), NO_COORDINATOR_EPOCH, dtype=BATCH["coordinator_epoch"])
        columns["control_type"][controls.indexes] = controls.types
        columns["coordinator_epoch"][controls.indexes] = controls.coordinator_epochs
    return Batches(columns)


def batch_crc_holds(buffer: memoryview, at: int, size: int) -> bool:
    """Tell whether the batch of `size` bytes at `at` matches its CRC (CRC-32C for magic 2, CRC-32 before)."""
    if buffer[at + MAGIC_OFFSET] == CURRENT_MAGIC:
        stored = int.from_bytes(buffer[at + CRC_OFFSET : at + ATTRIBUTES_OFFSET], "big")
        return bool(crc32c(buffer[at + ATTRIBUTES_OFFSET : at + size]) == stored)
    stored = int.from_bytes(buffer[at + LOG_OVERHEAD : at + MAGIC_OFFSET], "big")
    return zlib.crc32(buffer[at + MAGIC_OFFSET : at + size]) == stored


def _readable(buffer: memoryview, size: int) -> memoryview:
    if len(buffer) >= size:
        return buffer
    return memoryview(bytes(buffer) + bytes(size - len(buffer)))


def _legacy_row(buffer: memoryview, at: int, file_position: int) -> tuple[int, ...]:
    offset, size, crc, magic, attributes = _LEGACY.unpack_from(buffer, at)
    # MessageSet timestamps exist from magic 1 on
    timestamp = NO_TIMESTAMP if magic == 0 else _TIMESTAMP.unpack_from(buffer, at + LOG_OVERHEAD + 6)[0]
    kept = attributes & (CODEC_MASK | LOG_APPEND_TIME_FLAG)
    count = 1 if attributes & CODEC_MASK == 0 else -1
    return (
        at + file_position,
        size + LOG_OVERHEAD,
        offset,
        0,
        NO_LEADER_EPOCH,
        magic,
        crc,
        kept,
        timestamp,
        timestamp,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        count,
    )


def decode_controls(buffer: memoryview, positions: NDArray[np.int64], headers: Headers) -> Controls:
    """Decode the records of the control batches among the batches with these headers."""
    flags = headers.view(np.uint8).reshape(-1, HEADER_SIZE)[:, ATTRIBUTES_OFFSET + 1]
    indexes = (flags & CONTROL_FLAG).nonzero()[0]
    if not len(indexes):
        return _NO_CONTROLS
    indexes = indexes[headers["magic"][indexes] == CURRENT_MAGIC]
    types = np.full(len(indexes), NO_CONTROL_TYPE, dtype=BATCH["control_type"])
    epochs = np.full(len(indexes), NO_COORDINATOR_EPOCH, dtype=BATCH["coordinator_epoch"])
    controls = Controls(indexes, types, epochs)
    at, lengths = positions[indexes], headers["batch_length"][indexes]
    usual = np.flatnonzero((lengths == _MARKER_SIZE - LOG_OVERHEAD) & (flags[indexes] & CODEC_MASK == 0))
    usual = usual[headers["record_count"][indexes[usual]] == 1]
    decoded = np.zeros(len(indexes), dtype=bool)
    if len(usual):
        raw: NDArray[Any] = np.ndarray((len(buffer) - _MARKER.itemsize + 1,), _MARKER_BYTES, buffer, 0, (1,))
        records = raw[at[usual] + HEADER_SIZE].view(_MARKER)
        plain = (records["fixed"] & _MARKER_MASK == _MARKER_FIXED) & (records["type"] < 7)
        plain &= (records["value_length"] == 12) & (records["value_version"] & 0x80 == 0)
        good = usual[plain]
        types[good] = records["type"][plain]
        epochs[good] = records["coordinator_epoch"][plain]
        decoded[good] = True
    for index in np.flatnonzero(~decoded).tolist():
        start = int(at[index])
        try:
            marker = parse_marker(buffer[start : start + LOG_OVERHEAD + int(lengths[index])])
        except WireError:
            types[index] = UNDECODED_CONTROL
            continue
        if marker is not None:
            types[index] = int(marker.type)
            if marker.coordinator_epoch is not None:
                epochs[index] = marker.coordinator_epoch
    return controls
