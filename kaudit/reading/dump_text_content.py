"""Records of an internal topic, read from a text of kafka-dump-log."""

from collections.abc import Iterator

from kaudit.formats.dump_text.record_content import parse_printed_metadata, parse_printed_transaction
from kaudit.formats.dump_text.rows import DumpBatch, DumpNote, DumpRecord, NoteKind
from kaudit.formats.dump_text.text import read_dump
from kaudit.formats.errors import MissingContentError
from kaudit.formats.internal_topics.metadata_records import MetadataRecord
from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.coordinator import TransactionRecord
from kaudit.source.text import SegmentText

_NULL_SIZE = -1


def dump_text_records(source: SegmentText) -> Iterator[DumpRecord]:
    """Yield all records with what was printed of them; of data, a `payload` of None is a null value.

    What only the line of its batch prints - producer, leader epoch, whether it is transactional - is filled in.

    Raises:
        MissingContentError: a record's value, all records of a batch, or the bytes after a torn end are not in the text.

    """
    batch: DumpBatch | None = None
    empty: DumpBatch | None = None
    for row in (found._replace(line=found.line + source.lines_before) for found in read_dump(source.pieces())):
        if isinstance(row, DumpBatch):
            _expect_records(empty)
            if row.is_valid is False:
                raise MissingContentError(f"line {row.line}: the CRC of the batch does not match")
            batch = empty = row
        elif isinstance(row, DumpRecord):
            empty = None
            record = row if batch is None else _of_batch(row, batch)
            if is_data(record) and record.value_size == _NULL_SIZE:
                record = record._replace(payload=None)
            elif is_data(record) and record.payload is None:
                raise MissingContentError(f"line {row.line}: the text does not print what is in the record")
            yield record
        elif isinstance(row, DumpNote) and row.kind in (NoteKind.INVALID_BYTES, NoteKind.OTHER, NoteKind.TOO_LONG):
            raise MissingContentError(f"line {row.line}: {row.text[:200]}")
    _expect_records(empty)


_OF_BATCH = ("producer_id", "producer_epoch", "leader_epoch", "is_transactional")


def _of_batch(record: DumpRecord, batch: DumpBatch) -> DumpRecord:
    return record._replace(**{name: getattr(batch, name) for name in _OF_BATCH if getattr(record, name) is None})


def printed_transactions(source: SegmentText) -> Iterator[tuple[int, int, TransactionRecord]]:
    """Yield the states that a text of __transaction_state prints, with offsets and timestamps (ms, -1 for none).

    Raises:
        MissingContentError: as `dump_text_records`; WireError: a line is no state.

    """
    for row in filter(is_data, dump_text_records(source)):
        timestamp = NO_TIMESTAMP if row.timestamp is None else row.timestamp
        yield row.offset, timestamp, parse_printed_transaction(row.key, row.payload)


def printed_metadata(source: SegmentText) -> Iterator[tuple[int, int, MetadataRecord | None]]:
    """Yield what a text of __cluster_metadata prints, with offsets and timestamps; None for records without metadata.

    Raises:
        MissingContentError: as `dump_text_records`; WireError: a line is no metadata record.

    """
    for row in dump_text_records(source):
        content = parse_printed_metadata(row.payload) if row.payload is not None and is_data(row) else None
        yield row.offset, NO_TIMESTAMP if row.timestamp is None else row.timestamp, content


def is_data(record: DumpRecord) -> bool:
    """Return whether it is neither a marker nor another control record."""
    return record.end_marker is None and record.control is None


def _expect_records(batch: DumpBatch | None) -> None:
    """A batch without any record below it is one of a shallow text; one that compaction emptied has none to print."""
    if batch is not None and batch.record_count != 0:
        raise MissingContentError(f"line {batch.line}: the text does not print the records of the batch")
