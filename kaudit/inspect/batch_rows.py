"""Record batches and damage as rows: the columns `batch` and `damage` of `kaudit.model.table_columns`."""

from collections.abc import Iterator

from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.codecs import Codec
from kaudit.formats.log.control import ControlType
from kaudit.inspect.file_kinds import LogFile
from kaudit.inspect.rows import Row, fields_of, null
from kaudit.model.batch import Batches, last_offsets, last_sequences
from kaudit.model.batch_fields import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
)
from kaudit.model.damage import DamageKind, LogDamage

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
            # a wrapper names its last offset only; what lies in it is known once it is opened (--records)
            row["base_offset"] = row["last_offset_delta"] = row["record_count"] = None
        yield row


def timestamp_type(magic: int, attributes: int) -> str | None:
    """Name of the timestamp type; None in magic 0, which has no timestamps."""
    if magic == 0:
        return None
    return "LogAppendTime" if attributes & LOG_APPEND_TIME_FLAG else "CreateTime"


def damage_row(damage: LogDamage, file: LogFile, broker: str, missing: tuple[int | None, int | None]) -> Row:
    """A row for a range of bytes that is not a valid batch; `end` is the byte after it, `broker` what a broker does with it.

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
