"""The content of records, apart from their place, as numbers that can be compared by the million.

A record's content is its key, value and headers. Control batches have none: no consumer is given them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC, MAGIC_OFFSET
from kaudit.formats.log.legacy import LegacyRecord, parse_message, read_legacy_records
from kaudit.formats.log.records import DEFAULT_LIMIT, Record, read_records
from kaudit.model.batch import Batches
from kaudit.model.batch_fields import CONTROL_FLAG, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from kaudit.model.columns import Columns, no_rows
from kaudit.model.dtypes import dtype_of
from kaudit.model.log_rows import Content
from kaudit.reading.batch_content import MAX_BATCH_BYTES
from kaudit.reading.record_content import content_of, hashes, mixed
from kaudit.source.bytes import ByteSource

CONTENT = dtype_of(Content)
NO_KEY = 0
NO_IDENTITY = 0
_64_BITS = (1 << 64) - 1
"""A number as its 64 bits: those of hostile batches may be negative."""


def record_contents(batches: Batches, segment: int, source: ByteSource) -> tuple[Columns, int]:
    """Return a row of CONTENT for each record of the batches of data, and how many batches cannot be decoded."""
    batches = batches[batches["attributes"] & CONTROL_FLAG == 0]
    found: list[tuple[int, int, int, int]] = []
    counts = np.zeros(len(batches), dtype=np.int64)
    undecoded = 0
    for index, row in enumerate(batches):
        before = len(found)
        try:
            data = read_batch(source, int(row["position"]), int(row["size"]))
            found += [
                (record.offset & _64_BITS, content_of(record), key_of(record), _sequence(record) & _64_BITS)
                for record in records_of(data)
            ]
        except (WireError, ValueError):
            del found[before:]
            undecoded += 1
        counts[index] = len(found) - before
    if not found:
        return no_rows(CONTENT), undecoded
    values = np.array(found, dtype=np.uint64)
    offsets, contents, keys, sequences = (values[:, column].view(np.int64) for column in range(4))
    repeated = {
        name: np.repeat(batches[name], counts) for name in ("position", "size", "producer_id", "producer_epoch")
    }
    columns: dict[str, NDArray[Any] | int] = {
        "offset": offsets,
        "content": contents,
        "identity": _identity(repeated["producer_id"], repeated["producer_epoch"], sequences - 1),
        "key": keys,
        "transaction_of": np.repeat(_transactional(batches), counts),
        "records": 1,
        "position": repeated["position"],
        "size": repeated["size"],
        "segment": segment,
    }
    return Columns(CONTENT, len(values), columns), undecoded


def read_batch(source: ByteSource, position: int, size: int) -> memoryview:
    """Return a batch's bytes. Raises ValueError where it is too long to be held, or gone since it was found."""
    if size > MAX_BATCH_BYTES:
        raise ValueError(f"{size} bytes, more than is read into memory")
    data = memoryview(bytearray(size))
    if source.read_into(position, data) < size:
        raise ValueError("truncated since it was found")
    return data


def records_of(batch: memoryview) -> Iterator[Record | LegacyRecord]:
    """Yield the records of a batch of any magic. Raises WireError as their readers do."""
    if batch[MAGIC_OFFSET] < CURRENT_MAGIC:
        yield from read_legacy_records(parse_message(batch), DEFAULT_LIMIT)
    else:
        yield from read_records(batch, DEFAULT_LIMIT)


def key_of(record: Record | LegacyRecord) -> int:
    """Return 64 bits of the key, NO_KEY where it is null."""
    if record.key is None:
        return NO_KEY
    digest: int = hashes().xxh3_64_intdigest(record.key)
    return digest or 1


def _sequence(record: Record | LegacyRecord) -> int:
    """One more than the sequence, 0 without one."""
    sequence = record.sequence if isinstance(record, Record) else None
    return 0 if sequence is None else sequence + 1


def _identity(producer_ids: NDArray[Any], epochs: NDArray[Any], sequences: NDArray[Any]) -> NDArray[np.int64]:
    """64 bits of what a broker deduplicates by, NO_IDENTITY where it cannot."""
    identity = mixed(producer_ids, epochs, sequences)
    identity[(producer_ids < 0) | (sequences < 0)] = NO_IDENTITY
    return identity.view(np.int64)


def _transactional(batches: Batches) -> NDArray[np.int64]:
    return np.where(batches["attributes"] & TRANSACTIONAL_FLAG != 0, batches["producer_id"], NO_PRODUCER_ID)
