"""ZSTD frames as Kafka writes them, decompressed within bounds. Source of the format: RFC 8878."""

import struct
import threading
from typing import Final

import zstandard

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import LimitExceededError, Reason, WireError
from kaudit.model.limits import COMPRESSED_FRAMES

# Concatenated frames are legal and cheap to forge: each costs the decoder a copy of the rest.
_MAX_FRAMES: Final = COMPRESSED_FRAMES
_LITTLE_ENDIAN_32: Final = struct.Struct("<I")
_MAGIC: Final = 0xFD2FB528
_ONE_BLOCK: Final = struct.Struct("<IBxHB")
"""Magic, descriptor, (window,) the header of the first block: a frame that declares no size, has no dictionary."""
_ONE_BLOCK_ENDS: Final = {0x00: _ONE_BLOCK.size, 0x04: _ONE_BLOCK.size + 4}
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
    # A frame of one block is a small batch, where each step here costs as much as the library does: few are taken.
    given = len(data)
    if given > _ONE_BLOCK.size and limit >= _BLOCK_BYTES:
        magic, descriptor, low, high = _ONE_BLOCK.unpack_from(data)
        block = low | high << 16
        if (
            magic == _MAGIC
            and block & _LAST_COMPRESSED_MASK == _LAST_COMPRESSED
            and (block >> 3) + _ONE_BLOCK_ENDS.get(descriptor, given) == given
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
    if magic != _MAGIC:
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
