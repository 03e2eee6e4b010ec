"""One batch of a produce request, checked as the log and its validator do before its producer's state is.

Source: UnifiedLog.analyzeAndValidateRecords (Log before 3.0) and LogValidator.

How long a broker's compressed records are: it compresses a batch again where the topic names another codec.
"""

import zlib
from collections.abc import Iterator, Sequence
from zlib import crc32

import cramjam
import lz4.frame
import zstandard

from kaudit.broker.config import TopicLimits
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.record_set import Refusal, WireBatch, messages_in
from kaudit.broker.releases.profile import Profile
from kaudit.crc import crc32c
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.batch_header import ATTRIBUTES_OFFSET, CURRENT_MAGIC, HEADER_SIZE, MAGIC_OFFSET
from kaudit.formats.log.codecs import Codec, decompress
from kaudit.formats.log.legacy import LegacyMessage
from kaudit.formats.log.records import Record, read_records
from kaudit.model.batch_fields import (
    CODEC_MASK,
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
)

_GZIP_LEVEL, _GZIP_FRAME = 6, 31
_XERIAL_HEADER_BYTES, _XERIAL_BLOCK_BYTES, _XERIAL_LENGTH_BYTES = 16, 32 << 10, 4


def compressed_size(codec: Codec, records: bytes) -> int:
    """Return the length of compressed records, with the defaults of Kafka's codecs; libraries differ by a few bytes."""
    match codec:
        case Codec.GZIP:
            compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FRAME)
            return len(compressor.compress(records) + compressor.flush())
        case Codec.SNAPPY:
            blocks = [records[at : at + _XERIAL_BLOCK_BYTES] for at in range(0, len(records), _XERIAL_BLOCK_BYTES)]
            sizes = (_XERIAL_LENGTH_BYTES + len(cramjam.snappy.compress_raw(block)) for block in blocks)
            return _XERIAL_HEADER_BYTES + sum(sizes)
        case Codec.LZ4:
            return len(lz4.frame.compress(records, store_size=False))
        case Codec.ZSTD:
            return len(zstandard.ZstdCompressor(write_content_size=False).compress(records))
        case Codec.NONE:
            return len(records)


_LARGEST = 64 << 20
"""Bytes of records that are compressed here to learn how long a broker's would be."""


def check_encoding(batch: WireBatch, limits: TopicLimits) -> Refusal | None:
    """Check what a broker checks when it encodes a batch again; None as well where it writes the batch as it is.

    The builder's exceptions have no Kafka error code, hence -1.
    """
    if limits.older_format and batch.producer_id != NO_PRODUCER_ID:
        # The builder, made first where nothing is compressed, only looks at transactions (MemoryRecordsBuilder).
        is_plain = batch.attributes & CODEC_MASK == Codec.NONE and limits.codec in (None, Codec.NONE)
        is_built = is_plain and batch.is_transactional
        error = KafkaError.UNKNOWN_SERVER_ERROR if is_built else KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT
        return Refusal(error, "encoding it again: the topic's message format has no producer ids")
    if limits.codec is None or batch.attributes & CODEC_MASK == limits.codec:
        return None
    if batch.producer_id != NO_PRODUCER_ID and batch.producer_epoch == NO_PRODUCER_EPOCH:
        return Refusal(KafkaError.UNKNOWN_SERVER_ERROR, "encoding it again: invalid negative producer epoch")
    if batch.producer_id != NO_PRODUCER_ID and batch.base_sequence < 0:
        return Refusal(KafkaError.UNKNOWN_SERVER_ERROR, "encoding it again: invalid negative sequence number")
    if batch.is_transactional and batch.producer_id == NO_PRODUCER_ID:
        return Refusal(
            KafkaError.UNKNOWN_SERVER_ERROR, "encoding it again: a transactional batch without a producer id"
        )
    return None


def written_size(batch: WireBatch, limits: TopicLimits) -> int:
    """Return how many bytes a valid batch has in the log; 0 where an attempt gives fields instead of bytes."""
    data = batch.data
    codec = batch.attributes & CODEC_MASK
    if limits.codec is None or codec == limits.codec or not data or batch.magic < CURRENT_MAGIC:
        return len(data)

    records = decompress(codec, batch.magic, memoryview(data)[HEADER_SIZE:], _LARGEST)
    return HEADER_SIZE + compressed_size(Codec(limits.codec), records)


_VARINT_STOP = 0x80
_NOT_UNPACKED = (Reason.CODEC, Reason.DECOMPRESSION)


def check_batches(batches: Sequence[WireBatch], profile: Profile, limits: TopicLimits, now: int) -> Refusal | None:
    """Check the batches of a record set; return why they are refused. One refused batch refuses them all."""
    for batch in batches:
        refusal = check_batch(batch, profile, limits, now)
        if refusal is not None:
            return refusal
    if len(batches) == 1 or not profile.sets_are_uniform:
        return None
    if len({batch.magic for batch in batches}) > 1:
        return Refusal(profile.invalid_record_error, "batches of several magics")
    if any(batch.magic == CURRENT_MAGIC or batch.attributes & CODEC_MASK for batch in batches):
        return Refusal(profile.invalid_record_error, "more than one batch, of magic 2 or compressed")
    return None


def check_batch(batch: WireBatch, profile: Profile, limits: TopicLimits, now: int) -> Refusal | None:
    """Check one batch as the log and its validator do, before the producer's state; return why it is refused."""
    data = batch.data
    if data:
        if batch.base_offset != 0:  # never of magic 0 and 1, whose offsets nobody looks at
            return Refusal(profile.invalid_record_error, f"base offset {batch.base_offset}, from a client it must be 0")
        size = len(data)
        if size > limits.max_message_bytes:
            return Refusal(
                KafkaError.MESSAGE_TOO_LARGE, f"a batch of {size} bytes, {limits.max_message_bytes} are allowed"
            )
        if _computed_crc(batch) != batch.crc:
            return Refusal(KafkaError.CORRUPT_MESSAGE, f"the CRC {batch.crc:#010x} does not match the bytes")
        codec = batch.attributes & CODEC_MASK
        if codec > (Codec.ZSTD if profile.supports_zstd else Codec.LZ4):
            return Refusal(KafkaError.UNKNOWN_SERVER_ERROR, f"unknown compression codec {codec}")
    problem = _header_problem(batch, profile)
    if problem is not None:
        return Refusal(profile.invalid_record_error, problem)
    refusal = _check_records(batch, profile, limits) if data else None
    refusal = refusal or _check_timestamp(batch, profile, limits, now)
    return refusal or check_encoding(batch, limits) or _check_size(written_size(batch, limits), limits)


def _computed_crc(batch: WireBatch) -> int | None:
    """Return the CRC that a batch's bytes have, None where they end inside its header."""
    if batch.magic < CURRENT_MAGIC:
        return crc32(memoryview(batch.data)[MAGIC_OFFSET:])
    return None if len(batch.data) < HEADER_SIZE else crc32c(memoryview(batch.data)[ATTRIBUTES_OFFSET:])


def _check_size(size: int, limits: TopicLimits) -> Refusal | None:
    """Check the size a batch has in the log."""
    if size > limits.max_message_bytes:
        return Refusal(KafkaError.MESSAGE_TOO_LARGE, f"a batch of {size} bytes, {limits.max_message_bytes} are allowed")
    if size > limits.segment_bytes:
        return Refusal(
            KafkaError.RECORD_LIST_TOO_LARGE, f"a batch of {size} bytes, a segment holds {limits.segment_bytes}"
        )
    return None


def _header_problem(batch: WireBatch, profile: Profile) -> str | None:
    if batch.attributes & CONTROL_FLAG:
        return "clients must not write control batches"
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        return f"sequence {batch.base_sequence} with producer id {batch.producer_id}"
    if batch.record_count == 0 and profile.rejects_empty_batch:
        return "no records"
    if batch.record_count < 0 and profile.validates_offset_range:
        return f"{batch.record_count} records"
    if profile.validates_offset_range and batch.last_offset_delta + 1 != batch.record_count:
        return f"{batch.record_count} records but a last offset delta of {batch.last_offset_delta}"
    return None


def _check_records(batch: WireBatch, profile: Profile, limits: TopicLimits) -> Refusal | None:
    """Check the number of records, and that those of a compacted topic have keys.

    A codec that cannot decompress throws an exception without a Kafka error code, hence -1.
    """
    if batch.magic < CURRENT_MAGIC:
        records: Iterator[LegacyMessage | Record] = messages_in(batch.data)
    elif limits.compacted or batch.attributes & CODEC_MASK != Codec.NONE:
        records = read_records(batch.data)
    else:
        if batch.record_count == 0 or holds_records(batch.data, batch.record_count):
            return None  # without records, nobody looks for the end of the last one
        return Refusal(profile.invalid_record_error, f"the bytes do not hold {batch.record_count} records")
    try:
        for record in records:
            if isinstance(record, LegacyMessage) and not record.crc_valid:
                return Refusal(KafkaError.CORRUPT_MESSAGE, "the CRC of a message inside does not match its bytes")
            if limits.compacted and record.key is None:
                return Refusal(
                    profile.invalid_record_error, "a record without a key for a compacted topic", of_records=True
                )
    except WireError as error:
        unpacked = error.reason not in _NOT_UNPACKED
        code = profile.invalid_record_error if unpacked else KafkaError.UNKNOWN_SERVER_ERROR
        return Refusal(code, f"the records cannot be read: {error}")
    return None


def holds_records(data: bytes, count: int) -> bool:
    """Return whether an uncompressed batch holds `count` records and nothing else, by their lengths."""
    at, end = HEADER_SIZE, len(data)
    for _ in range(count):
        if at >= end:
            return False
        byte = data[at]
        at += 1
        if byte < _VARINT_STOP:
            at += byte >> 1
            continue
        raw, shift = byte & 0x7F, 7
        while at < end:
            byte = data[at]
            at += 1
            raw |= (byte & 0x7F) << shift
            shift += 7
            if byte < _VARINT_STOP:
                break
        at += raw >> 1
    return at == end


def _check_timestamp(batch: WireBatch, profile: Profile, limits: TopicLimits, now: int) -> Refusal | None:
    unstamped = limits.log_append_time or batch.max_timestamp == NO_TIMESTAMP
    if batch.attributes & LOG_APPEND_TIME_FLAG and (unstamped or not profile.takes_append_time_from_clients):
        return Refusal(
            KafkaError.INVALID_TIMESTAMP, "a client must not set the timestamp type to LogAppendTime", of_records=True
        )
    timestamp = batch.max_timestamp
    if limits.log_append_time or timestamp == NO_TIMESTAMP:
        return None
    if limits.ahead_ms is not None and timestamp - now > limits.ahead_ms:
        return Refusal(
            KafkaError.INVALID_TIMESTAMP,
            f"timestamp {timestamp} is {timestamp - now} ms ahead of the broker, {limits.ahead_ms} are allowed",
            of_records=True,
        )
    if limits.behind_ms is not None and now - timestamp > limits.behind_ms:
        return Refusal(
            KafkaError.INVALID_TIMESTAMP,
            f"timestamp {timestamp} is {now - timestamp} ms behind the broker, {limits.behind_ms} are allowed",
            of_records=True,
        )
    return None
