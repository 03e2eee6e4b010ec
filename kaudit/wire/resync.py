"""Finding the next sound batch after damage."""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.wire.record_batch import (
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MIN_LENGTH_LEGACY,
    MIN_LENGTH_V2,
    PREFIX_SIZE,
)

_KNOWN_ATTRIBUTES = 0x7F
_LEGACY_ATTRIBUTES = 0x0F
_HIGHEST_CODEC = 4
_PREFIX = struct.Struct(">qi")


def candidates(buffer: memoryview, start: int, remaining_after: int) -> NDArray[np.int64]:
    """Positions >= `start` in `buffer` that could be a batch header, in order; their CRC is for the caller to check.

    `remaining_after` is how many bytes of the file follow the buffer: no batch may claim more than there is. A position
    needs 61 bytes (magic 2) or 17 (before) inside the buffer to be considered.
    """
    raw: NDArray[np.uint8] = np.frombuffer(buffer, dtype=np.uint8)
    stop = len(raw) - PREFIX_SIZE
    if start > stop:
        return np.empty(0, dtype=np.int64)
    magic = raw[start + MAGIC_OFFSET : stop + MAGIC_OFFSET + 1]
    # the top byte of a base offset below 2^56 is zero: one cheap filter that leaves few positions
    found = (np.flatnonzero((magic <= CURRENT_MAGIC) & (raw[start : stop + 1] == 0)) + start).astype(np.int64)
    if not len(found):
        return found
    words: NDArray[Any] = np.ndarray((len(raw) - 3,), np.dtype(">i4"), buffer, 0, (1,))
    length = words[found + 8].astype(np.int64)
    kind = raw[found + MAGIC_OFFSET]
    fits = length <= len(raw) + remaining_after - found - LOG_OVERHEAD
    current = (kind == CURRENT_MAGIC) & (length >= MIN_LENGTH_V2) & (found <= len(raw) - HEADER_SIZE)
    legacy = (kind < CURRENT_MAGIC) & (length >= MIN_LENGTH_LEGACY) & (found <= len(raw) - PREFIX_SIZE - 1)
    found = found[fits & (current | legacy)]
    return np.asarray([at for at in found.tolist() if _plausible(buffer, at)], dtype=np.int64)


def _plausible(buffer: memoryview, at: int) -> bool:
    if buffer[at + MAGIC_OFFSET] != CURRENT_MAGIC:
        attributes = buffer[at + PREFIX_SIZE]
        return attributes <= _LEGACY_ATTRIBUTES and attributes & 0x07 < _HIGHEST_CODEC
    attributes = int.from_bytes(buffer[at + 21 : at + 23], "big")
    delta = int.from_bytes(buffer[at + 23 : at + 27], "big", signed=True)
    count = int.from_bytes(buffer[at + 57 : at + 61], "big", signed=True)
    return attributes <= _KNOWN_ATTRIBUTES and attributes & 0x07 <= _HIGHEST_CODEC and delta >= 0 and count >= 0


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
            return _plausible(header, 0)
    return True
