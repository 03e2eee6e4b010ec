"""LZ4 frames as Kafka writes them, decompressed within bounds. Source: KafkaLZ4BlockInputStream, the LZ4 frame format."""

import struct
from enum import StrEnum
from typing import Final

import lz4.block
import lz4.frame
import xxhash

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import LimitExceededError, Reason, WireError

_BELIEVED_MAGIC: Final = 2
"""From this magic of the batch on, a frame's header checksum is believed."""
# Also the largest piece the library may allocate at once: above it a page fault costs more than a second call.
_PIECE_BYTES: Final = 1 << 24
_MAGIC: Final = b"\x04\x22\x4d\x18"
_CONTENT_SIZE_BIT: Final = 0x08
_DICTIONARY_BIT: Final = 0x01
# The steps of a small batch are bound to names here: looking them up is a tenth of its time.
_decompress_block: Final = lz4.block.decompress
_first_block: Final = struct.Struct("<7sI").unpack_from
"""The header of a frame without sizes and dictionary, its checksum included, and the size of the first block."""
_end_mark: Final = struct.Struct("<I").unpack_from
_FIRST_BLOCK_START: Final = 11
_END_MARK_BYTES: Final = 4
_UNCOMPRESSED_BIT: Final = 1 << 31
# Headers of frames with blocks of 64 KiB at most and without checksums: what Java, librdkafka and the library write.
_PLAIN_HEADER: Final = b"\x04\x22\x4d\x18\x60\x40\x82"
_PLAIN_LINKED_HEADER: Final = b"\x04\x22\x4d\x18\x40\x40\xc0"
_PLAIN_BLOCK_BYTES: Final = 1 << 16
# Bytes behind the only block, by the flags: block checksum, end mark, checksum of the content.
_ONE_BLOCK_ENDS: Final = {
    0x40 | independent | block_checksum | checksum: 4 + (4 if block_checksum else 0) + (4 if checksum else 0)
    for independent in (0, 0x20)
    for block_checksum in (0, 0x10)
    for checksum in (0, 0x04)
}
_NO_END: Final = 1 << 62
_LARGEST_BLOCK_BYTES: Final = 1 << 22


class Lz4HeaderChecksum(StrEnum):
    """Which header checksum an LZ4 frame carries."""

    CORRECT = "correct"
    OLD_KAFKA = "old-kafka"  # hashed over magic and descriptor: what clients before 0.10 wrote into magic 0
    WRONG = "wrong"


def lz4_header_checksum(data: Buffer) -> Lz4HeaderChecksum:
    """Return how the header checksum of an LZ4 frame was made; raises WireError if `data` does not start like one."""
    end = _descriptor_end(data)
    stored = data[end]
    if stored == _checksum(data, len(_MAGIC), end):
        return Lz4HeaderChecksum.CORRECT
    return Lz4HeaderChecksum.OLD_KAFKA if stored == _checksum(data, 0, end) else Lz4HeaderChecksum.WRONG


def decompress_lz4(data: Buffer, magic: int, limit: int) -> bytes:
    """One frame; a Kafka payload never holds a second."""
    # A frame of one block is a small batch, where each step here costs as much as the library does: few are taken.
    end = len(data) - _END_MARK_BYTES
    if end > _FIRST_BLOCK_START and limit >= _PLAIN_BLOCK_BYTES:
        header, block = _first_block(data)
        if header == _PLAIN_HEADER or header == _PLAIN_LINKED_HEADER:  # noqa: PLR1714, SIM109 - a set is slower
            if block == end - _FIRST_BLOCK_START <= _PLAIN_BLOCK_BYTES and not _end_mark(data, end)[0]:
                # The block without its frame: for that the library takes half as long again.
                try:
                    return _decompress_block(  # type: ignore[no-any-return, unused-ignore]
                        data[_FIRST_BLOCK_START:end], _PLAIN_BLOCK_BYTES
                    )
                except lz4.block.LZ4BlockError as error:
                    raise WireError(_FIRST_BLOCK_START, Reason.DECOMPRESSION, f"lz4: {error}") from None
        elif (
            magic >= _BELIEVED_MAGIC
            and limit >= _LARGEST_BLOCK_BYTES
            and header.startswith(_MAGIC)
            and (block & ~_UNCOMPRESSED_BIT) + _ONE_BLOCK_ENDS.get(header[4], _NO_END)
            == end + _END_MARK_BYTES - _FIRST_BLOCK_START
        ):
            return _whole_frame(data)
    return _in_pieces(data, magic, limit)


def _in_pieces(data: Buffer, magic: int, limit: int) -> bytes:
    """Decompress a frame of any form."""
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


def _whole_frame(data: Buffer) -> bytes:
    try:
        return lz4.frame.decompress(data)  # type: ignore[no-any-return, unused-ignore]
    except RuntimeError as error:
        raise WireError(_FIRST_BLOCK_START, Reason.DECOMPRESSION, f"lz4: {error}") from None


def _descriptor_end(data: Buffer) -> int:
    """Position of the header checksum byte."""
    if len(data) < len(_MAGIC) + 3:
        raise WireError(len(data), Reason.TRUNCATED, f"lz4: {len(data)} bytes are too few for a frame header")
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
