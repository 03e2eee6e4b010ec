"""The headers of record batches and of the messages before them, field by field: the one place that knows their bytes.

Source: Kafka's DefaultRecordBatch (magic 2), LegacyRecord and Records (magic 0 and 1).
"""

from typing import Final, NamedTuple

from kaudit.formats.wire_format import WireFormat
from kaudit.model.schema import Int8, Int16, Int32, Int64, UInt32


class RecordBatchHeader(NamedTuple):
    """The header of a RecordBatch (magic 2); its CRC-32C covers what follows the crc, records included."""

    base_offset: Int64
    batch_length: Int32
    """Bytes after this field."""
    leader_epoch: Int32
    magic: Int8
    crc: UInt32
    attributes: Int16
    last_offset_delta: Int32
    base_timestamp: Int64
    max_timestamp: Int64
    producer_id: Int64
    producer_epoch: Int16
    base_sequence: Int32
    record_count: Int32


class MessageV0(NamedTuple):
    """A message of magic 0 up to its key; its CRC-32 covers what follows the crc."""

    offset: Int64
    message_size: Int32
    """Bytes after this field."""
    crc: UInt32
    magic: Int8
    attributes: Int8
    key_length: Int32


class MessageV1(NamedTuple):
    """A message of magic 1 up to its key: as magic 0, with a timestamp."""

    offset: Int64
    message_size: Int32
    crc: UInt32
    magic: Int8
    attributes: Int8
    timestamp: Int64
    key_length: Int32


HEADER: Final = WireFormat(RecordBatchHeader)
MESSAGE_V0: Final = WireFormat(MessageV0)
MESSAGE_V1: Final = WireFormat(MessageV1)

CURRENT_MAGIC: Final = 2
LEGACY_MAGICS: Final = (0, 1)

HEADER_SIZE: Final = HEADER.size
LENGTH_OFFSET: Final = HEADER.offset("batch_length")
LOG_OVERHEAD: Final = HEADER.end("batch_length")
"""Bytes of offset and length in front of every batch (Records.LOG_OVERHEAD); the length field counts what follows them."""
MAGIC_OFFSET: Final = HEADER.offset("magic")
"""Every magic has this field at the same byte."""
CRC_OFFSET: Final = HEADER.offset("crc")
ATTRIBUTES_OFFSET: Final = HEADER.offset("attributes")
FLAGS_OFFSET: Final = HEADER.end("attributes") - 1
"""The low byte of the attributes, which holds all bits in use."""
PREFIX_SIZE: Final = HEADER.end("magic")
"""Bytes needed to know a batch's length and magic."""
MIN_LENGTH_V2: Final = HEADER_SIZE - LOG_OVERHEAD
MIN_LENGTH_LEGACY: Final = MESSAGE_V0.size - LOG_OVERHEAD + 4
"""A message of magic 0 without key and value, which still has their lengths (LegacyRecord.RECORD_OVERHEAD_V0)."""

assert MESSAGE_V0.offset("magic") == MESSAGE_V1.offset("magic") == MAGIC_OFFSET


def plausible_length(magic: int, length: int) -> bool:
    """Return whether a batch of this magic can have this length field."""
    if magic == CURRENT_MAGIC:
        return length >= MIN_LENGTH_V2
    return magic in LEGACY_MAGICS and length >= MIN_LENGTH_LEGACY


def batch_size(header: bytes | bytearray | memoryview, at: int = 0) -> int:
    """Return the bytes of the whole batch that starts at `at`, of any magic, as its length field says: -2^31 + 12 and more."""
    return int.from_bytes(header[at + LENGTH_OFFSET : at + LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD


def base_offset_of(header: bytes | bytearray | memoryview, at: int = 0) -> int:
    """Return the offset field of the batch that starts at `at`, of any magic: -2^63..2^63-1."""
    return int.from_bytes(header[at : at + LENGTH_OFFSET], "big", signed=True)
