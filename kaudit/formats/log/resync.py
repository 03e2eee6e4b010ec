"""Finding the next valid batch after damage."""

import re

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import (
    ATTRIBUTES_OFFSET,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MESSAGE_V0,
    MIN_LENGTH_LEGACY,
    MIN_LENGTH_V2,
    PREFIX_SIZE,
    base_offset_of,
    batch_size,
)
from kaudit.formats.log.codecs import Codec
from kaudit.formats.log.record_batch import batch_crc_holds, gather_headers, length_fields
from kaudit.model.batch_fields import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
)
from kaudit.model.sequence import N

_HIGHEST_CODEC = max(Codec)
_KNOWN_ATTRIBUTES = CODEC_MASK | LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG
_CHECKED = ("attributes", "last_offset_delta", "record_count")
_FIELDS = HEADER.struct(*_CHECKED)
_MAX_SEGMENT_OFFSETS = 2**31
"""A segment holds offsets below its base offset plus this: its indexes store them as int32."""


_MAY_BEGIN = re.compile(rb"(?=\0.{%d}[\0-\%d])" % (MAGIC_OFFSET - 1, CURRENT_MAGIC), re.DOTALL)
"""The first byte of a base offset below 2^56, and a magic."""


def may_hold_header(content: memoryview, remaining_after: int) -> bool:
    """Return whether `candidates` may find any in a few bytes, at a tenth of its cost for these."""
    least, most = MIN_LENGTH_LEGACY + LOG_OVERHEAD, len(content) + remaining_after
    found = (match.start() for match in _MAY_BEGIN.finditer(content))
    return any(least <= batch_size(content, at) <= most - at for at in found)


def candidates(buffer: memoryview, start: int, remaining_after: int, stop: int | None = None) -> NDArray[np.int64]:
    """Return the bytes of `buffer` from `start` on (and below `stop`) where a batch header could be, ascending; shape (n,).

    CRCs are for the caller to check.
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
    length = length_fields(buffer)[found].astype(np.int64)
    found = found[(length >= MIN_LENGTH_LEGACY) & (length <= len(raw) + remaining_after - found - LOG_OVERHEAD)]
    kind = raw[found + MAGIC_OFFSET]
    legacy, current = found[kind < CURRENT_MAGIC], found[kind == CURRENT_MAGIC]
    attributes = raw[legacy + MESSAGE_V0.offset("attributes")]
    legacy = legacy[attributes & ~np.uint8(LOG_APPEND_TIME_FLAG) < Codec.ZSTD]
    current = current[current <= len(raw) - HEADER_SIZE]
    if len(current):
        current = _plausible(buffer, current)
    return np.sort(np.concatenate((legacy, current)))


def first_sound(buffer: bytes) -> int | None:
    """Return where the first batch begins that lies whole in the buffer and matches its CRC; None if there is none."""
    view = memoryview(buffer)
    found = (at for at in candidates(view, 0, 0).tolist() if batch_crc_holds(view, at, batch_size(view, at)))
    return next(found, None)


def _plausible(buffer: memoryview, found: NDArray[np.int64]) -> NDArray[np.int64]:
    headers = gather_headers(buffer, found)
    attributes, last_offset_delta, record_count = (headers[name].astype(np.int64) for name in _CHECKED)
    plausible: NDArray[np.bool_] = headers["batch_length"] >= MIN_LENGTH_V2
    plausible &= _plausible_fields(attributes, last_offset_delta, record_count)
    return found[plausible]


def _plausible_fields(attributes: N, last_offset_delta: N, record_count: N) -> N:
    attributes = attributes & 0xFFFF
    plausible: N = (
        (attributes <= _KNOWN_ATTRIBUTES)
        & (attributes & CODEC_MASK <= _HIGHEST_CODEC)
        & (last_offset_delta >= 0)
        & (record_count >= 0)
    )
    return plausible


def is_plausible_but_for_length(header: memoryview | bytes | bytearray) -> bool:
    """Return whether 61 bytes may be the header of a batch of magic 2, whatever its length field says."""
    if len(header) < HEADER_SIZE or header[MAGIC_OFFSET] != CURRENT_MAGIC:
        return False
    return bool(_plausible_fields(*_FIELDS.unpack_from(header, ATTRIBUTES_OFFSET)))


def looks_torn(header: memoryview, available: int, expected_offset: int | None) -> bool:
    """Return whether `available` bytes at the end of a file may be the start of a batch cut off by the end.

    `header` holds up to 61 of them. `expected_offset` is the log's next offset where known: a base offset further than
    one segment can reach from it (2^31 - 1, the limit of relative offsets) speaks against a batch.
    """
    known = len(header)
    if known >= LENGTH_OFFSET and not _possible_offset(base_offset_of(header), expected_offset):
        return False
    if known >= LOG_OVERHEAD and not MIN_LENGTH_LEGACY + LOG_OVERHEAD <= batch_size(header) > available:
        return False
    if known <= MAGIC_OFFSET:
        return True
    if known < HEADER_SIZE or header[MAGIC_OFFSET] != CURRENT_MAGIC:
        return header[MAGIC_OFFSET] <= CURRENT_MAGIC
    return is_plausible_but_for_length(header)


def _possible_offset(base_offset: int, expected: int | None) -> bool:
    return base_offset >= 0 and (expected is None or expected <= base_offset < expected + _MAX_SEGMENT_OFFSETS)
