"""One batch as it lies in the log, or one of its records: what is compared of it, decoded only where that is needed."""

from functools import cached_property

import xxhash
from msgspec import Struct

from kaudit.formats.log.batch_header import CURRENT_MAGIC, HEADER, HEADER_SIZE, MAGIC_OFFSET, RecordBatchHeader
from kaudit.formats.log.legacy import LegacyRecord
from kaudit.formats.log.records import Record
from kaudit.model.batch_fields import CODEC_MASK, NO_TIMESTAMP
from kaudit.reading.content_rows import records_of
from kaudit.reading.record_content import content_of

_FIELDS = HEADER.struct(*RecordBatchHeader._fields)


class Unit(Struct, frozen=True):
    """A batch, or one of its records. `digest` is of what it says: of a batch the bytes of its records and their codec."""

    offset: int
    last_offset: int
    record_count: int
    timestamp: int | None
    producer_id: int | None
    producer_epoch: int | None
    sequence: int | None
    digest: int


class Keys(Struct, frozen=True):
    """Whether every record has a key, and the key that all of them have."""

    everywhere: bool
    common: bytes | None


class StoredBatch:
    """A batch of any magic. `unit` and `keys` take the offset of a record, None for the whole batch.

    They raise KeyError where there is no such record, ValueError where there is none at all, and WireError.
    """

    def __init__(self, data: memoryview) -> None:
        self._data = data
        current = data[MAGIC_OFFSET] >= CURRENT_MAGIC
        self._header = RecordBatchHeader._make(_FIELDS.unpack_from(data)) if current else None

    def unit(self, offset: int | None) -> Unit:
        """Return what is compared."""
        if offset is not None or self._header is None:
            return self._records_unit(offset)
        header = self._header
        digest = xxhash.xxh3_128_intdigest(self._data[HEADER_SIZE:], seed=header.attributes & CODEC_MASK)
        return Unit(
            header.base_offset,
            header.base_offset + max(header.last_offset_delta, 0),
            header.record_count,
            _known(header.max_timestamp),
            *self._producer,
            header.base_sequence if header.base_sequence >= 0 else None,
            digest,
        )

    def contents(self, offset: int | None) -> list[int]:
        """Return the content of each record."""
        return [content_of(record) for record in self._chosen(offset)]

    def keys(self, offset: int | None) -> Keys:
        """Return what keys the records have."""
        keys = {record.key for record in self._chosen(offset)}
        return Keys(None not in keys, keys.pop() if len(keys) == 1 else None)

    @property
    def _producer(self) -> tuple[int | None, int | None]:
        header = self._header
        return (None, None) if header is None or header.producer_id < 0 else (header.producer_id, header.producer_epoch)

    @cached_property
    def _records(self) -> dict[int, Record | LegacyRecord]:
        return {record.offset: record for record in records_of(self._data)}

    def _chosen(self, offset: int | None) -> list[Record | LegacyRecord]:
        records = list(self._records.values()) if offset is None else [self._records[offset]]
        if not records:
            raise ValueError("the batch is empty")
        return records

    def _records_unit(self, offset: int | None) -> Unit:
        records = self._chosen(offset)
        return Unit(
            records[0].offset,
            records[-1].offset,
            len(records),
            max((known for known in map(_known, (record.timestamp for record in records)) if known), default=None),
            *self._producer,
            records[0].sequence if isinstance(records[0], Record) else None,
            hash(tuple(map(content_of, records))),
        )


def _known(timestamp: int | None) -> int | None:
    return None if timestamp == NO_TIMESTAMP else timestamp
