"""The CRCs of many overlapping ranges of one file, each at the cost of a page or two.

Damaged bytes may hold any number of headers that each claim the next MiB to be their batch. With the CRC of everything up to
each page known, that of a range is the one up to its end without the one up to its beginning: crc(A + B) is crc(B) xor what
as many zero bytes as B has make of crc(A) (zlib's crc32_combine). So every byte is read once, however many claim it.
"""

import zlib
from array import array
from collections import OrderedDict
from collections.abc import Callable

from crc32c import crc32c

from kaudit.formats.log.chained_crc import POLYNOMIAL as CASTAGNOLI

ZLIB_POLYNOMIAL = 0xEDB88320
"""CRC-32, bits reflected."""
_PAGE = 4 << 10
_BLOCK = 16 * _PAGE
"""Bytes read at a time."""
_KEPT_BLOCKS = 64
"""Blocks kept: claims near one another end near one another, or anywhere in the next 4 MiB."""

_Table = tuple[list[int], list[int], list[int], list[int]]
"""A linear map of a register, by the values of its four bytes, the lowest first."""


class ZeroBytes:
    """What zero bytes make of the register of a CRC with this polynomial (bits reflected)."""

    def __init__(self, polynomial: int) -> None:
        lowest = list(range(256))
        for _ in range(8):
            lowest = [value >> 1 ^ (polynomial if value & 1 else 0) for value in lowest]
        second, third, fourth = ([value << shift for value in range(256)] for shift in (0, 8, 16))
        self._powers: list[_Table] = [(lowest, second, third, fourth)]
        """The effect of 1, 2, 4, 8, ... bytes, as far as it was asked for."""

    def after(self, register: int, count: int) -> int:
        """Return the register after `count` zero bytes."""
        powers = self._powers
        while len(powers) < count.bit_length():
            powers.append(_twice(powers[-1]))
        for first, second, third, fourth in powers:
            if count & 1:
                register = (
                    first[register & 255]
                    ^ second[register >> 8 & 255]
                    ^ third[register >> 16 & 255]
                    ^ fourth[register >> 24]
                )
            count >>= 1
            if not count:
                break
        return register


def _twice(table: _Table) -> _Table:
    first, second, third, fourth = table

    def applied(column: list[int]) -> list[int]:
        return [
            first[entry & 255] ^ second[entry >> 8 & 255] ^ third[entry >> 16 & 255] ^ fourth[entry >> 24]
            for entry in column
        ]

    return applied(first), applied(second), applied(third), applied(fourth)


class CrcRanges:
    """CRCs of ranges of a file from byte `start` on. `read` gives the bytes at a position, fewer at the end of the file.

    Memory: 4 MiB, and 8 bytes for each 4 KiB up to the highest byte asked for.
    """

    def __init__(self, read: Callable[[int, int], bytes], start: int) -> None:
        self.start = start
        self._read = read
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._legacy = _UpToPages(zlib.crc32, ZeroBytes(ZLIB_POLYNOMIAL))
        self._current = _UpToPages(crc32c, ZeroBytes(CASTAGNOLI))

    def crc32c(self, first: int, stop: int) -> int | None:
        """Return the CRC-32C of the bytes `first` to `stop`, None if the file ends before."""
        return self._of(self._current, first - self.start, stop - self.start)

    def crc32(self, first: int, stop: int) -> int | None:
        """Return the CRC-32 of the bytes `first` to `stop`, None if the file ends before."""
        return self._of(self._legacy, first - self.start, stop - self.start)

    def _of(self, pages: "_UpToPages", first: int, stop: int) -> int | None:
        before, up_to_end = self._up_to(pages, first), self._up_to(pages, stop)
        if before is None or up_to_end is None:
            return None
        return up_to_end ^ pages.zero_bytes.after(before, stop - first)

    def _up_to(self, pages: "_UpToPages", position: int) -> int | None:
        page, rest = divmod(position, _PAGE)
        while len(pages.crcs) <= page:
            content = self._at(_PAGE * (len(pages.crcs) - 1), _PAGE)
            if content is None:
                return None
            pages.crcs.append(pages.update(content, pages.crcs[-1]))
        content = self._at(position - rest, rest)
        return None if content is None else pages.update(content, pages.crcs[page])

    def _at(self, position: int, size: int) -> memoryview | None:
        """So many bytes of one page, None where the file ends before."""
        number, inside = divmod(position, _BLOCK)
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._read(self.start + number * _BLOCK, _BLOCK)
            if len(self._blocks) > _KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        else:
            self._blocks.move_to_end(number)
        content = memoryview(block)[inside : inside + size]
        return content if len(content) == size else None


class _UpToPages:
    """The CRCs of everything up to each page, as far as asked for."""

    def __init__(self, update: Callable[[memoryview, int], int], zero_bytes: ZeroBytes) -> None:
        self.update = update
        self.zero_bytes = zero_bytes
        self.crcs = array("L", [0])
