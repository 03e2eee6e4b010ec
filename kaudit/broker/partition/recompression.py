"""Batches that a broker encodes again because the topic has a compression.type of its own, other than the batch's.

Source: LogValidator.validateMessagesAndAssignOffsetsCompressed, MemoryRecordsBuilder.validateProducerState.
"""

import zlib

from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.record_set import Refusal, WireBatch
from kaudit.broker.partition.topic_config import TopicLimits
from kaudit.formats.log.batch_header import HEADER_SIZE
from kaudit.formats.log.codecs import Codec, decompress
from kaudit.model.batch_fields import CODEC_MASK, NO_PRODUCER_EPOCH, NO_PRODUCER_ID

_GZIP_LEVEL, _GZIP_FRAME = 6, 31
_XERIAL_HEADER_BYTES, _XERIAL_BLOCK_BYTES, _XERIAL_LENGTH_BYTES = 16, 32 << 10, 4
_LARGEST = 64 << 20
"""Bytes of records that are compressed here to learn how long a broker's would be."""


def check_encoding(batch: WireBatch, limits: TopicLimits) -> Refusal | None:
    """Check what a broker checks when it encodes a batch again; None as well where it writes the batch as it is.

    The builder's exceptions have no Kafka error code, hence -1.
    """
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
    if limits.codec is None or codec == limits.codec or not data:
        return len(data)
    records = decompress(codec, batch.magic, memoryview(data)[HEADER_SIZE:], _LARGEST)
    return HEADER_SIZE + _compressed_size(Codec(limits.codec), records)


def _compressed_size(codec: Codec, records: bytes) -> int:
    """Return the length of compressed records, with the defaults of Kafka's codecs; libraries differ by a few bytes."""
    match codec:
        case Codec.GZIP:
            compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FRAME)
            return len(compressor.compress(records) + compressor.flush())
        case Codec.SNAPPY:
            import cramjam  # noqa: PLC0415 - only for who compresses

            blocks = [records[at : at + _XERIAL_BLOCK_BYTES] for at in range(0, len(records), _XERIAL_BLOCK_BYTES)]
            sizes = (_XERIAL_LENGTH_BYTES + len(cramjam.snappy.compress_raw(block)) for block in blocks)
            return _XERIAL_HEADER_BYTES + sum(sizes)
        case Codec.LZ4:
            import lz4.frame  # noqa: PLC0415 - only for who compresses

            return len(lz4.frame.compress(records, store_size=False))
        case Codec.ZSTD:
            import zstandard  # noqa: PLC0415 - only for who compresses

            return len(zstandard.ZstdCompressor(write_content_size=False).compress(records))
        case Codec.NONE:
            return len(records)
