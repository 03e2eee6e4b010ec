"""The content of a compressed file as a file that is read at any position, in bounded memory."""

import errno
import weakref
from collections import OrderedDict
from typing import Final

import zstandard

from kaudit.model.limits import ARCHIVE_EXPANDED_BYTES, ARCHIVE_HELD_BYTES
from kaudit.source.archives.decoders import Decoder, Inflater

BLOCK_BYTES: Final = 256 << 10
_RECENT_BLOCKS: Final = 32
_DECODERS: Final = 8
"""Decoders that stand where someone read on: of a segment, of the one after it, of its index."""
_COPIES: Final = 512
"""Copies of an inflater's state, 40 KB each: reading at any position decodes at most what lies between two of them."""
_FIRST_SPACING: Final = 16
"""Blocks between two copies, twice as many whenever there are too many copies."""
EXPANSION: Final = 1000
"""A file that expands to more than ARCHIVE_EXPANDED_BYTES, and to more than so many times its size, is not data."""


def is_bomb(size: int, compressed_size: int) -> bool:
    """Return whether so many bytes cannot be what someone packed into so few."""
    return size > ARCHIVE_EXPANDED_BYTES and size > EXPANSION * compressed_size


class Expanded:
    """The content of a compressed file. It is decoded as far as someone reads, once from front to back, and again where needed.

    Deflate is decoded again from copies of the decoder's state. Other compressions cannot be read from the middle: their content is
    held, compressed again by a fast method in blocks. `problem` says why the content ends early; it is known at the end.
    """

    def __init__(self, first: Decoder, compressed_size: int, name: str) -> None:
        self.problem: str | None = None
        self._name = name
        self._compressed_size = compressed_size
        self._first = first
        self._size = 0
        self._complete = False
        self._recent: OrderedDict[int, bytes] = OrderedDict()
        self._copies: dict[int, Inflater] = {}
        self._spacing = _FIRST_SPACING
        self._decoders: OrderedDict[int, Inflater] = OrderedDict()
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._pack = zstandard.ZstdCompressor(level=1)
        self._unpack = zstandard.ZstdDecompressor()
        _all_expanded.add(self)

    def size(self) -> int:
        """Return how many bytes there are: decodes all that was not decoded yet. Raises OSError where too much had to be held."""
        while not self._complete:
            self._decode_next()
        return self._size

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there."""
        done = 0
        while done < len(buffer):
            number, at = divmod(position + done, BLOCK_BYTES)
            data = memoryview(self._block(number))[at : at + len(buffer) - done]
            if not data:
                break
            buffer[done : done + len(data)] = data
            done += len(data)
        return done

    def close(self) -> None:
        """Nothing is held open."""

    def _block(self, number: int) -> bytes:
        found = self._recent.get(number)
        if found is not None:
            self._recent.move_to_end(number)
            return found
        while not self._complete and number * BLOCK_BYTES >= self._size:
            self._decode_next()
        if number * BLOCK_BYTES >= self._size:
            return b""
        return self._recent.get(number) or self._again(number)

    def _decode_next(self) -> None:
        number = self._size // BLOCK_BYTES
        if isinstance(self._first, Inflater) and number % self._spacing == 0:
            self._copies[number] = self._first.copy()
            if len(self._copies) > _COPIES:
                self._spacing *= 2
                self._copies = {at: state for at, state in self._copies.items() if at % self._spacing == 0}
        data = self._first.read(BLOCK_BYTES)
        self.problem = self._first.problem
        self._complete = len(data) < BLOCK_BYTES
        self._size += len(data)
        if is_bomb(self._size, self._compressed_size):
            self.problem = (
                f"it expands to more than {ARCHIVE_EXPANDED_BYTES >> 30} GiB, over {EXPANSION:,} times its size"
            )
            self._complete = True
        if data:
            self._remember(number, data)
            if not isinstance(self._first, Inflater):
                self._hold(data)

    def _hold(self, data: bytes) -> None:
        self._held.append(self._pack.compress(data))
        self._held_bytes += len(self._held[-1])
        if sum(other._held_bytes for other in _all_expanded) > ARCHIVE_HELD_BYTES:  # noqa: SLF001 - of its own kind
            self._held, self._held_bytes, self._complete = [], 0, True
            raise OSError(
                errno.EFBIG,
                f"more than {ARCHIVE_HELD_BYTES >> 20} MiB would have to be held in memory, since this compression cannot be read "
                "from the middle: unpack it, or pack it as .tar, .tar.gz or .zip",
                self._name,
            )

    def _again(self, number: int) -> bytes:
        if self._held:
            data = self._unpack.decompress(self._held[number])
            self._remember(number, data)
            return data
        at = max(at for at in (*self._copies, *self._decoders) if at <= number)
        decoder = self._decoders.pop(at, None) or self._copies[at].copy()
        data = b""
        for following in range(at, number + 1):
            data = decoder.read(BLOCK_BYTES)
            self._remember(following, data)
        self._decoders[number + 1] = decoder
        if len(self._decoders) > _DECODERS:
            self._decoders.popitem(last=False)
        return data

    def _remember(self, number: int, data: bytes) -> None:
        self._recent[number] = data
        if len(self._recent) > _RECENT_BLOCKS:
            self._recent.popitem(last=False)


_all_expanded: "weakref.WeakSet[Expanded]" = weakref.WeakSet()
