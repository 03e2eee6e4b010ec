"""Decompression of record payloads, bounded: a few kilobytes never become gigabytes; and compression.

Source of the formats: Kafka's CompressionType; RFC 1952 (gzip). The codecs of other libraries: compressed_frames.py.
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


def decompress(codec: int, magic: int, data: Buffer, limit: int) -> bytes:
    """Decompress one payload, at most `limit` bytes of it.

    `codec` is attributes & 7, `magic` the batch's or message's (0..2): below 2 an LZ4 frame's header checksum is not
    believed, see kaudit.formats.log.compressed_frames. Raises LimitExceededError if there is more than `limit` bytes of output (without
    holding more), WireError for an unknown codec or bytes that are not exactly one complete payload of that codec.
    """
    try:
        decoder = _DECODERS[codec]
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
            # in windows: zlib copies its unused input, so each of many members would copy all the rest
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


_Decoder = Callable[[Buffer, int, int], bytes]
_DECODERS: Final[dict[int, _Decoder]] = {Codec.NONE: _none, Codec.GZIP: _gzip}


def _compress_gzip(data: bytes) -> bytes:
    member = zlib.compressobj(wbits=31)
    return member.compress(data) + member.flush()


_COMPRESSORS: Final[dict[int, Callable[[bytes], bytes]]] = {Codec.GZIP: _compress_gzip}


def _load(codec: int) -> _Decoder:
    """Import what reads and writes the other codecs when the first batch needs one of them. Raises WireError for one that is none."""
    from kaudit.formats.log import compressed_frames  # noqa: PLC0415 - a scan of headers and CRCs needs no libraries

    _DECODERS[Codec.SNAPPY] = compressed_frames.decompress_snappy
    _DECODERS[Codec.LZ4] = compressed_frames.decompress_lz4
    _DECODERS[Codec.ZSTD] = compressed_frames.decompress_zstd
    _COMPRESSORS[Codec.SNAPPY] = compressed_frames.compress_snappy
    _COMPRESSORS[Codec.LZ4] = compressed_frames.compress_lz4
    _COMPRESSORS[Codec.ZSTD] = compressed_frames.compress_zstd
    if codec not in _DECODERS:
        raise WireError(0, Reason.CODEC, f"unknown compression codec {codec}")
    return _DECODERS[codec]


def compress(codec: int, data: bytes) -> bytes:
    """Compress one payload as producers do by default; `codec` as `decompress` takes it. The same data gives the same bytes.

    Raises WireError for an unknown codec.
    """
    if codec == Codec.NONE:
        return data
    if codec not in _COMPRESSORS:
        _load(codec)
    return _COMPRESSORS[codec](data)
