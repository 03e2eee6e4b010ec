"""Records inside one RecordBatch of magic 2.

Source of the format: Kafka's DefaultRecordBatch, DefaultRecord, DefaultRecordsSend and ByteUtils (zigzag varints).
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kaudit.crc import crc32c
from kaudit.formats.byte_reader import Buffer, varint
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.batch_header import (
    ATTRIBUTES_OFFSET,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
)
from kaudit.formats.log.codecs import Codec, compress, decompress
from kaudit.model.batch_fields import CODEC_MASK, LOG_APPEND_TIME_FLAG, NO_SEQUENCE
from kaudit.model.limits import UNPACKED_BYTES
from kaudit.model.sequence import add as add_sequence

DEFAULT_LIMIT: Final = UNPACKED_BYTES
"""Decompressed bytes of one batch, unless a caller says otherwise."""

_HEADER: Final = HEADER.struct(
    "base_offset",
    "batch_length",
    "magic",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "base_sequence",
    "record_count",
)
_HEAD: Final = HEADER.struct_between("base_offset", "crc")
_NULL_LENGTH: Final = -1
_MIN_RECORD_BYTES: Final = 7  # length, attributes, two deltas, two lengths, header count
_MAX_INT64: Final = 2**63 - 1
_MIN_INT64: Final = -(2**63)
_VARINT_BYTES: Final = 5
_VARLONG_BYTES: Final = 10


class Header(NamedTuple):
    """One record header. Kafka means `key` as UTF-8; it stays bytes here, so that odd clients lose nothing."""

    key: bytes
    value: bytes | None


class Record(NamedTuple):
    """One record of a batch, with its batch's offsets, times and sequences applied.

    `offset` 0..2^63-1; `timestamp` ms since 1970 (the batch's max_timestamp under LogAppendTime; -1 where the writer
    had none); `sequence` 0..2^31-1, None where the batch has no sequences; `key` and `value` are None when null, b""
    when empty; `position` is the byte of the record's length in the batch's uncompressed records, `size` its bytes
    including that length. A named tuple: a frozen dataclass costs a third of the whole parse.
    """

    offset: int
    timestamp: int
    sequence: int | None
    attributes: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    position: int
    size: int


class _Batch(NamedTuple):
    """The fields of a batch's header that its records need, as stored."""

    base_offset: int
    length: int
    magic: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    base_sequence: int
    record_count: int


def read_records(batch: Buffer, limit: int = DEFAULT_LIMIT) -> Iterator[Record]:
    """Yield the records of one whole batch (its header's first byte to its last), in order.

    `limit` bounds the decompressed bytes. Yields the records before a contradiction, then raises WireError: lengths,
    counts and deltas are checked against each other, and nothing may be left over. Positions in errors raised from
    inside the records are bytes of the uncompressed records. The CRC is not checked.
    """
    header = checked_header(batch)
    body = uncompressed(batch, header, limit)
    base_offset = header.base_offset
    last_offset = base_offset + header.last_offset_delta
    position, previous = 0, base_offset - 1
    for _ in range(header.record_count):
        try:
            record = _parse(body, position, header)
        except IndexError:
            raise WireError(position, Reason.TRUNCATED, "the records end inside a record") from None
        offset = record.offset
        if not previous < offset <= last_offset:
            delta, before, last = offset - base_offset, previous - base_offset, header.last_offset_delta
            raise WireError(position, Reason.ORDER, f"offset delta {delta} after {before}, last is {last}")
        previous = offset
        position += record.size
        yield record
    if position != len(body):
        raise WireError(position, Reason.TRAILING, f"{len(body) - position} bytes after the last record")


RecordChange = Callable[
    [bytes | None, bytes | None, tuple[Header, ...]], tuple[bytes | None, bytes | None, tuple[Header, ...]]
]
"""Key, value and headers of a record, to what takes their places."""


def rewritten(batch: Buffer, change: RecordChange, limit: int = DEFAULT_LIMIT) -> bytes:
    """Return a whole batch with the key, the value and the headers that `change` makes of those of each record.

    All else stays: offset, leader epoch, attributes, timestamps, producer, sequence; length and CRC are those of the result. Raises
    WireError for a batch that `read_records` refuses.
    """
    for _ in read_records(batch, limit):
        pass  # nothing is changed of what is not whole
    header = checked_header(batch)
    body = uncompressed(batch, header, limit)
    records: list[bytes] = []
    end = 0
    for _ in range(header.record_count):
        length, start = _varint(body, end, _VARINT_BYTES)
        end = start + length
        _, position = _varint(body, start + 1, _VARLONG_BYTES)
        _, position = _varint(body, position, _VARINT_BYTES)
        fixed = body[start:position]
        key, position = _nullable(body, position, end, "key")
        value, position = _nullable(body, position, end, "value")
        headers, _ = _headers(body, position, end)
        key, value, headers = change(key, value, headers)
        named = [part for each in headers for part in (_sized(each.key), _sized(each.value))]
        content = b"".join([fixed, _sized(key), _sized(value), varint(len(headers)), *named])
        records.append(varint(len(content)) + content)
    packed = compress(header.attributes & CODEC_MASK, b"".join(records)) if records or len(batch) > HEADER_SIZE else b""
    return resealed(batch, packed)


def resealed(batch: Buffer, records: bytes) -> bytes:
    """Return a batch of magic 2 with other records, as they are stored, and with the length and the CRC of these."""
    covered = bytes(batch[ATTRIBUTES_OFFSET:HEADER_SIZE]) + records
    head = _HEAD.unpack_from(batch)
    return _HEAD.pack(head[0], ATTRIBUTES_OFFSET - LOG_OVERHEAD + len(covered), *head[2:-1], crc32c(covered)) + covered


def _sized(content: bytes | None) -> bytes:
    return varint(_NULL_LENGTH) if content is None else varint(len(content)) + content


def checked_header(batch: Buffer) -> _Batch:
    """Return the header of one whole batch. Raises WireError where it contradicts itself or the batch's size."""
    size = len(batch)
    if size < HEADER_SIZE:
        raise WireError(size, Reason.TRUNCATED, f"{size} bytes are less than a batch header")
    header = _Batch._make(_HEADER.unpack_from(batch))
    if header.magic != CURRENT_MAGIC:
        raise WireError(MAGIC_OFFSET, Reason.VERSION, f"magic {header.magic} where {CURRENT_MAGIC} was expected")
    if header.length + LOG_OVERHEAD != size:
        raise WireError(LENGTH_OFFSET, Reason.LENGTH, f"batch of {size} bytes says {header.length + LOG_OVERHEAD}")
    delta = header.last_offset_delta
    if delta < 0 or header.base_offset + delta > _MAX_INT64:
        at = HEADER.offset("last_offset_delta")
        raise WireError(at, Reason.ORDER, f"last offset delta {delta} after base offset {header.base_offset}")
    # Compaction removes records and keeps the delta: fewer is fine, more is not.
    if not 0 <= header.record_count <= delta + 1:
        at = HEADER.offset("record_count")
        raise WireError(at, Reason.COUNT, f"{header.record_count} records in {delta + 1} offsets")
    return header


def uncompressed(batch: Buffer, header: _Batch, limit: int) -> bytes:
    """Return the bytes of a batch's records, at most `limit`. Raises WireError where they cannot be decompressed."""
    codec = header.attributes & CODEC_MASK
    if codec == Codec.NONE:
        return bytes(batch[HEADER_SIZE:])
    if header.record_count == 0 and len(batch) == HEADER_SIZE:
        return b""  # compaction keeps the codec bits of a batch it emptied
    return decompress(codec, header.magic, batch[HEADER_SIZE:], limit)


def _parse(data: bytes, position: int, batch: _Batch) -> Record:
    """Read one record; IndexError where it goes past the buffer.

    The one-byte varint is written out at each place: this is most of the time of reading small records.
    """
    start = position
    byte = data[position]
    if byte < 0x80:
        length = (byte >> 1) ^ -(byte & 1)
        position += 1
    else:
        length, position = _varint(data, position, _VARINT_BYTES)
    end = position + length
    if length < _MIN_RECORD_BYTES - 1 or end > len(data):
        raise WireError(start, Reason.LENGTH, f"record of {length} bytes, {len(data) - position} are left")
    attributes = data[position]
    position += 1
    byte = data[position]
    if byte < 0x80:
        timestamp_delta = (byte >> 1) ^ -(byte & 1)
        position += 1
    else:
        timestamp_delta, position = _varint(data, position, _VARLONG_BYTES)
    byte = data[position]
    if byte < 0x80:
        offset_delta = (byte >> 1) ^ -(byte & 1)
        position += 1
    else:
        offset_delta, position = _varint(data, position, _VARINT_BYTES)
    key, position = _nullable(data, position, end, "key")
    value, position = _nullable(data, position, end, "value")
    headers: tuple[Header, ...] = ()
    if data[position] == 0:
        position += 1
    else:
        headers, position = _headers(data, position, end)
    if position != end:
        raise WireError(start, Reason.LENGTH, f"record says it ends at {end}, its fields end at {position}")
    timestamp = (
        batch.max_timestamp if batch.attributes & LOG_APPEND_TIME_FLAG else batch.base_timestamp + timestamp_delta
    )
    if not _MIN_INT64 <= timestamp <= _MAX_INT64:
        raise WireError(
            start, Reason.VALUE, f"timestamp {batch.base_timestamp} + {timestamp_delta} does not fit in int64"
        )
    sequence = batch.base_sequence
    return Record(
        batch.base_offset + offset_delta,
        timestamp,
        None if sequence == NO_SEQUENCE else add_sequence(sequence, offset_delta),
        attributes,
        key,
        value,
        headers,
        start,
        end - start,
    )


def _nullable(data: bytes, position: int, end: int, what: str) -> tuple[bytes | None, int]:
    start = position
    byte = data[position]
    if byte < 0x80:
        length = (byte >> 1) ^ -(byte & 1)
        position += 1
    else:
        length, position = _varint(data, position, _VARINT_BYTES)
    if length < 0:
        if length == _NULL_LENGTH:
            return None, position
        raise WireError(start, Reason.LENGTH, f"{what} of length {length}")
    stop = position + length
    if stop > end:
        raise WireError(start, Reason.LENGTH, f"{what} of {length} bytes, the record has {end - position} left")
    return data[position:stop], stop


def _headers(data: bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    start = position
    count, position = _varint(data, position, _VARINT_BYTES)
    # A header takes two bytes at least: this bounds the loop before it starts.
    if count < 0 or 2 * count > end - position:
        raise WireError(start, Reason.COUNT, f"{count} headers, the record has {end - position} bytes left")
    headers = []
    for _ in range(count):
        start = position
        key, position = _nullable(data, position, end, "header key")
        if key is None:
            raise WireError(start, Reason.LENGTH, "a header key must not be null")
        value, position = _nullable(data, position, end, "header value")
        headers.append(Header(key, value))
    return tuple(headers), position


def _varint(data: bytes, position: int, max_bytes: int) -> tuple[int, int]:
    """Zigzag varint of at most `max_bytes` groups (5: int32, 10: int64): (value, position after it)."""
    start = position
    raw = shift = 0
    for _ in range(max_bytes):
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> (32 if max_bytes == _VARINT_BYTES else 64):
                break
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    raise WireError(start, Reason.VARINT, f"varint beyond {max_bytes} bytes or its type")
