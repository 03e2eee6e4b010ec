"""Record batches, their records and damage as rows: the columns `batch`, `record` and `damage` of the table of columns.

Records of any magic are decoded; those of internal topics are shown by what they mean.
"""

from collections.abc import Iterator

from kaudit.formats.errors import LimitExceededError, WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC, MAGIC_OFFSET
from kaudit.formats.log.codecs import Codec
from kaudit.formats.log.control import ControlType, parse_control
from kaudit.formats.log.legacy import LegacyRecord, parse_message, read_legacy_records
from kaudit.formats.log.records import Record, read_records
from kaudit.inspect.internal_topics import content_row, control_content
from kaudit.inspect.rows import BytesFormatter, LogFile, Row, fields_of, null
from kaudit.model.batch import Batches, last_offsets, last_sequences
from kaudit.model.batch_fields import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
)
from kaudit.model.damage import DamageKind, LogDamage
from kaudit.model.limits import BATCH_BYTES

_NULLABLE = (
    "base_offset",
    "last_offset_delta",
    "record_count",
    "leader_epoch",
    "base_timestamp",
    "max_timestamp",
    "coordinator_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)
_NO_BATCH = -1


def codec_name(attributes: int) -> str:
    """Name of the compression codec; `codec-5` and on for numbers no release has used."""
    codec = attributes & CODEC_MASK
    return Codec(codec).name.lower() if codec <= max(Codec) else f"codec-{codec}"


def control_name(control_type: int, record_count: int | None) -> str | None:
    """Type of a control batch: COMMIT, ABORT, KRaft's own, UNKNOWN, UNDECODED; None where compaction emptied it."""
    if record_count == 0:
        return None
    if control_type < _NO_BATCH:
        return "UNDECODED"
    return ControlType(control_type).name


def batch_rows(batches: Batches, file: LogFile, *, crc_valid: bool | None = True) -> Iterator[Row]:
    """Yield a row for each batch, in order. A field is None only when that field itself is -1, or the magic has none."""
    columns = {name: batches[name] for name in _NULLABLE}
    columns |= {"last_offset": last_offsets(batches), "last_sequence": last_sequences(batches)}
    nullable = {name: [null(value) for value in column.tolist()] for name, column in columns.items()}
    others = {name: batches[name].tolist() for name in ("position", "size", "crc", "magic")}
    attributes, control_types = batches["attributes"].tolist(), batches["control_type"].tolist()
    common = file.row("batch", crc_valid=crc_valid)
    by_name = {**nullable, **others}
    for index, flags in enumerate(attributes):
        magic = others["magic"][index]
        current = magic >= CURRENT_MAGIC
        row = common | {name: values[index] for name, values in by_name.items()}
        row["codec"] = codec_name(flags)
        row["is_transactional"] = current and bool(flags & TRANSACTIONAL_FLAG)
        is_control = current and bool(flags & CONTROL_FLAG)
        row["is_control"] = is_control
        row["control_type"] = (
            control_name(control_types[index], nullable["record_count"][index]) if is_control else None
        )
        row["timestamp_type"] = timestamp_type(magic, flags)
        row["delete_horizon_ms"] = row["base_timestamp"] if current and flags & DELETE_HORIZON_FLAG else None
        if not current and flags & CODEC_MASK:
            # a wrapper names its last offset only; its records are known once it is opened (--records)
            row["base_offset"] = row["last_offset_delta"] = row["record_count"] = None
        yield row


def timestamp_type(magic: int, attributes: int) -> str | None:
    """Name of the timestamp type; None in magic 0, which has no timestamps."""
    if magic == 0:
        return None
    return "LogAppendTime" if attributes & LOG_APPEND_TIME_FLAG else "CreateTime"


def damage_row(damage: LogDamage, file: LogFile, broker: str, missing: tuple[int | None, int | None]) -> Row:
    """Return a row for a range of bytes that is not a valid batch; `end` is the byte after it, `broker` what a broker does with it.

    `missing` are the first and last offset that are not there because of it: (None, None) if none is, and the last one
    None where no later batch bounds it.
    """
    return file.side_row(
        "damage",
        size=damage.end - damage.position,
        kind=damage.kind.value,
        first_missing_offset=missing[0],
        last_missing_offset=missing[1],
        broker=broker,
        **fields_of(damage, ("position", "end", "detail", "resynchronised", "base_offset")),
    )


def is_batch(damage: LogDamage) -> bool:
    """Whether the framing is intact: the bytes can be shown as a batch whose CRC does not match."""
    return damage.kind is DamageKind.CRC_MISMATCH


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
    """Return the fields of every kind of record; the producer is None in magic 0 and 1."""
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
            yield (
                row
                | {"row": "control", "control_type": control.type.name, "type_id": control.type_id}
                | control_content(control.type_id, record.value)
            )
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
