"""Records of batches of any magic, read again."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC, MAGIC_OFFSET
from kaudit.formats.log.legacy import LegacyRecord, parse_message, read_legacy_records
from kaudit.formats.log.record_spans import PADDING, BatchBytes
from kaudit.formats.log.records import DEFAULT_LIMIT, Record, read_records
from kaudit.model.batch import Batches
from kaudit.reading.batch_content import MAX_BATCH_BYTES, blocks
from kaudit.reading.record_content import hashes
from kaudit.source.bytes import ByteSource

NO_KEY = 0
_AT_ONCE = 4 << 20
"""Bytes of batches that are decoded together."""


def read_batch(source: ByteSource, position: int, size: int) -> memoryview:
    """Return a batch's bytes. Raises ValueError where it is too long to be held, or gone since it was found."""
    if size > MAX_BATCH_BYTES:
        raise ValueError(f"{size} bytes, more than is read into memory")
    data = memoryview(bytearray(size))
    if source.read_into(position, data) < size:
        raise ValueError("truncated since it was found")
    return data


def bytes_of_batches(
    source: ByteSource, positions: NDArray[Any], sizes: NDArray[Any]
) -> tuple[NDArray[np.intp], BatchBytes]:
    """Return the numbers and the bytes of batches; those that cannot be read are left out. Raises OSError where the file cannot be."""
    fit = np.flatnonzero(sizes <= MAX_BATCH_BYTES)
    pieces: list[memoryview] = []
    starts, whole, base = np.empty(len(fit), dtype=np.int64), np.empty(len(fit), dtype=np.bool_), 0
    first = 0
    for begins, own, data in blocks(positions[fit], sizes[fit], source):
        some = slice(first, first + len(own))
        starts[some], whole[some] = begins + base, begins + own <= len(data)
        pieces.append(data)
        first, base = some.stop, base + len(data)
    read = fit[whole]
    return read, BatchBytes(b"".join([*pieces, PADDING]), starts[whole], sizes[read].astype(np.int64))


def read_batches(
    source: ByteSource, positions: NDArray[Any], sizes: NDArray[Any]
) -> Iterator[tuple[NDArray[np.intp], BatchBytes]]:
    """Yield what `bytes_of_batches` returns of some batches at once."""
    ends, first = np.cumsum(sizes, dtype=np.int64), 0
    while first < len(ends):
        stop = int(np.searchsorted(ends, _AT_ONCE + (ends[first - 1] if first else 0))) + 1
        numbers, data = bytes_of_batches(source, positions[first:stop], sizes[first:stop])
        if len(numbers):
            yield numbers + first, data
        first = stop


def records_of(batch: memoryview) -> Iterator[Record | LegacyRecord]:
    """Yield the records of a batch of any magic. Raises WireError as their readers do."""
    if batch[MAGIC_OFFSET] < CURRENT_MAGIC:
        yield from read_legacy_records(parse_message(batch), DEFAULT_LIMIT)
    else:
        yield from read_records(batch, DEFAULT_LIMIT)


def decodable_records(source: ByteSource, batches: Batches) -> Iterator[Record | LegacyRecord]:
    """Yield the records of batches one by one, of a batch that cannot be decoded those before the damage."""
    for position, size in zip(batches["position"].tolist(), batches["size"].tolist(), strict=True):
        with suppress(WireError, ValueError):  # a malformed batch is reported by itself
            yield from records_of(read_batch(source, position, size))


def key_of(record: Record | LegacyRecord) -> int:
    """Return 64 bits of the key, NO_KEY where it is null."""
    if record.key is None:
        return NO_KEY
    digest: int = hashes().xxh3_64_intdigest(record.key)
    return digest or 1
