"""One batch header byte by byte: each field with its bytes, its value and what the value means here."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from kaudit.crc import crc32c
from kaudit.formats.log.batch_header import (
    ATTRIBUTES_OFFSET,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MESSAGE_V0,
    MESSAGE_V1,
    plausible_length,
)
from kaudit.inspect.batch_rows import codec_name
from kaudit.inspect.row_filter import RowFilter
from kaudit.inspect.rows import Row, fields_of
from kaudit.inspect.segment import SegmentReader
from kaudit.model.batch_fields import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
)
from kaudit.model.sequence import add as add_sequence

_SCHEMAS = {0: MESSAGE_V0, 1: MESSAGE_V1}
_SHOWN_PAYLOAD = 32
_CRC_PIECE = 1 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Field(Struct, frozen=True):
    name: str
    position: int
    raw: bytes
    value: int | None


def field_rows(segment: SegmentReader, position: int) -> Iterator[Row]:
    """Yield the fields of the batch that holds byte `position`, in file order; `here` marks the field with that byte.

    Inside damage the bytes from `position` on are shown as the header they may have been.
    """
    start = _start_of_batch(segment, position)
    head = segment.read(start, HEADER_SIZE + _SHOWN_PAYLOAD)
    fields = _fields(head, start)
    header = _Header({field.name: field.value for field in fields if field.value is not None}, segment, start)
    for field in fields:
        yield _row(segment, field, position, header.meaning(field))
    header_end = fields[-1].position + len(fields[-1].raw) if fields else start
    length = header.length
    end = min(start + LOG_OVERHEAD + length, segment.size) if length is not None and length >= 0 else segment.size
    if end > header_end:
        payload = _Field("payload", header_end, head[header_end - start :][: end - header_end], None)
        row = _row(segment, payload, position, f"{end - header_end} bytes to byte {end}")
        yield row | {"length": end - header_end, "here": header_end <= position < end}


def _start_of_batch(segment: SegmentReader, position: int) -> int:
    for row in segment.rows(RowFilter()):
        start, size = row["position"], row["size"]
        assert isinstance(start, int)
        assert isinstance(size, int)
        if start <= position < start + size:
            return start if row["row"] == "batch" or position < start + HEADER_SIZE else position
    return position


def _fields(head: bytes, start: int) -> list[_Field]:
    magic = head[MAGIC_OFFSET] if len(head) > MAGIC_OFFSET else CURRENT_MAGIC
    schema = _SCHEMAS.get(magic, HEADER)
    fields: list[_Field] = []
    for field in schema.fields:
        raw = head[field.offset : field.offset + field.size]
        if not raw:
            break
        value = schema.struct(field.name).unpack(raw)[0] if len(raw) == field.size else None
        fields.append(_Field(field.name, start + field.offset, raw, value))
    return fields


def _row(segment: SegmentReader, field: _Field, position: int, meaning: str) -> Row:
    return {
        "row": "field",
        **fields_of(segment.file, ("topic", "partition", "segment")),
        "position": field.position,
        "length": len(field.raw),
        "field": field.name,
        "hex": field.raw.hex(" "),
        "value": field.value,
        "meaning": meaning,
        "here": field.position <= position < field.position + len(field.raw),
    }


class _Header(Struct, frozen=True):
    """The values of one header by name, and the batch they are of: it begins at byte `start` of `segment`.

    A file that ends in the header has no values from there on: of a field those before it are known.
    """

    values: Mapping[str, int]
    segment: SegmentReader
    start: int

    def meaning(self, field: _Field) -> str:
        """Return what the field's value means in this batch; empty where the value says it all."""
        if field.value is None:
            return "cut off by the end of the file"
        explain = _MEANINGS.get(field.name)
        return "" if explain is None else explain(self, field.value)

    @property
    def length(self) -> int | None:
        """Bytes after the length field."""
        return self.values.get("batch_length", self.values.get("message_size"))

    def base_offset(self, value: int) -> str:
        delta = self.values.get("last_offset_delta")
        return "" if delta is None else f"offsets {value} to {value + delta}"

    def batch_length(self, value: int) -> str:
        end, magic = self.start + LOG_OVERHEAD + value, self.values.get("magic")
        if magic is not None and not plausible_length(magic, value):
            return "too short for a batch"
        if end > self.segment.size:
            return f"ends at byte {end}, beyond the file's {self.segment.size}"
        return f"ends at byte {end}" + (", the end of the file" if end == self.segment.size else "")

    def magic(self, value: int) -> str:
        return "" if 0 <= value <= CURRENT_MAGIC else "unknown message format"

    def crc(self, stored: int) -> str:
        length, text = self.length, f"{stored:#010x}"
        assert length is not None  # it stands before the crc
        stop = self.start + LOG_OVERHEAD + length
        if length < 0 or stop > self.segment.size:
            return f"{text}, cannot be checked"
        current = self.values["magic"] >= CURRENT_MAGIC
        computed = 0
        for at in range(self.start + (ATTRIBUTES_OFFSET if current else MAGIC_OFFSET), stop, _CRC_PIECE):
            piece = self.segment.read(at, min(_CRC_PIECE, stop - at))
            computed = crc32c(piece, computed) if current else zlib.crc32(piece, computed)
        return f"{text}, matches" if computed == stored else f"{text}, computed {computed:#010x}"

    def attributes(self, value: int) -> str:
        magic = self.values["magic"]
        parts = [codec_name(value & CODEC_MASK)]
        if magic:
            parts.append("LogAppendTime" if value & LOG_APPEND_TIME_FLAG else "CreateTime")
        if magic == CURRENT_MAGIC:
            flags = ((TRANSACTIONAL_FLAG, "transactional"), (CONTROL_FLAG, "control"), (DELETE_HORIZON_FLAG, "horizon"))
            parts += [name for flag, name in flags if value & flag]
        return ", ".join(parts)

    def base_timestamp(self, value: int) -> str:
        horizon = self.values["attributes"] & DELETE_HORIZON_FLAG
        return _time(value) + (", the delete horizon" if horizon else "")

    def timestamp(self, value: int) -> str:
        return _time(value)

    def base_sequence(self, value: int) -> str:
        delta = self.values["last_offset_delta"]
        if value < 0 or delta < 0:
            return "no sequence" if value == -1 else ""
        return f"sequences {value} to {add_sequence(value, delta)}"

    def record_count(self, value: int) -> str:
        delta = self.values["last_offset_delta"]
        return "" if value == delta + 1 else f"the last offset delta implies {delta + 1}"

    def none_if_absent(self, value: int) -> str:
        return "none" if value == -1 else ""


_MEANINGS: Mapping[str, Callable[[_Header, int], str]] = {
    "base_offset": _Header.base_offset,
    "batch_length": _Header.batch_length,
    "message_size": _Header.batch_length,
    "magic": _Header.magic,
    "crc": _Header.crc,
    "attributes": _Header.attributes,
    "base_timestamp": _Header.base_timestamp,
    "max_timestamp": _Header.timestamp,
    "timestamp": _Header.timestamp,
    "base_sequence": _Header.base_sequence,
    "record_count": _Header.record_count,
    **dict.fromkeys(("producer_id", "producer_epoch", "leader_epoch", "key_length"), _Header.none_if_absent),
}


def _time(value: int) -> str:
    if value == -1:
        return "none"
    try:
        time = _EPOCH + timedelta(milliseconds=value)
    except OverflowError:
        return "outside the calendar"
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
