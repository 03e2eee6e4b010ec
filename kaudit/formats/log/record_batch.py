"""Finding the batches of a buffer, their headers as columns, their CRCs. Where the fields lie: batch_header.py."""

import zlib
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.crc import crc32c
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    CURRENT_MAGIC,
    FLAGS_OFFSET,
    HEADER,
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MESSAGE_V0,
    MESSAGE_V1,
    MIN_LENGTH_V2,
    plausible_length,
)
from kaudit.formats.log.control import (
    USUAL_MARKER,
    USUAL_MARKER_BYTES,
    USUAL_MARKER_LENGTH,
    is_usual_marker,
    parse_marker,
)
from kaudit.model.batch import BATCH, BATCH_NAMES, Batches, batches_of, empty_batches
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

Headers = NDArray[Any]
"""Rows of HEADER_DTYPE, shape (n,)."""

HEADER_DTYPE = np.dtype(HEADER.descr)
"""The header of magic 2 as it lies in a file: 61 bytes, big-endian."""
HEADER_BYTES = np.dtype((np.void, HEADER_SIZE))
"""The header as one item, which numpy copies at once, not field by field."""
_LENGTH = np.dtype(HEADER.numpy_type("batch_length"))
_LENGTH_AND_MAGIC = HEADER.struct("batch_length", "magic")
_MESSAGE = MESSAGE_V0.struct("offset", "message_size", "crc", "magic", "attributes")
_TIMESTAMP = MESSAGE_V1.struct("timestamp")
_COPIED = tuple(name for name in HEADER.names if name in BATCH_NAMES)
"""The fields of the header that are columns of Batches under the same name."""


class Controls(Struct, frozen=True):
    """Decoded records of control batches, shape (m,) each; `indexes` are the indexes of those batches."""

    indexes: NDArray[np.intp]
    types: NDArray[np.int8]
    coordinator_epochs: NDArray[np.int32]


_NO_CONTROLS = Controls(
    np.empty(0, dtype=np.intp), np.empty(0, dtype=BATCH["control_type"]), np.empty(0, dtype=BATCH["coordinator_epoch"])
)


class Walk(Struct, frozen=True):
    """Starts of batches in a buffer (int64, shape (n,), bytes, ascending), and where the walk stopped.

    `valid` is False if the bytes at `stop` cannot be a batch header; True if the buffer just ends before the batch does.
    """

    positions: NDArray[np.int64]
    stop: int
    valid: bool


def walk(buffer: memoryview, start: int, end: int, last_start: int) -> Walk:
    """Follow the length fields from `start`; batches start at `last_start` - 1 at most and end at `end` at most."""
    unpack = _LENGTH_AND_MAGIC.unpack_from
    positions: list[int] = []
    append = positions.append
    lengths = buffer[LENGTH_OFFSET:]
    at, valid = start, True
    limit = min(last_start, end - MAGIC_OFFSET)
    while at < limit:
        length, magic = unpack(lengths, at)
        if (magic != CURRENT_MAGIC or length < MIN_LENGTH_V2) and not plausible_length(magic, length):
            valid = False
            break
        append(at)
        at += LOG_OVERHEAD + length
    if positions and at > end:
        # asked once, not for each batch: what lies after the end of the buffer lies after `limit` too
        at = positions.pop()
    return Walk(np.array(positions, dtype=np.int64), at, valid)


def decode_headers(buffer: memoryview, positions: NDArray[np.int64], file_position: int) -> Batches:
    """Decode the headers at `positions` of `buffer`, whose first byte lies at `file_position` of the file.

    `positions`: int64, shape (n,), bytes, ascending. Every batch must lie in the buffer whole; the decoded control type of
    a marker needs its record.
    """
    if len(positions) == 0:
        return empty_batches()
    headers = gather_headers(buffer, positions)
    columns = _columns(headers, positions + file_position, decode_controls(buffer, positions, headers))
    for index in np.flatnonzero(headers["magic"] != CURRENT_MAGIC).tolist():
        for name, value in _legacy_fields(buffer, int(positions[index])).items():
            columns[name][index] = value
    return batches_of(columns)


def gather_headers(buffer: memoryview, positions: NDArray[np.int64]) -> Headers:
    """Copy the 61 bytes at each of `positions` (int64, shape (n,), ascending) out of `buffer`: shape (n,)."""
    # Legacy messages may be shorter than 61 bytes: gather only from where 61 bytes exist.
    padded = _readable(buffer, int(positions[-1]) + HEADER_SIZE)
    headers: Headers = at_every_byte(padded, HEADER_BYTES)[positions].view(HEADER_DTYPE)
    return headers


def at_every_byte(buffer: memoryview | NDArray[np.uint8], item: np.dtype[Any], first: int = 0) -> NDArray[Any]:
    """View `buffer` as items that start at each of its bytes from `first` on, overlapping, as far as whole ones fit."""
    return np.ndarray((len(buffer) - first - item.itemsize + 1,), item, buffer, first, (1,))


def length_fields(buffer: memoryview | NDArray[np.uint8]) -> NDArray[np.int32]:
    """View the length field of a batch (int32, big-endian) starting at each byte of `buffer` where one fits."""
    return at_every_byte(buffer, _LENGTH, LENGTH_OFFSET)


def header_columns(headers: Headers, file_positions: NDArray[np.int64], controls: Controls) -> Batches:
    """Columns of headers of magic 2 that lie at these positions (int64, shape (n,), bytes) of the file."""
    return batches_of(_columns(headers, file_positions, controls))


def _columns(headers: Headers, file_positions: NDArray[np.int64], controls: Controls) -> dict[str, NDArray[Any]]:
    columns = {name: headers[name].astype(BATCH[name]) for name in _COPIED}
    columns["position"] = file_positions
    columns["size"] = headers["batch_length"].astype(np.int64) + LOG_OVERHEAD
    if len(controls.indexes):
        for name, absent, values in (
            ("control_type", NO_CONTROL_TYPE, controls.types),
            ("coordinator_epoch", NO_COORDINATOR_EPOCH, controls.coordinator_epochs),
        ):
            columns[name] = np.full(len(headers), absent, dtype=BATCH[name])
            columns[name][controls.indexes] = values
    return columns


def batch_crc_holds(buffer: memoryview, at: int, size: int) -> bool:
    """Return whether the batch of `size` bytes at `at` of `buffer` matches its CRC (CRC-32C for magic 2, CRC-32 before)."""
    if buffer[at + MAGIC_OFFSET] == CURRENT_MAGIC:
        stored = int.from_bytes(buffer[at + CRC_OFFSET : at + ATTRIBUTES_OFFSET], "big")
        return bool(crc32c(buffer[at + ATTRIBUTES_OFFSET : at + size]) == stored)
    stored = int.from_bytes(buffer[at + MESSAGE_V0.offset("crc") : at + MAGIC_OFFSET], "big")
    return zlib.crc32(buffer[at + MAGIC_OFFSET : at + size]) == stored


def _readable(buffer: memoryview, size: int) -> memoryview:
    if len(buffer) >= size:
        return buffer
    return memoryview(bytes(buffer) + bytes(size - len(buffer)))


def _legacy_fields(buffer: memoryview, at: int) -> dict[str, int]:
    """Return the columns of a message of magic 0 or 1 whose bytes are not those of a header of magic 2."""
    offset, _, crc, magic, attributes = _MESSAGE.unpack_from(buffer, at)
    timestamp = _TIMESTAMP.unpack_from(buffer, at + MESSAGE_V1.offset("timestamp"))[0] if magic else NO_TIMESTAMP
    return {
        "base_offset": offset,
        "last_offset_delta": 0,
        "leader_epoch": NO_LEADER_EPOCH,
        "crc": crc,
        "attributes": attributes & (CODEC_MASK | LOG_APPEND_TIME_FLAG),
        "base_timestamp": timestamp,
        "max_timestamp": timestamp,
        "producer_id": NO_PRODUCER_ID,
        "producer_epoch": NO_PRODUCER_EPOCH,
        "base_sequence": NO_SEQUENCE,
        "record_count": 1 if attributes & CODEC_MASK == 0 else -1,
    }


def decode_controls(buffer: memoryview, positions: NDArray[np.int64], headers: Headers) -> Controls:
    """Decode the records of the control batches among the batches with these `headers`, which start at `positions`."""
    flags = headers.view(np.uint8).reshape(-1, HEADER_SIZE)[:, FLAGS_OFFSET]
    indexes = (flags & CONTROL_FLAG).nonzero()[0]
    if not len(indexes):
        return _NO_CONTROLS
    indexes = indexes[headers["magic"][indexes] == CURRENT_MAGIC]
    types = np.full(len(indexes), NO_CONTROL_TYPE, dtype=BATCH["control_type"])
    epochs = np.full(len(indexes), NO_COORDINATOR_EPOCH, dtype=BATCH["coordinator_epoch"])
    at, lengths = positions[indexes], headers["batch_length"][indexes]
    usual = np.flatnonzero((lengths == USUAL_MARKER_LENGTH) & (flags[indexes] & CODEC_MASK == 0))
    usual = usual[headers["record_count"][indexes[usual]] == 1]
    decoded = np.zeros(len(indexes), dtype=bool)
    if len(usual):
        records = at_every_byte(buffer, USUAL_MARKER_BYTES)[at[usual] + HEADER_SIZE].view(USUAL_MARKER)
        good = is_usual_marker(records)
        decoded[usual[good]] = True
        types[decoded] = records["type"][good]
        epochs[decoded] = records["coordinator_epoch"][good]
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
    return Controls(indexes, types, epochs)
