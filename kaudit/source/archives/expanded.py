"""The content of a compressed file as a file that is read at any position, in bounded memory."""

import errno
import weakref
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Final

import zstandard

from kaudit.model.limits import ARCHIVE_EXPANDED_BYTES, ARCHIVE_HELD_BYTES
from kaudit.source.archives.decoders import Decoder, Inflater
from kaudit.source.archives.pieces import PieceDecoder

BLOCK_BYTES: Final = 256 << 10
_RECENT_BLOCKS: Final = 32
_DECODERS: Final = 8
"""Decoders that stand where someone read on: of a segment, of the one after it, of its index."""
_LARGE_DECODERS: Final = 2
"""Those of other compressions have windows of up to 128 MiB."""
_MOST_REPEATED: Final = 8
"""How often a file may be decoded again in all, for places that nothing is held of and no piece begins near."""
_FREE_BYTES: Final = 1 << 30
"""So much is decoded again without counting: it takes seconds."""
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

    Deflate is decoded again from copies of the decoder's state, other compressions from the pieces that they consist of. The beginning of
    their content is held, compressed again by a fast method in blocks, as far as there is room. `problem` says why the content ends early; it is known at the end.
    """

    def __init__(self, first: Decoder, compressed_size: int, name: str) -> None:
        self.problem: str | None = None
        self._name = name
        self._compressed_size = compressed_size
        self._first = first
        self._size = 0
        self._complete = False
        self._recent: OrderedDict[int, bytes] = OrderedDict()
        self._restarts: dict[int, Callable[[], Decoder]] = {}
        self._spacing = _FIRST_SPACING
        self._decoders: OrderedDict[int, Decoder] = OrderedDict()
        self._repeated = 0
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._pack = zstandard.ZstdCompressor(level=1)
        self._unpack = zstandard.ZstdDecompressor()
        _all_expanded.add(self)

    def size(self) -> int:
        """Return how many bytes there are: decodes all that was not decoded yet."""
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
            self._restarts[self._size] = self._first.copy().copy
            if len(self._restarts) > _COPIES:
                self._spacing *= 2
                spaced = self._spacing * BLOCK_BYTES
                self._restarts = {at: state for at, state in self._restarts.items() if at % spaced == 0}
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
                self._hold(number, data)

    def _hold(self, number: int, data: bytes) -> None:
        """Hold a block, if all before it are and there is room."""
        if number == len(self._held):
            packed = self._pack.compress(data)
            if len(packed) + sum(other._held_bytes for other in _all_expanded) <= ARCHIVE_HELD_BYTES:  # noqa: SLF001 - of its own kind
                self._held.append(packed)
                self._held_bytes += len(packed)

    def _again(self, number: int) -> bytes:
        if number < len(self._held):
            data = self._unpack.decompress(self._held[number])
            self._remember(number, data)
            return data
        at, decoder = self._nearest(number)
        data = b""
        for following in range(at, number + 1):
            data = decoder.read(BLOCK_BYTES)
            self._remember(following, data)
        self._decoders[number + 1] = decoder
        if len(self._decoders) > (_DECODERS if isinstance(self._first, Inflater) else _LARGE_DECODERS):
            self._decoders.popitem(last=False)
        return data

    def _nearest(self, number: int) -> tuple[int, Decoder]:
        """Return a decoder that stands at a block at or before this one, and which; that stood there, or begins at a place before it.

        Raises OSError where that would decode most of the file again and again.
        """
        standing = max((at for at in self._decoders if at <= number), default=-1)
        position, restart = self._restart(number * BLOCK_BYTES)
        is_near = standing * BLOCK_BYTES >= position
        self._repeated += number * BLOCK_BYTES - (standing * BLOCK_BYTES if is_near else position)
        if not isinstance(self._first, Inflater) and self._repeated > _MOST_REPEATED * self._size + _FREE_BYTES:
            raise OSError(
                errno.EFBIG,
                f"it is compressed in pieces that are too large to be read from the middle, and would be decoded more than {_MOST_REPEATED} "
                "times: unpack it, or pack it as .tar.gz or .zip, or in many pieces (xz -T0, pzstd)",
                self._name,
            )
        if is_near:
            return standing, self._decoders.pop(standing)
        at = -(-position // BLOCK_BYTES)
        decoder = restart()
        decoder.read(at * BLOCK_BYTES - position)
        return at, decoder

    def _restart(self, position: int) -> tuple[int, Callable[[], Decoder]]:
        """Return the last place at or before a position where decoding can begin."""
        if isinstance(self._first, PieceDecoder):
            begun = self._first.begun
            number = bisect_right(begun, position, key=lambda piece: piece[0]) - 1
            return begun[number][0], lambda: PieceDecoder(opener for _, opener in islice(begun, number, None))
        place = max(at for at in self._restarts if at <= position)
        return place, self._restarts[place]

    def _remember(self, number: int, data: bytes) -> None:
        self._recent[number] = data
        if len(self._recent) > _RECENT_BLOCKS:
            self._recent.popitem(last=False)


_all_expanded: "weakref.WeakSet[Expanded]" = weakref.WeakSet()
