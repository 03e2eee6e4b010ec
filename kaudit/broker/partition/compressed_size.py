"""How long a broker's compressed records are: it compresses a batch again where the topic names another codec."""

import zlib

import cramjam
import lz4.frame
import zstandard

from kaudit.formats.log.codecs import Codec

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
