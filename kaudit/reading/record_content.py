"""A record's content as one number: what an application meant to write, whatever batch and producer carries it."""

import struct
from contextlib import closing

from kaudit.formats.errors import WireError
from kaudit.formats.log.legacy import LegacyRecord
from kaudit.formats.log.records import Record, read_records
from kaudit.model.log_rows import BoundaryBatch, NonIdempotentBatch
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.layout import PartitionDirectory

MAX_BATCH_BYTES = 16 << 20
"""Larger batches are not unpacked to see whether their records differ from one another."""

_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)


def content_of(record: Record | LegacyRecord) -> int:
    """Return 64 bits of key, value and headers; timestamp, offset and sequence are no content."""
    from xxhash import xxh3_64_intdigest  # noqa: PLC0415 - a scan of headers needs none of it

    parts = [record.key, record.value]
    if isinstance(record, Record):
        parts += [part for header in record.headers for part in header]
    return xxh3_64_intdigest(b"".join([_NULL if part is None else _LENGTH.pack(len(part)) + part for part in parts]))


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


def contents_of(
    batch: BoundaryBatch | NonIdempotentBatch, directory: PartitionDirectory, open_source: OpenSource
) -> list[int]:
    """Return the content of each record of a batch; none where it cannot be read or unpacked."""
    return contents(batch_bytes(batch, directory, open_source))


def contents(batch: bytes | None) -> list[int]:
    """Return the content of each record in a batch's bytes; none where there are none, or they cannot be unpacked."""
    if batch is None:
        return []
    try:
        return [content_of(record) for record in read_records(memoryview(batch), MAX_BATCH_BYTES)]
    except WireError:
        return []  # malformed, and reported as such when records are decoded
