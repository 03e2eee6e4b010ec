"""Snappy, LZ4 and ZSTD as Kafka writes them, decompressed within bounds.

Source of the formats: snappy-java's SnappyInputStream (the "xerial" framing); KafkaLZ4BlockInputStream and the LZ4 frame format;
RFC 8878 (zstd).
"""

import struct
import threading
from typing import Final

import cramjam
import lz4.block
import lz4.frame
import xxhash
import zstandard

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import LimitExceededError, Reason, WireError
from kaudit.model.limits import COMPRESSED_FRAMES

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
_XERIAL_VERSIONS: Final = b"\0\0\0\1\0\0\0\1"
_XERIAL_BLOCK_BYTES: Final = 32 << 10


def decompress_snappy(data: Buffer, _magic: int, limit: int) -> bytes:
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


_BELIEVED_MAGIC: Final = 2
"""From this magic on, a frame's header checksum must hold."""
# Largest output of one call: for more, page faults cost more than a second call.
_PIECE_BYTES: Final = 1 << 24
_MAGIC: Final = b"\x04\x22\x4d\x18"
_CONTENT_SIZE_BIT: Final = 0x08
_DICTIONARY_BIT: Final = 0x01
# Bound to names: looking them up would take a tenth of a small batch's time.
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
# Bytes after the only block, by the flags: block checksum, end mark, checksum of the content.
_ONE_BLOCK_ENDS: Final = {
    0x40 | independent | block_checksum | checksum: 4 + (4 if block_checksum else 0) + (4 if checksum else 0)
    for independent in (0, 0x20)
    for block_checksum in (0, 0x10)
    for checksum in (0, 0x04)
}
_NO_END: Final = 1 << 62
_LARGEST_BLOCK_BYTES: Final = 1 << 22


def decompress_lz4(data: Buffer, magic: int, limit: int) -> bytes:
    """One frame; a Kafka payload never holds a second."""
    # fast path for a frame of one block, a small batch, where each step costs as much as the library
    end = len(data) - _END_MARK_BYTES
    if end > _FIRST_BLOCK_START and limit >= _PLAIN_BLOCK_BYTES:
        header, block = _first_block(data)
        if header == _PLAIN_HEADER or header == _PLAIN_LINKED_HEADER:  # noqa: PLR1714, SIM109 - a set is slower
            if block == end - _FIRST_BLOCK_START <= _PLAIN_BLOCK_BYTES and not _end_mark(data, end)[0]:
                # without the frame the library takes two thirds of the time
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


# Concatenated frames are legal and cheap to forge: each costs the decoder a copy of the rest.
_MAX_FRAMES: Final = COMPRESSED_FRAMES
_LITTLE_ENDIAN_32: Final = struct.Struct("<I")
_ZSTD_MAGIC: Final = 0xFD2FB528
_ONE_BLOCK: Final = struct.Struct("<IBxHB")
"""Magic, descriptor, (window,) the header of the first block: a frame that declares no size, has no dictionary."""
_ONE_ZSTD_BLOCK_ENDS: Final = {0x00: _ONE_BLOCK.size, 0x04: _ONE_BLOCK.size + 4}
"""Bytes of such a frame besides its only block, by descriptor: a checksum of the content or none."""
_SKIPPABLE_MAGIC: Final = 0x184D2A50
_BLOCK_BYTES: Final = 1 << 17
# zstd-jni, hence every broker and Java consumer, refuses windows above 2^27.
_WINDOW_BYTES: Final = 1 << 27
_USUAL_RATIO: Final = 16
_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
_LAST_COMPRESSED_MASK, _LAST_COMPRESSED = 0x07, 0x05
_RAW_BLOCK, _RLE_BLOCK, _RESERVED_BLOCK = 0, 1, 3


def decompress_zstd(data: Buffer, _magic: int, limit: int) -> bytes:
    """Frames one after another, as zstd-jni reads them; skippable frames give nothing.

    Every binding answers a truncated frame with what there is and no error, so the block headers are walked first:
    this proves that the frame ends, and bounds its output before anything is allocated.
    """
    # fast path for a frame of one block, a small batch, where each step costs as much as the library
    given = len(data)
    if given > _ONE_BLOCK.size and limit >= _BLOCK_BYTES:
        magic, descriptor, low, high = _ONE_BLOCK.unpack_from(data)
        block = low | high << 16
        if (
            magic == _ZSTD_MAGIC
            and block & _LAST_COMPRESSED_MASK == _LAST_COMPRESSED
            and (block >> 3) + _ONE_ZSTD_BLOCK_ENDS.get(descriptor, given) == given
        ):
            # a block may hold 128 KiB: a buffer for that is a page fault for every small batch
            try:
                return _THREADS_OWN.zstd.decompress(data, min(_USUAL_RATIO * given, _BLOCK_BYTES))
            except zstandard.ZstdError:
                pass  # it needs more, or is broken: the general path finds out which
    whole = memoryview(data)
    pieces: list[bytes] = []
    size = position = 0
    for _ in range(_MAX_FRAMES):
        end, bound, declares = _frame(whole, position)
        if bound:
            frame = whole if not position and end == len(whole) else whole[position:end]
            pieces.append(_decode(frame, position, bound, limit - size, declares=declares))
            size += len(pieces[-1])
        position = end
        if position == len(whole):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    raise LimitExceededError(position, _MAX_FRAMES, f"zstd: more than {_MAX_FRAMES} frames")


class _ThreadsOwn(threading.local):
    """Making a decompressor costs three times what a small batch does; it must not be shared by threads."""

    def __init__(self) -> None:
        self.zstd = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)


_THREADS_OWN: Final = _ThreadsOwn()


def _decode(frame: memoryview, position: int, bound: int, room: int, *, declares: bool) -> bytes:
    decoder = _THREADS_OWN.zstd
    try:
        if declares:
            declared = zstandard.frame_content_size(frame)
            if declared > room:
                raise LimitExceededError.of_output(position, room)
            if declared > bound:
                raise WireError(
                    position, Reason.LENGTH, f"zstd: declares {declared} bytes, its blocks hold {bound} at most"
                )
        elif (likely := _USUAL_RATIO * len(frame)) < min(bound, room):
            # a block may hold 128 KiB: a buffer for that is a page fault for every small batch
            try:
                return decoder.decompress(frame, max_output_size=likely)
            except zstandard.ZstdError:
                pass  # it needs more, or is broken: the call below finds out which
        if bound <= room:
            return decoder.decompress(frame, max_output_size=bound)
        piece = decoder.stream_reader(frame).read(room + 1)
    except zstandard.ZstdError as error:
        raise WireError(position, Reason.DECOMPRESSION, f"zstd: {error}") from None
    if len(piece) > room:
        raise LimitExceededError.of_output(position, room)
    return piece


def _frame(data: memoryview, start: int) -> tuple[int, int, bool]:
    """End of the frame at `start`, the most bytes it can become (0: skippable or empty), whether it declares how many."""
    size = len(data)
    if start + 8 > size:
        raise _truncated(size)
    (magic,) = _LITTLE_ENDIAN_32.unpack_from(data, start)
    if magic != _ZSTD_MAGIC:
        if magic & 0xFFFFFFF0 == _SKIPPABLE_MAGIC:
            end = start + 8 + int(_LITTLE_ENDIAN_32.unpack_from(data, start + 4)[0])
            if end > size:
                raise _truncated(size)
            return end, 0, False
        raise WireError(start, Reason.DECOMPRESSION, f"zstd: frame magic {magic:08x}")
    descriptor = data[start + 4]
    single_segment = bool(descriptor & 0x20)
    content_size_flag = descriptor >> 6
    content_size_bytes = (1 if single_segment else 0, 2, 4, 8)[content_size_flag]
    position = start + 5 + (not single_segment) + _DICTIONARY_ID_BYTES[descriptor & 3] + content_size_bytes
    bound = 0
    while position + 3 <= size:
        header = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        is_last, kind, block_size = header & 1, header >> 1 & 3, header >> 3
        if kind == _RESERVED_BLOCK or block_size > _BLOCK_BYTES:
            raise WireError(position, Reason.DECOMPRESSION, f"zstd: block of type {kind}, {block_size} bytes")
        position += 3 + (1 if kind == _RLE_BLOCK else block_size)
        bound += block_size if kind in (_RAW_BLOCK, _RLE_BLOCK) else _BLOCK_BYTES
        if is_last:
            position += 4 if descriptor & 0x04 else 0
            if position > size:
                break
            return position, bound, bool(content_size_bytes)
    raise _truncated(size)


def _truncated(size: int) -> WireError:
    return WireError(size, Reason.TRUNCATED, "zstd: the data ends before the frame does")


def compress_snappy(data: bytes) -> bytes:
    """Xerial frames of the blocks that SnappyOutputStream makes."""
    blocks = (data[at : at + _XERIAL_BLOCK_BYTES] for at in range(0, len(data), _XERIAL_BLOCK_BYTES))
    packed = (bytes(cramjam.snappy.compress_raw(block)) for block in blocks)
    return b"".join([_XERIAL_MAGIC, _XERIAL_VERSIONS, *(len(each).to_bytes(4, "big") + each for each in packed)])


def compress_lz4(data: bytes) -> bytes:
    """One frame of independent blocks of 64 KiB, without checksums of the content, as KafkaLZ4BlockOutputStream writes it."""
    return bytes(lz4.frame.compress(data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False))


def compress_zstd(data: bytes) -> bytes:
    """One frame of zstd."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)
