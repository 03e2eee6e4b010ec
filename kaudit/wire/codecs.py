"""Decompression of record payloads, bounded: a few kilobytes never become gigabytes.

Source of the formats: Kafka's CompressionType and KafkaLZ4BlockInputStream, snappy-java's SnappyInputStream (the
"xerial" framing), RFC 1952 (gzip), RFC 8878 (zstd), the LZ4 frame format.

Each library is loaded by the function that needs it: a scan of headers and CRCs needs none.
"""

import zlib
from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Final

from kaudit.wire.errors import LimitExceededError, Reason, WireError
from kaudit.wire.reader import Buffer


class Codec(IntEnum):
    """The codec in the three low bits of a batch's or message's attributes; 5 to 7 mean nothing."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


MAGIC_V2: Final = 2
# Concatenated gzip members and zstd frames are legal and cheap to forge: each costs the decoder a copy of the rest.
_MAX_FRAMES: Final = 1024
# Also the largest piece the libraries may allocate at once: above it a page fault costs more than a second call.
_PIECE_BYTES: Final = 1 << 24

_GZIP_WINDOW_BYTES: Final = 1 << 18

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_CONTENT_SIZE_BIT: Final = 0x08
_LZ4_DICTIONARY_BIT: Final = 0x01

_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_SKIPPABLE_MAGIC: Final = 0x184D2A50
_ZSTD_BLOCK_BYTES: Final = 1 << 17
# zstd-jni, hence every broker and Java consumer, refuses windows above 2^27.
_ZSTD_WINDOW_BYTES: Final = 1 << 27
_ZSTD_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
_ZSTD_RAW_BLOCK, _ZSTD_RLE_BLOCK, _ZSTD_RESERVED_BLOCK = 0, 1, 3


class Lz4HeaderChecksum(StrEnum):
    """Which header checksum an LZ4 frame carries."""

    CORRECT = "correct"
    OLD_KAFKA = "old-kafka"  # hashed over magic and descriptor: what clients before 0.10 wrote into magic 0
    WRONG = "wrong"


def decompress(codec: int, magic: int, data: Buffer, limit: int) -> bytes:
    """Decompress one payload, at most `limit` bytes of it.

    `codec` is attributes & 7, `magic` the batch's or message's (0..2): below 2 an LZ4 frame's header checksum is not
    believed, see lz4_header_checksum. Raises LimitExceededError if there is more than `limit` bytes of output (without
    holding more), WireError for an unknown codec or bytes that are not exactly one complete payload of that codec.
    """
    decoder = _DECODERS.get(codec)
    if decoder is None:
        raise WireError(0, Reason.CODEC, f"unknown compression codec {codec}")
    if limit < 0:
        raise LimitExceededError(0, limit, "nothing may be decompressed any more")
    return decoder(data, magic, limit)


def lz4_header_checksum(data: Buffer) -> Lz4HeaderChecksum:
    """Tell how the header checksum of an LZ4 frame was made; raises WireError if `data` does not start like one."""
    end = _lz4_descriptor_end(data)
    stored = data[end]
    if stored == _lz4_checksum(data, len(_LZ4_MAGIC), end):
        return Lz4HeaderChecksum.CORRECT
    return Lz4HeaderChecksum.OLD_KAFKA if stored == _lz4_checksum(data, 0, end) else Lz4HeaderChecksum.WRONG


def _too_large(position: int, limit: int) -> LimitExceededError:
    return LimitExceededError(position, limit, f"decompresses to more than the limit of {limit} bytes")


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
                raise _too_large(position, limit)
            position += len(window) - len(member.unused_data)
        if position == len(whole):
            return b"".join(pieces)
    raise LimitExceededError(position, _MAX_FRAMES, f"gzip: more than {_MAX_FRAMES} members")


def _snappy(data: Buffer, _magic: int, limit: int) -> bytes:
    """Xerial frames (Java, librdkafka, ...) or one raw block (some old clients), told apart as SnappyInputStream does."""
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
            raise _too_large(start, limit)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise WireError(start, Reason.DECOMPRESSION, f"snappy: {error}") from None


def _lz4_descriptor_end(data: Buffer) -> int:
    """Position of the header checksum byte."""
    if len(data) < len(_LZ4_MAGIC) + 3:
        raise WireError(len(data), Reason.TRUNCATED, f"lz4: {len(data)} bytes are no frame header")
    if data[: len(_LZ4_MAGIC)] != _LZ4_MAGIC:
        raise WireError(0, Reason.DECOMPRESSION, f"lz4: frame magic {bytes(data[:4]).hex()}")
    flags = data[len(_LZ4_MAGIC)]
    end = len(_LZ4_MAGIC) + 2
    end += 8 if flags & _LZ4_CONTENT_SIZE_BIT else 0
    end += 4 if flags & _LZ4_DICTIONARY_BIT else 0
    if end >= len(data):
        raise WireError(len(data), Reason.TRUNCATED, "lz4: the frame header is cut off")
    return end


def _lz4_checksum(data: Buffer, start: int, end: int) -> int:
    import xxhash  # noqa: PLC0415 - only for who decompresses

    return (xxhash.xxh32_intdigest(bytes(data[start:end])) >> 8) & 0xFF


def _lz4(data: Buffer, magic: int, limit: int) -> bytes:
    """One frame; a Kafka payload never holds a second."""
    from lz4.frame import LZ4FrameDecompressor  # noqa: PLC0415 - only for who decompresses

    end = _lz4_descriptor_end(data)
    if magic < MAGIC_V2 and data[end] != _lz4_checksum(data, len(_LZ4_MAGIC), end):
        mended = bytearray(data)
        mended[end] = _lz4_checksum(data, len(_LZ4_MAGIC), end)
        data = mended
    frame = LZ4FrameDecompressor()
    pieces: list[bytes] = []
    size = 0
    fed: Buffer = data
    while True:
        try:
            piece = frame.decompress(fed, max_length=min(limit - size + 1, _PIECE_BYTES))
        except (RuntimeError, EOFError, ValueError) as error:
            raise WireError(end, Reason.DECOMPRESSION, f"lz4: {error}") from None
        size += len(piece)
        if size > limit:
            raise _too_large(0, limit)
        pieces.append(piece)
        if frame.eof:
            break
        if frame.needs_input or not piece:
            raise WireError(len(data), Reason.TRUNCATED, "lz4: the data ends before the frame does")
        fed = b""
    if frame.unused_data:
        left = len(frame.unused_data)
        raise WireError(len(data) - left, Reason.TRAILING, f"lz4: {left} bytes after the frame")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _zstd(data: Buffer, _magic: int, limit: int) -> bytes:
    """Frames one after another, as zstd-jni reads them; skippable frames give nothing.

    Every binding answers a truncated frame with what there is and no error, so the block headers are walked first:
    this proves that the frame ends, and bounds its output before anything is allocated.
    """
    whole = memoryview(data)
    pieces: list[bytes] = []
    size = position = 0
    for _ in range(_MAX_FRAMES):
        end, bound = _zstd_frame(whole, position)
        if bound:
            pieces.append(_zstd_decode(whole[position:end], position, bound, size, limit))
            size += len(pieces[-1])
        position = end
        if position == len(whole):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    raise LimitExceededError(position, _MAX_FRAMES, f"zstd: more than {_MAX_FRAMES} frames")


def _zstd_decode(frame: memoryview, position: int, bound: int, done: int, limit: int) -> bytes:
    import zstandard  # noqa: PLC0415 - only for who decompresses

    decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    room = limit - done
    try:
        declared = zstandard.frame_content_size(frame)
        if declared > room:
            raise _too_large(position, limit)
        if declared > bound:
            raise WireError(
                position, Reason.LENGTH, f"zstd: declares {declared} bytes, its blocks hold {bound} at most"
            )
        if bound <= room:
            return decoder.decompress(frame, max_output_size=bound)
        piece = decoder.stream_reader(frame).read(room + 1)
    except zstandard.ZstdError as error:
        raise WireError(position, Reason.DECOMPRESSION, f"zstd: {error}") from None
    if len(piece) > room:
        raise _too_large(position, limit)
    return piece


def _zstd_frame(data: memoryview, start: int) -> tuple[int, int]:
    """End of the frame at `start`, and the most bytes it can decompress to (0: a skippable or empty frame)."""
    size = len(data)
    truncated = WireError(size, Reason.TRUNCATED, "zstd: the data ends before the frame does")
    if start + 8 > size:
        raise truncated
    magic = int.from_bytes(data[start : start + 4], "little")
    if magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE_MAGIC:
        end = start + 8 + int.from_bytes(data[start + 4 : start + 8], "little")
        if end > size:
            raise truncated
        return end, 0
    if magic != _ZSTD_MAGIC:
        raise WireError(start, Reason.DECOMPRESSION, f"zstd: frame magic {magic:08x}")
    descriptor = data[start + 4]
    single_segment = bool(descriptor & 0x20)
    content_size_flag = descriptor >> 6
    content_size_bytes = (1 if single_segment else 0, 2, 4, 8)[content_size_flag]
    position = start + 5 + (not single_segment) + _ZSTD_DICTIONARY_ID_BYTES[descriptor & 3] + content_size_bytes
    bound = 0
    while position + 3 <= size:
        header = int.from_bytes(data[position : position + 3], "little")
        is_last, kind, block_size = header & 1, header >> 1 & 3, header >> 3
        if kind == _ZSTD_RESERVED_BLOCK or block_size > _ZSTD_BLOCK_BYTES:
            raise WireError(position, Reason.DECOMPRESSION, f"zstd: block of type {kind}, {block_size} bytes")
        position += 3 + (1 if kind == _ZSTD_RLE_BLOCK else block_size)
        bound += block_size if kind in (_ZSTD_RAW_BLOCK, _ZSTD_RLE_BLOCK) else _ZSTD_BLOCK_BYTES
        if is_last:
            position += 4 if descriptor & 0x04 else 0
            if position > size:
                raise truncated
            return position, bound
    raise truncated


_DECODERS: Final[dict[int, Callable[[Buffer, int, int], bytes]]] = {
    Codec.NONE: _none,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
