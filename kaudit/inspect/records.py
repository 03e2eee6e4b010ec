"""Records of one batch as rows, of any magic; those of internal topics by what they mean."""

from collections.abc import Iterator

from kaudit.formats.errors import LimitExceededError, WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC, MAGIC_OFFSET
from kaudit.formats.log.control import parse_control
from kaudit.formats.log.legacy import LegacyRecord, parse_message, read_legacy_records
from kaudit.formats.log.records import Record, read_records
from kaudit.inspect.bytes_text import BytesFormatter
from kaudit.inspect.file_kinds import LogFile
from kaudit.inspect.internal_topics import content_row
from kaudit.inspect.rows import Row, fields_of, null
from kaudit.model.limits import BATCH_BYTES

MAX_BATCH_BYTES = BATCH_BYTES
"""Largest batch read whole to decode its records: more than any broker accepts."""


def record_rows(raw: bytes, batch: Row, file: LogFile, texts: BytesFormatter, limit: int) -> Iterator[Row]:
    """Yield a row for each record of one whole batch; what contradicts itself ends them with a damage row.

    `batch` is the batch's own row, `limit` bounds the decompressed bytes.
    """
    try:
        if len(raw) > MAGIC_OFFSET and raw[MAGIC_OFFSET] < CURRENT_MAGIC:
            yield from _legacy_rows(raw, batch, file, texts, limit)
        elif batch["is_control"]:
            yield from _control_rows(raw, batch, file, texts, limit)
        else:
            for record in read_records(raw, limit):
                yield content_row(_record_row(record, batch, file, texts), record.key, record.value)
    except WireError as error:
        kind = "limit-exceeded" if isinstance(error, LimitExceededError) else "malformed-batch"
        yield file.side_row(
            "damage", position=batch["position"], kind=kind, detail=str(error), base_offset=batch["base_offset"]
        )


def _common(kind: str, record: Record | LegacyRecord, batch: Row, file: LogFile) -> Row:
    """What rows of every kind of record have; its batch's producer is None in magic 0 and 1."""
    from_batch = {name: batch[name] for name in ("position", "producer_id", "producer_epoch", "leader_epoch")}
    return file.row(kind, offset=record.offset, timestamp=null(record.timestamp), **from_batch)


def _record_row(record: Record, batch: Row, file: LogFile, texts: BytesFormatter) -> Row:
    return _common("record", record, batch, file) | {
        "timestamp_type": batch["timestamp_type"],
        "sequence": record.sequence,
        "is_transactional": batch["is_transactional"],
        "key": texts.show(record.key),
        "value": texts.show(record.value),
        "headers": [
            {"key": record_header.key.decode("utf-8", "backslashreplace"), "value": texts.show(record_header.value)}
            for record_header in record.headers
        ],
        "size": record.size,
    }


def _control_rows(raw: bytes, batch: Row, file: LogFile, texts: BytesFormatter, limit: int) -> Iterator[Row]:
    for record in read_records(raw, limit):
        control = parse_control(record.key, record.value)
        if not control.type.ends_transaction:
            row = _record_row(record, batch, file, texts)
            yield row | {"row": "control", "control_type": control.type.name, "type_id": control.type_id}
            continue
        yield (
            _common("marker", record, batch, file)
            | {"control_type": control.type.name}
            | fields_of(control, ("version", "value_version"), or_null=["coordinator_epoch"])
        )


def _legacy_rows(raw: bytes, batch: Row, file: LogFile, texts: BytesFormatter, limit: int) -> Iterator[Row]:
    for record in read_legacy_records(parse_message(raw), limit):
        yield _common("record", record, batch, file) | {
            "timestamp_type": batch["timestamp_type"],
            "sequence": None,
            "is_transactional": False,
            "key": texts.show(record.key),
            "value": texts.show(record.value),
            "headers": [],
            "size": record.size,
            "crc_valid": record.crc_valid,
        }
