"""Finding the next sound batch after damage."""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.log.record_batch import (
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MIN_LENGTH_LEGACY,
    MIN_LENGTH_V2,
    PREFIX_SIZE,
    WIRE_HEADER,
    Headers,
    gather_headers,
)

_KNOWN_ATTRIBUTES = 0x7F
_LEGACY_ATTRIBUTES = 0x0F
_HIGHEST_CODEC = 4
_PREFIX = struct.Struct(">qi")


def candidates(buffer: memoryview, start: int, remaining_after: int, stop: int | None = None) -> NDArray[np.int64]:
    """Positions >= `start` (and < `stop`) in `buffer` that could be a batch header, in order; CRCs are for the caller to check.

    `remaining_after` is how many bytes of the file follow the buffer: no batch may claim more than there is. A position
    needs 61 bytes (magic 2) or 18 (before) inside the buffer to be considered.
    """
    raw: NDArray[np.uint8] = np.frombuffer(buffer, dtype=np.uint8)
    limit = len(raw) - PREFIX_SIZE if stop is None else min(stop, len(raw) - PREFIX_SIZE)
    if start >= limit:
        return np.empty(0, dtype=np.int64)
    magic = raw[start + MAGIC_OFFSET : limit + MAGIC_OFFSET]
    # the top byte of a base offset below 2^56 is zero: one cheap filter that leaves few positions
    found = (np.flatnonzero((magic <= CURRENT_MAGIC) & (raw[start:limit] == 0)) + start).astype(np.int64)
    if not len(found):
        return found
    lengths: NDArray[Any] = np.ndarray((len(raw) - LOG_OVERHEAD + 1,), np.dtype(">i4"), buffer, 8, (1,))
    length = lengths[found].astype(np.int64)
    found = found[(length >= MIN_LENGTH_LEGACY) & (length <= len(raw) + remaining_after - found - LOG_OVERHEAD)]
    kind = raw[found + MAGIC_OFFSET]
    legacy, current = found[kind < CURRENT_MAGIC], found[kind == CURRENT_MAGIC]
    attributes = raw[legacy + PREFIX_SIZE]
    legacy = legacy[(attributes <= _LEGACY_ATTRIBUTES) & (attributes & 0x07 < _HIGHEST_CODEC)]
    current = current[current <= len(raw) - HEADER_SIZE]
    if len(current):
        current = _plausible(buffer, current)
    return np.sort(np.concatenate((legacy, current)))


def _plausible(buffer: memoryview, found: NDArray[np.int64]) -> NDArray[np.int64]:
    headers = gather_headers(buffer, found)
    return found[(headers["batch_length"] >= MIN_LENGTH_V2) & _plausible_fields(headers)]


def _plausible_fields(headers: Headers) -> NDArray[np.bool_]:
    attributes = headers["attributes"].astype(np.int64) & 0xFFFF
    plausible: NDArray[np.bool_] = (
        (attributes <= _KNOWN_ATTRIBUTES)
        & (attributes & 0x07 <= _HIGHEST_CODEC)
        & (headers["last_offset_delta"] >= 0)
        & (headers["record_count"] >= 0)
    )
    return plausible


def looks_torn(header: memoryview, available: int, expected_offset: int | None) -> bool:
    """Tell whether `available` bytes at the end of a file look like the start of a batch cut off by the end.

    `header` holds up to 61 of them. `expected_offset` is the log's next offset where known: a base offset further than
    one segment can reach from it (2^31 - 1, the limit of relative offsets) speaks against a batch.
    """
    if len(header) >= 8:
        base_offset = int.from_bytes(header[:8], "big", signed=True)
        if base_offset < 0:
            return False
        if expected_offset is not None and not expected_offset <= base_offset < expected_offset + 2**31:
            return False
    if len(header) >= LOG_OVERHEAD:
        _, length = _PREFIX.unpack_from(header)
        if length < MIN_LENGTH_LEGACY or length + LOG_OVERHEAD <= available:
            return False
    if len(header) > MAGIC_OFFSET:
        magic = header[MAGIC_OFFSET]
        if magic > CURRENT_MAGIC:
            return False
        if len(header) >= HEADER_SIZE and magic == CURRENT_MAGIC:
            first = np.frombuffer(header[:HEADER_SIZE], dtype=WIRE_HEADER)
            return bool(_plausible_fields(first)[0])
    return True
