"""When records, and batches of records, are equal: the one definition for scan's repeats and for `kaudit dedup`.

Records are equal in key, value and headers, whatever batch and producer carries them. Batches are equal in the bytes of
their records and the codec. The columns of batches give a necessary condition (`batch_content`) without reading a record;
`records_digest` of the bytes decides.
"""

import struct
from contextlib import closing
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import HEADER, HEADER_SIZE
from kaudit.formats.log.crc_algebra import Crcs
from kaudit.formats.log.legacy import LegacyRecord
from kaudit.formats.log.records import Record, read_records
from kaudit.model.batch_fields import CODEC_MASK
from kaudit.model.log_rows import BoundaryBatch, NonIdempotentBatch
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.layout import PartitionDirectory

MAX_BATCH_BYTES = 16 << 20
"""Larger batches are not unpacked to see whether their records differ from one another."""

_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)
_ATTRIBUTES = HEADER.struct("attributes")
_ATTRIBUTES_AT = HEADER.offset("attributes")
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def batch_content(records_crcs: Crcs, sizes: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return 64 bits for each batch, shape (n,): equal for batches with equal records, and for few others.

    `records_crcs` as of formats/log/crc_algebra.py; `sizes` of the batches in bytes; `counts` of their records.
    """
    return ((records_crcs.astype(np.uint64) << np.uint64(32)) ^ mixed(sizes, counts)).view(np.int64)


def with_times(contents: NDArray[np.int64], times: NDArray[Any]) -> NDArray[np.int64]:
    """Return contents that are equal only where the base timestamps are equal too, shape (n,)."""
    return mixed(contents, times).view(np.int64)


def mixed(*columns: NDArray[Any]) -> NDArray[np.uint64]:
    """Hash rows of numbers to 64 bits each (the finalizer of SplitMix64, after each column)."""
    hashed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        hashed += column.astype(np.int64).view(np.uint64) + _GOLDEN
        hashed = (hashed ^ (hashed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashed = (hashed ^ (hashed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashed ^= hashed >> np.uint64(31)
    return hashed


def records_digest(batch: bytes | memoryview) -> int:
    """Return 128 bits of a batch of magic 2: the bytes of its records and their codec."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    digest: int = hashes().xxh3_128_intdigest(batch[HEADER_SIZE:], seed=attributes & CODEC_MASK)
    return digest


def content_of(record: Record | LegacyRecord) -> int:
    """Return 64 bits of key, value and headers; timestamp, offset and sequence are no content."""
    parts = [record.key, record.value]
    if isinstance(record, Record):
        parts += [part for header in record.headers for part in header]
    text = b"".join([_NULL if part is None else _LENGTH.pack(len(part)) + part for part in parts])
    digest: int = hashes().xxh3_64_intdigest(text)
    return digest


@cache
def hashes() -> ModuleType:
    """Return the module xxhash."""
    import xxhash  # noqa: PLC0415 - most scans compare no records

    return xxhash


def differ(one: bytes | None, other: bytes | None) -> bool:
    """Return whether two batches of magic 2 are known to have other records; None: the batch cannot be read."""
    return one is not None and other is not None and records_digest(one) != records_digest(other)


def batch_bytes(
    batch: BoundaryBatch | NonIdempotentBatch, directory: PartitionDirectory, open_source: OpenSource
) -> bytes | None:
    """Return a batch's bytes; None where they are too many, or gone since they were read."""
    if batch.size > MAX_BATCH_BYTES:
        return None
    data = bytearray(batch.size)
    try:
        with closing(open_source(directory.segments[batch.segment])) as source:
            read = source.read_into(batch.position, memoryview(data))
    except OSError:
        return None  # reported by the audit itself
    return bytes(data) if read == batch.size else None


def contents(batch: bytes | None) -> list[int]:
    """Return the content of each record in a batch's bytes; none where there are none, or they cannot be unpacked."""
    if batch is None:
        return []
    try:
        return [content_of(record) for record in read_records(memoryview(batch), MAX_BATCH_BYTES)]
    except WireError:
        return []  # malformed, and reported as such when records are decoded
