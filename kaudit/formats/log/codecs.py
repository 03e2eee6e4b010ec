"""Decompression of record payloads, bounded: a few kilobytes never become gigabytes.

Source of the formats: Kafka's CompressionType and KafkaLZ4BlockInputStream, snappy-java's SnappyInputStream (the
"xerial" framing), RFC 1952 (gzip), RFC 8878 (zstd), the LZ4 frame format.

Each library is loaded by the function that needs it: a scan of headers and CRCs needs none.
"""

import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import LimitExceededError, Reason, WireError
from kaudit.model.limits import COMPRESSED_FRAMES


class Codec(IntEnum):
    """The codec in the three low bits of a batch's or message's attributes; 5 to 7 mean nothing."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# Concatenated gzip members are legal and cheap to forge: each costs the decoder a copy of the rest.
_MAX_FRAMES: Final = COMPRESSED_FRAMES

_GZIP_WINDOW_BYTES: Final = 1 << 18

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16


def decompress(codec: int, magic: int, data: Buffer, limit: int) -> bytes:
    """Decompress one payload, at most `limit` bytes of it.

    `codec` is attributes & 7, `magic` the batch's or message's (0..2): below 2 an LZ4 frame's header checksum is not
    believed, see kaudit.formats.log.compressed_frames. Raises LimitExceededError if there is more than `limit` bytes of output (without
    holding more), WireError for an unknown codec or bytes that are not exactly one complete payload of that codec.
    """
    try:
        decoder = _LOADED[codec]
    except KeyError:
        decoder = _load(codec)
    if limit < 0:
        raise LimitExceededError(0, limit, "nothing may be decompressed any more")
    return decoder(data, magic, limit)


def _none(data: Buffer, _magic: int, limit: int) -> bytes:
    if len(data) > limit:
        raise LimitExceededError(0, limit, f"{len(data)} bytes are more than the limit of {limit}")
    return bytes(data)


def _gzip(data: Buffer, _magic: int, limit: int) -> bytes:
    """RFC 1952: one member after another, as Java's GZIPInputStream reads them."""
    whole = memoryview(data)
    pieces: list[bytes] = []
    size = position = 0
    for _ in range(_MAX_FRAMES):
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            # In windows: what zlib leaves unused it copies, and each of many members would copy all the rest.
            window = whole[position : position + _GZIP_WINDOW_BYTES]
            if not window:
                raise WireError(len(whole), Reason.TRUNCATED, "gzip: the data ends before the member does")
            try:
                pieces.append(member.decompress(window, limit - size + 1))
            except zlib.error as error:
                raise WireError(position, Reason.DECOMPRESSION, f"gzip: {error}") from None
            size += len(pieces[-1])
            if size > limit:
                raise LimitExceededError.of_output(position, limit)
            position += len(window) - len(member.unused_data)
        if position == len(whole):
            return b"".join(pieces)
    raise LimitExceededError(position, _MAX_FRAMES, f"gzip: more than {_MAX_FRAMES} members")


def _snappy(data: Buffer, _magic: int, limit: int) -> bytes:
    """Xerial frames (Java, librdkafka, ...) or one raw block (some old clients), distinguished as SnappyInputStream does."""
    whole = bytes(data)
    if not whole.startswith(_XERIAL_MAGIC):
        return _snappy_block(whole, 0, len(whole), 0, limit)
    pieces: list[bytes] = []
    size = position = 0
    while position < len(whole):
        if whole.startswith(_XERIAL_MAGIC, position):  # concatenated streams repeat the header
            position += _XERIAL_HEADER_BYTES
            if position > len(whole):
                raise WireError(len(whole), Reason.TRUNCATED, "snappy: the frame header is cut off")
            continue
        start = position + 4
        end = start + int.from_bytes(whole[position:start], "big")
        if start > len(whole) or end > len(whole):
            raise WireError(position, Reason.TRUNCATED, f"snappy: block to byte {end} of {len(whole)}")
        piece = _snappy_block(whole, start, end, size, limit)
        size += len(piece)
        pieces.append(piece)
        position = end
    return b"".join(pieces)


def _snappy_block(whole: bytes, start: int, end: int, done: int, limit: int) -> bytes:
    import cramjam  # noqa: PLC0415 - only for who decompresses

    block = whole[start:end]
    if not block:
        raise WireError(start, Reason.TRUNCATED, "snappy: empty block")
    try:
        # The size a block declares is the writer's word: ten bytes can claim 4 GiB.
        if cramjam.snappy.decompress_raw_len(block) > limit - done:
            raise LimitExceededError.of_output(start, limit)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise WireError(start, Reason.DECOMPRESSION, f"snappy: {error}") from None


_Decoder = Callable[[Buffer, int, int], bytes]


_LOADED: Final[dict[int, _Decoder]] = {Codec.NONE: _none, Codec.GZIP: _gzip, Codec.SNAPPY: _snappy}


def _load(codec: int) -> _Decoder:
    """Import what decompresses this codec when the first batch needs it."""
    if codec == Codec.LZ4:
        from kaudit.formats.log.compressed_frames import decompress_lz4  # noqa: PLC0415 - only for who decompresses

        _LOADED[codec] = decompress_lz4
    elif codec == Codec.ZSTD:
        from kaudit.formats.log.compressed_frames import decompress_zstd  # noqa: PLC0415 - only for who decompresses

        _LOADED[codec] = decompress_zstd
    else:
        raise WireError(0, Reason.CODEC, f"unknown compression codec {codec}")
    return _LOADED[codec]
