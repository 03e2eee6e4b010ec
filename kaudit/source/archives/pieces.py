"""Compressed files in pieces that are decoded each by itself, so that reading can begin at any of them.

bzip2 consists of blocks of at most 900 kB, xz of one block or, made by several threads, of many (.xz file format, 4: Index), zstd and
lz4 of one frame or of many (RFC 8878, LZ4 Frame Format). What has one piece is decoded from its beginning.
"""

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

from kaudit.source.archives.decoders import Decoder, Inflater, StreamDecoder, ZstdDecoder, after_zstd_frame, frame_end
from kaudit.source.archives.forms import Form
from kaudit.source.archives.parts import FilePart
from kaudit.source.bytes import ByteSource, HeldBytes, read_bytes

Opener = Callable[[], Decoder]
"""Begins a piece."""
_LEAST_BYTES: Final = 1 << 20
"""Smaller pieces are put together: each that is known takes memory."""


def decoder(form: Form, source: ByteSource) -> Decoder:
    """Return a decoder of a compressed file."""
    return Inflater(source) if form is Form.GZIP else PieceDecoder(_PIECES[form](source))


class PieceDecoder:
    """Decodes pieces one after the other. `begun`: those that were begun, each with the position of its first byte in the content."""

    def __init__(self, pieces: Iterator[Opener]) -> None:
        self.problem: str | None = None
        self.begun: list[tuple[int, Opener]] = []
        self._pieces = pieces
        self._current: Decoder | None = None
        self._position = 0

    def read(self, wanted: int) -> bytes:
        """Return the next bytes, as Decoder says."""
        parts: list[bytes] = []
        while wanted and self.problem is None:
            if self._current is None:
                opener = next(self._pieces, None)
                if opener is None:
                    break
                self.begun.append((self._position, opener))
                self._current = opener()
            part = self._current.read(wanted)
            self.problem = self._current.problem
            self._position += len(part)
            wanted -= len(part)
            parts.append(part)
            if wanted:
                self._current = None
        return b"".join(parts)


class _Joined:
    """Some bytes, and a part of a file after them."""

    def __init__(self, first: bytes, rest: ByteSource) -> None:
        self._first = first
        self._rest = rest

    def size(self) -> int:
        """Return how many bytes both have."""
        return len(self._first) + self._rest.size()

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there."""
        head = self._first[position : position + len(buffer)]
        buffer[: len(head)] = head
        return len(head) + self._rest.read_into(max(position - len(self._first), 0), buffer[len(head) :])

    def close(self) -> None:
        """Leave the file open: others read it."""


# -- frames ------------------------------------------------------------------------------------------------------------
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_STORED: Final = 1 << 31


def _after_lz4_frame(source: ByteSource, at: int) -> int | None:
    """Return where the frame that begins here ends by its blocks, None if that cannot be known."""
    head = read_bytes(source, at, 5)
    if len(head) < 5 or not head.startswith(_LZ4_MAGIC):
        return None
    flags = head[4]
    at += 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    while True:
        block = int.from_bytes(found := read_bytes(source, at, 4), "little")
        if len(found) < 4:
            return None
        at += 4
        if not block:
            return at + (4 if flags & 0x04 else 0)
        at += (block & (_STORED - 1)) + (4 if flags & 0x10 else 0)


def _frames(
    after: Callable[[ByteSource, int], int | None], begin: Callable[[ByteSource], Decoder], source: ByteSource
) -> Iterator[Opener]:
    """Yield frames, several small ones together; from one on whose end is not known, all that is left."""
    size = source.size()
    start = at = 0
    while at < size:
        end = frame_end(after, source, at)
        at = size if end is None else min(end, size)
        if at - start >= _LEAST_BYTES or at == size:
            yield partial(_part, begin, source, start, at)
            start = at


def _part(begin: Callable[[ByteSource], Decoder], source: ByteSource, start: int, end: int) -> Decoder:
    return begin(FilePart(source, start, end - start))


# -- xz ----------------------------------------------------------------------------------------------------------------
_XZ_HEADER: Final = b"\xfd7zXZ\x00"
_XZ_HEADER_BYTES: Final = 12
_MOST_INDEX_BYTES: Final = 64 << 20


class _Block(NamedTuple):
    """Blocks of one stream: its header, where they lie, and how much is in them."""

    header: bytes
    start: int
    size: int
    content: int


class _XzDecoder:
    """Decodes some blocks of a stream, and checks them."""

    def __init__(self, source: ByteSource, block: _Block) -> None:
        self.problem: str | None = None
        part = FilePart(source, block.start, block.size)
        self._inner = StreamDecoder(_Joined(block.header, part), Form.XZ)
        self._left = block.content

    def read(self, wanted: int) -> bytes:
        """Return the next bytes, as Decoder says."""
        data = self._inner.read(min(wanted, self._left))
        self._left -= len(data)
        problem = self._inner.problem
        if not self._left:
            self._inner.read(1)  # the checksum follows; where the index would be the part ends
            problem = self._inner.problem if (self._inner.problem or "").startswith("it is damaged") else None
        self.problem = problem
        return data


def _xz_pieces(source: ByteSource) -> Iterator[Opener]:
    blocks = _xz_blocks(source)
    if len(blocks) < 2:
        yield partial(StreamDecoder, source, Form.XZ)
        return
    for block in blocks:
        yield partial(_XzDecoder, source, block)


def _xz_blocks(source: ByteSource) -> list[_Block]:
    """Return the blocks that the indexes of a file list, small ones together; none if any index is not as it should be."""
    found: list[_Block] = []
    end = source.size()
    while end:
        if not any(read_bytes(source, end - 4, 4)):
            end -= 4  # between streams there may be zeros
            continue
        stream = _xz_stream(source, end)
        if stream is None:
            return []
        found = [*stream[1], *found]
        end = stream[0]
    return found


def _xz_stream(source: ByteSource, end: int) -> tuple[int, list[_Block]] | None:
    """Return where the stream begins that ends here, and its blocks."""
    footer = read_bytes(source, max(end - _XZ_HEADER_BYTES, 0), _XZ_HEADER_BYTES)
    size = (int.from_bytes(footer[4:8], "little") + 1) * 4
    at = end - _XZ_HEADER_BYTES - size
    if not footer.endswith(b"YZ") or at < _XZ_HEADER_BYTES or size > _MOST_INDEX_BYTES:
        return None
    index = read_bytes(source, at, size)
    numbers = _numbers(index[1:-4])
    # what is left of four bytes is zeros
    sizes = [pair for pair in zip(numbers[1::2], numbers[2::2], strict=False) if pair[0]]
    start = at - sum(-(-unpadded // 4) * 4 for unpadded, _ in sizes) - _XZ_HEADER_BYTES
    if start < 0 or zlib.crc32(index[:-4]).to_bytes(4, "little") != index[-4:]:
        return None
    header = read_bytes(source, start, _XZ_HEADER_BYTES)
    if not header.startswith(_XZ_HEADER):
        return None
    blocks: list[_Block] = []
    at = start + _XZ_HEADER_BYTES
    for unpadded, content in sizes:
        size = -(-unpadded // 4) * 4
        if blocks and blocks[-1].size < _LEAST_BYTES:
            last = blocks.pop()
            blocks.append(_Block(header, last.start, last.size + size, last.content + content))
        else:
            blocks.append(_Block(header, at, size, content))
        at += size
    return start, blocks


def _numbers(data: bytes) -> list[int]:
    """Return numbers of seven bits a byte, the lowest first."""
    found: list[int] = []
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


# -- bzip2 -------------------------------------------------------------------------------------------------------------
_BLOCK_MAGIC: Final = 0x314159265359
_END_MAGIC: Final = 0x177245385090
_MAGIC_BITS: Final = 48
_WINDOW_BYTES: Final = 1 << 20
_MOST_BLOCK_BYTES: Final = 8 << 20
"""A block of 900 kB that no compression helps is little larger."""
_PATTERNS: Final = tuple(
    (magic, shift, (magic << (8 - shift)).to_bytes(7, "big")[1:6])
    for magic in (_BLOCK_MAGIC, _END_MAGIC)
    for shift in range(8)
)
"""Magics at each bit of a byte, and the five bytes in the middle, which are whole."""


def _bzip2_pieces(source: ByteSource) -> Iterator[Opener]:
    """Yield blocks: each lies between two magics, at any bit."""
    marks = _marks(source)
    has_blocks = False
    for (start, magic), (end, _) in pairwise(marks):
        if magic == _BLOCK_MAGIC:
            has_blocks = True
            yield partial(_bzip2_block, source, start, end)
    if not has_blocks:
        yield partial(StreamDecoder, source, Form.BZIP2)


def _marks(source: ByteSource) -> Iterator[tuple[int, int]]:
    """Yield the bits where magics are, and which; the file's end is no magic, 0."""
    size = source.size()
    for start in range(0, size, _WINDOW_BYTES):
        data = b"\0" + read_bytes(source, start, _WINDOW_BYTES + 7) + b"\0"
        found: list[tuple[int, int]] = []
        for magic, shift, pattern in _PATTERNS:
            at = data.find(pattern, 2)
            while at != -1:
                bits = int.from_bytes(data[at - 1 : at + 6], "big") >> (8 - shift)
                place = start + at - 2
                if place < start + _WINDOW_BYTES and bits & ((1 << _MAGIC_BITS) - 1) == magic:
                    found.append((place * 8 + shift, magic))
                at = data.find(pattern, at + 1)
        yield from sorted(found)
    yield size * 8, 0


def _bzip2_block(source: ByteSource, start: int, end: int) -> Decoder:
    """Return a decoder of a stream that is made of this block alone; one that the file's end cuts off has no end either."""
    is_whole = end < source.size() * 8 and end - start <= 8 * _MOST_BLOCK_BYTES
    end = min(end, start + 8 * _MOST_BLOCK_BYTES)
    first, last = start // 8, -(-end // 8)
    count = end - start
    bits = (int.from_bytes(read_bytes(source, first, last - first), "big") >> (last * 8 - end)) & ((1 << count) - 1)
    if is_whole:
        crc = bits >> (count - _MAGIC_BITS - 32) & 0xFFFFFFFF
        bits, count = (bits << 80) | (_END_MAGIC << 32) | crc, count + 80
    padded = -(-count // 8) * 8
    stream = b"BZh9" + (bits << (padded - count)).to_bytes(padded // 8, "big")
    return StreamDecoder(HeldBytes(memoryview(stream)), Form.BZIP2)


_PIECES: Final[dict[Form, Callable[[ByteSource], Iterator[Opener]]]] = {
    Form.BZIP2: _bzip2_pieces,
    Form.XZ: _xz_pieces,
    Form.ZSTD: partial(_frames, after_zstd_frame, ZstdDecoder),
    Form.LZ4: partial(_frames, _after_lz4_frame, partial(StreamDecoder, form=Form.LZ4)),
}
