"""LZ4 frames as Kafka writes them, decompressed within bounds. Source: KafkaLZ4BlockInputStream, the LZ4 frame format."""

import struct
from enum import StrEnum
from typing import Final

import lz4.frame
import xxhash

from kaudit.wire.errors import LimitExceededError, Reason, WireError
from kaudit.wire.reader import Buffer

_BELIEVED_MAGIC: Final = 2
"""From this magic of the batch on, a frame's header checksum is believed."""
# Also the largest piece the library may allocate at once: above it a page fault costs more than a second call.
_PIECE_BYTES: Final = 1 << 24
_LITTLE_ENDIAN_32: Final = struct.Struct("<I")
_MAGIC: Final = b"\x04\x22\x4d\x18"
_MAGIC_NUMBER: Final = int.from_bytes(_MAGIC, "little")
# magic, flags, (block size, header checksum,) the first block's header
_ONE_BLOCK: Final = struct.Struct("<IBxxI")
# What follows the one block, by the flags of frames without content size and dictionary: end mark, checksums.
_ONE_BLOCK_ENDS: Final = {
    0x40 | independent | block_checksum | checksum: 4 + (4 if block_checksum else 0) + (4 if checksum else 0)
    for independent in (0, 0x20)
    for block_checksum in (0, 0x10)
    for checksum in (0, 0x04)
}
_NO_END: Final = 1 << 62
_CONTENT_SIZE_BIT: Final = 0x08
_CONTENT_CHECKSUM_BIT: Final = 0x04
_BLOCK_CHECKSUM_BIT: Final = 0x10
_DICTIONARY_BIT: Final = 0x01
_BLOCK_BYTES: Final = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_LARGEST_BLOCK_BYTES: Final = 1 << 22


class Lz4HeaderChecksum(StrEnum):
    """Which header checksum an LZ4 frame carries."""

    CORRECT = "correct"
    OLD_KAFKA = "old-kafka"  # hashed over magic and descriptor: what clients before 0.10 wrote into magic 0
    WRONG = "wrong"


def lz4_header_checksum(data: Buffer) -> Lz4HeaderChecksum:
    """Tell how the header checksum of an LZ4 frame was made; raises WireError if `data` does not start like one."""
    end = _descriptor_end(data)
    stored = data[end]
    if stored == _checksum(data, len(_MAGIC), end):
        return Lz4HeaderChecksum.CORRECT
    return Lz4HeaderChecksum.OLD_KAFKA if stored == _checksum(data, 0, end) else Lz4HeaderChecksum.WRONG


def decompress_lz4(data: Buffer, magic: int, limit: int) -> bytes:
    """One frame; a Kafka payload never holds a second."""
    if magic >= _BELIEVED_MAGIC and len(data) >= _ONE_BLOCK.size:
        # The usual frame of a small batch: one block, no sizes. For a few kilobytes each step here costs as much as the
        # library does, so it is taken in as few as there can be.
        number, flags, block = _ONE_BLOCK.unpack_from(data)
        end = _ONE_BLOCK.size + (block & 0x7FFFFFFF) + _ONE_BLOCK_ENDS.get(flags, _NO_END)
        if number == _MAGIC_NUMBER and end == len(data) and limit >= _LARGEST_BLOCK_BYTES:
            try:
                return lz4.frame.decompress(data)  # type: ignore[no-any-return, unused-ignore]
            except RuntimeError as error:
                raise WireError(_ONE_BLOCK.size, Reason.DECOMPRESSION, f"lz4: {error}") from None
    end = _descriptor_end(data)
    if magic < _BELIEVED_MAGIC and data[end] != _checksum(data, len(_MAGIC), end):
        mended = bytearray(data)
        mended[end] = _checksum(data, len(_MAGIC), end)
        data = mended
    frame = lz4.frame.LZ4FrameDecompressor()
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
            raise LimitExceededError.of_output(0, limit)
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


def _descriptor_end(data: Buffer) -> int:
    """Position of the header checksum byte."""
    if len(data) < len(_MAGIC) + 3:
        raise WireError(len(data), Reason.TRUNCATED, f"lz4: {len(data)} bytes are no frame header")
    if data[: len(_MAGIC)] != _MAGIC:
        raise WireError(0, Reason.DECOMPRESSION, f"lz4: frame magic {bytes(data[:4]).hex()}")
    flags = data[len(_MAGIC)]
    end = len(_MAGIC) + 2
    end += 8 if flags & _CONTENT_SIZE_BIT else 0
    end += 4 if flags & _DICTIONARY_BIT else 0
    if end >= len(data):
        raise WireError(len(data), Reason.TRUNCATED, "lz4: the frame header is cut off")
    return end


def _checksum(data: Buffer, start: int, end: int) -> int:
    return (xxhash.xxh32_intdigest(bytes(data[start:end])) >> 8) & 0xFF


def _at_once(data: Buffer, position: int) -> bytes:
    try:
        return bytes(lz4.frame.decompress(data))
    except RuntimeError as error:
        raise WireError(position, Reason.DECOMPRESSION, f"lz4: {error}") from None


def _bound(data: Buffer, position: int) -> int | None:
    """Most bytes a whole frame can decompress to, from its block headers; None if they do not end where the data does.

    Where this fits the limit, one call decompresses the frame: the object that counts costs more than a small batch.
    """
    flags, size = data[len(_MAGIC)], len(data)
    largest = _BLOCK_BYTES.get(data[len(_MAGIC) + 1] >> 4)
    if largest is None:
        return None
    checksum = 4 if flags & _BLOCK_CHECKSUM_BIT else 0
    bound = 0
    while position + 4 <= size:
        (block,) = _LITTLE_ENDIAN_32.unpack_from(data, position)
        position += 4
        if block == 0:
            position += 4 if flags & _CONTENT_CHECKSUM_BIT else 0
            return bound if position == size else None
        position += (block & 0x7FFFFFFF) + checksum
        bound += largest
    return None
