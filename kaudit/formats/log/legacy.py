"""Messages of magic 0 and 1, and the compressed wrappers around sets of them.

Source of the format: Kafka's LegacyRecord, AbstractLegacyRecordBatch and its DeepRecordsIterator. They carry no producer
fields: nothing about producers can be checked before magic 2.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.batch_header import LEGACY_MAGICS, LOG_OVERHEAD, MAGIC_OFFSET, MESSAGE_V0, MESSAGE_V1
from kaudit.formats.log.codecs import Codec, compress, decompress
from kaudit.formats.log.records import DEFAULT_LIMIT
from kaudit.model.batch_fields import CODEC_MASK, LOG_APPEND_TIME_FLAG

_HEAD: Final = MESSAGE_V0.struct("offset", "message_size", "crc", "magic", "attributes")
_OFFSET_AND_SIZE: Final = MESSAGE_V0.struct("offset", "message_size")
_TIMESTAMP: Final = MESSAGE_V1.struct("timestamp")
_LENGTH: Final = MESSAGE_V0.struct("key_length")
_SIZE_OFFSET: Final = MESSAGE_V0.offset("message_size")
_NULL_LENGTH: Final = -1


class LegacyMessage(Struct, frozen=True):
    """One entry of a segment as it lies there: a message, or a wrapper whose `value` is a compressed message set.

    `offset` as stored (a wrapper's is its last record's); `size` in bytes including the 12 of offset and size; `crc`
    unsigned as stored (CRC-32 from magic to the end); `codec` is attributes & 7, 0..7; `timestamp` ms since 1970, None
    in magic 0; `position` the byte of the entry in the buffer it was read from. A null key or value is None.
    """

    offset: int
    size: int
    crc: int
    crc_valid: bool
    magic: int
    attributes: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    position: int

    @property
    def codec(self) -> int:
        """Compression codec of the value, see Codec; 0 for a plain message."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """True if the broker set the timestamp; magic 0 has none."""
        return self.magic > 0 and bool(self.attributes & LOG_APPEND_TIME_FLAG)


class LegacyRecord(NamedTuple):
    """One record, unwrapped: `offset` absolute, `timestamp` ms (None in magic 0), `crc_valid` of its own CRC.

    `position` is the byte of its entry: in the segment's buffer for a plain message, in the decompressed set otherwise.
    """

    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    crc_valid: bool
    position: int
    size: int


def parse_message(data: Buffer, position: int = 0) -> LegacyMessage:
    """Decode the entry that starts at byte `position` of `data`; a wrapper is not opened.

    Raises WireError: TRUNCATED if the buffer ends inside the entry, VERSION for another magic, LENGTH if sizes
    contradict each other. A CRC that does not hold is reported in the result.
    """
    size = len(data)
    try:
        offset, length, crc, magic, attributes = _HEAD.unpack_from(data, position)
    except struct.error:
        left = max(size - position, 0)
        raise WireError(size, Reason.TRUNCATED, f"{left} bytes left, an entry has {_HEAD.size} at least") from None
    if magic not in LEGACY_MAGICS:
        raise WireError(position + MAGIC_OFFSET, Reason.VERSION, f"magic {magic} where 0 or 1 was expected")
    end = position + LOG_OVERHEAD + length
    fields = position + _HEAD.size
    shortest = fields + 2 * _LENGTH.size + (_TIMESTAMP.size if magic else 0)
    if end < shortest:
        raise WireError(
            position + _SIZE_OFFSET, Reason.LENGTH, f"message size {length} is below the least of magic {magic}"
        )
    if end > size:
        raise WireError(
            size, Reason.TRUNCATED, f"message size {length}, {size - position - LOG_OVERHEAD} bytes are left"
        )
    timestamp: int | None = None
    if magic:
        (timestamp,) = _TIMESTAMP.unpack_from(data, fields)
        fields += _TIMESTAMP.size
    key, fields = _nullable(data, fields, end - _LENGTH.size, "key")
    value, fields = _nullable(data, fields, end, "value")
    if fields != end:
        raise WireError(fields, Reason.LENGTH, f"{end - fields} bytes of the message after its value")
    computed = zlib.crc32(memoryview(data)[position + MAGIC_OFFSET : end])
    return LegacyMessage(
        offset, end - position, crc, computed == crc, magic, attributes & 0xFF, timestamp, key, value, position
    )


def _nullable(data: Buffer, position: int, end: int, what: str) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(data, position)
    start = position + _LENGTH.size
    if length == _NULL_LENGTH:
        return None, start
    if length < 0 or start + length > end:
        raise WireError(position, Reason.LENGTH, f"{what} of {length} bytes, {end - start} are left")
    return bytes(data[start : start + length]), start + length


def read_messages(data: Buffer) -> Iterator[LegacyMessage]:
    """Yield the entries of a whole message set, wrappers closed; raises WireError at the first that is malformed."""
    position = 0
    while position < len(data):
        message = parse_message(data, position)
        yield message
        position += message.size


def read_legacy_records(message: LegacyMessage, limit: int = DEFAULT_LIMIT) -> Iterator[LegacyRecord]:
    """Yield the records of one entry: itself if it is plain, else those inside, at most `limit` decompressed bytes.

    Inner offsets are absolute in magic 0 and count from the first record in magic 1; under LogAppendTime all have the
    wrapper's timestamp. Raises WireError (positions are then bytes of the decompressed set): TRUNCATED and LENGTH as
    parse_message, VERSION for another magic inside, CODEC for compression inside compression, COUNT for a wrapper
    without records, ORDER for offsets that do not rise to the wrapper's.
    """
    if message.codec == Codec.NONE:
        yield LegacyRecord(
            message.offset,
            message.timestamp,
            message.key,
            message.value,
            message.crc_valid,
            message.position,
            message.size,
        )
        return
    if message.value is None:
        raise WireError(0, Reason.COUNT, "a compressed wrapper whose value is null")
    inner = decompress(message.codec, message.magic, message.value, limit)
    if not inner:
        raise WireError(0, Reason.COUNT, "a compressed wrapper without records")
    # Magic 1 counts from 0 so that brokers need not rewrite the set; its last record has the wrapper's offset.
    base = message.offset - _last_offset(inner) if message.magic else 0
    previous: int | None = None
    for entry in read_messages(inner):
        if entry.magic != message.magic:
            raise WireError(entry.position, Reason.VERSION, f"magic {entry.magic} inside magic {message.magic}")
        if entry.codec != Codec.NONE:
            raise WireError(entry.position, Reason.CODEC, "compression inside compression")
        offset = base + entry.offset
        if not (previous is None or previous < offset) or not 0 <= offset <= message.offset:
            raise WireError(entry.position, Reason.ORDER, f"offset {offset} after {previous} in {message.offset}")
        previous = offset
        yield LegacyRecord(
            offset,
            message.timestamp if message.is_log_append_time else entry.timestamp,
            entry.key,
            entry.value,
            entry.crc_valid,
            entry.position,
            entry.size,
        )


def rewritten_legacy(data: Buffer, change: Callable[[bytes | None], bytes | None], limit: int = DEFAULT_LIMIT) -> bytes:
    """Return one entry with what `change` makes of its key and its value, or of those of the messages in it; all else stays.

    Raises WireError as `parse_message`, `read_legacy_records` and `compress` do.
    """
    message = parse_message(data)
    value = change(message.value)
    if message.codec != Codec.NONE and message.value is not None:
        inner = decompress(message.codec, message.magic, message.value, limit)
        places = [(each.position, each.position + each.size) for each in read_messages(inner)]
        value = compress(
            message.codec, b"".join(rewritten_legacy(inner[start:end], change, limit) for start, end in places)
        )
    head = bytes(data[MAGIC_OFFSET : _HEAD.size + (_TIMESTAMP.size if message.magic else 0)])
    covered = head + _sized(change(message.key)) + _sized(value)
    return _OFFSET_AND_SIZE.pack(message.offset, 4 + len(covered)) + zlib.crc32(covered).to_bytes(4, "big") + covered


def _sized(content: bytes | None) -> bytes:
    return _LENGTH.pack(_NULL_LENGTH) if content is None else _LENGTH.pack(len(content)) + content


def _last_offset(message_set: bytes) -> int:
    """Find the stored offset of the last entry by sizes alone: the records need not all be held to know it."""
    position = offset = 0
    while position < len(message_set):
        if position + LOG_OVERHEAD > len(message_set):
            raise WireError(len(message_set), Reason.TRUNCATED, "the message set ends inside an entry")
        offset, length = _OFFSET_AND_SIZE.unpack_from(message_set, position)
        if length <= 0:
            raise WireError(position + _SIZE_OFFSET, Reason.LENGTH, f"message size {length}")
        position += LOG_OVERHEAD + length
    return int(offset)
