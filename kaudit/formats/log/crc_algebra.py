"""CRCs of many batches, of many ranges of a file, and of the records of a batch alone, by the linearity of CRCs over GF(2).

The CRC-32C of every batch of a buffer in one pass of the hardware instruction.

A batch's CRC covers its bytes from the attributes on (its body) and none of the 21 bytes before (its head). One call for
each small batch costs twenty times what its bytes cost, so the heads are overwritten with bytes that turn one long
computation into the many short ones:

- After body i-1 the register holds ~c, if c is the CRC of that body. Four bytes w (little endian) change a register r to
  Z4(r ^ w), where Zn is the effect of n zero bytes: invertible and linear over GF(2).
- With w = c ^ ~K and K = inverse of Z21 applied to ~0, those four bytes and 17 zeros leave the register at ~0: the value
  with which the CRC of body i begins.

So if every stored CRC is right, one CRC over everything from the first body on is the last batch's stored one. If
exactly one is wrong, the register is off by some d != 0 after it, and stays off, for what follows acts on d as a power
of Z; the last value is then wrong. Several wrong ones in one buffer escape only if their differences cancel, one chance in
2^32, the chance any single wrong batch has of escaping its own CRC.

The CRCs of many overlapping ranges of one file, each at the cost of a page or two.

Damaged bytes may hold any number of headers that each claim the next MiB to be their batch. With the CRC of everything up to
each page known, that of a range is the one up to its end without the one up to its beginning: crc(A + B) is crc(B) xor what
as many zero bytes as B has make of crc(A) (zlib's crc32_combine). So every byte is read once, however many claim it.

The CRC-32C of a batch's records alone, from the CRC the batch bears: no byte of a record is read.

A batch's CRC covers its header from the attributes on, 40 bytes, and then its records. CRCs are linear over GF(2), so

    crc(header + records) = crc(header) * x^(8 * size of records) + crc(records)   modulo the polynomial,

where the header is made of the batch's columns. A client that sends a batch again under another producer id, epoch,
sequence or base timestamp writes another header and another CRC, but the same records.
"""

import zlib
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kaudit.crc import crc32c
from kaudit.formats.log.batch_header import ATTRIBUTES_OFFSET, HEADER, HEADER_SIZE
from kaudit.formats.log.record_batch import HEADER_BYTES, Headers, at_every_byte
from kaudit.model.batch import Batches

HEAD_SIZE = ATTRIBUTES_OFFSET
"""Offset, length, leader epoch, magic, CRC: what a batch's CRC does not cover."""
POLYNOMIAL = 0x82F63B78
"""CRC-32C, bits reflected."""
_HEAD = np.dtype((np.void, HEAD_SIZE))


def _before_zero_bytes(register: int, count: int) -> int:
    """Return the register from which `count` zero bytes lead to `register`."""
    for _ in range(8 * count):
        odd = register >> 31  # only the polynomial sets the top bit of a step's result
        register = ((register ^ (POLYNOMIAL * odd)) << 1 | odd) & 0xFFFFFFFF
    return register


_TOGETHER = 128
"""Batches whose CRCs are checked at once where a window has a damage: a call for each takes longer than its bytes do."""
_LINK = _before_zero_bytes(0xFFFFFFFF, HEAD_SIZE) ^ 0xFFFFFFFF


def corrupt_indexes(
    buffer: memoryview, positions: NDArray[np.int64], stored: NDArray[np.uint32], end: int
) -> list[int]:
    """Return the indexes of the batches that do not match their `stored` CRCs, of batches of magic 2 without a gap between them.

    `buffer` is writable; the batches start at `positions` (bytes, shape (n,) as `stored`, n > 0) and the last one ends at
    `end`. All heads but the first are overwritten, `restore_heads` brings them back: with such links the CRC from one batch's body
    to another one's end is what the latter stores, if all between match.
    """
    if len(positions) > 1:
        links = np.zeros((len(positions) - 1, HEAD_SIZE), dtype=np.uint8)
        links[:, :4] = (stored[:-1] ^ np.uint32(_LINK)).astype("<u4").view(np.uint8).reshape(-1, 4)
        at_every_byte(buffer, _HEAD)[positions[1:]] = links.view(_HEAD)[:, 0]
    if crc32c(buffer[int(positions[0]) + HEAD_SIZE : end]) == int(stored[-1]):
        return []
    corrupt: list[int] = []
    bounds = [*positions[::_TOGETHER].tolist(), end]
    last = [*stored[_TOGETHER - 1 :: _TOGETHER].tolist(), int(stored[-1])]
    for number, (start, stop) in enumerate(pairwise(bounds)):
        if crc32c(buffer[start + HEAD_SIZE : stop]) != last[number]:
            first = number * _TOGETHER
            together = slice(first, first + _TOGETHER)
            starts, wanted = [*positions[together].tolist(), stop], stored[together].tolist()
            for index, (at, after) in enumerate(pairwise(starts)):
                if crc32c(buffer[at + HEAD_SIZE : after]) != wanted[index]:
                    corrupt.append(first + index)
    return corrupt


def restore_heads(buffer: memoryview, positions: NDArray[np.int64], headers: Headers) -> None:
    """Write back the heads of the batches at `positions` (bytes, shape (n,)); `headers` are theirs, of HEADER_DTYPE."""
    at_every_byte(buffer, HEADER_BYTES)[positions] = headers.view(
        HEADER_BYTES
    )  # with what was not overwritten: one copy


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
    """The effect of zero bytes on the register of a CRC with this polynomial (bits reflected)."""

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
        self._current = _UpToPages(crc32c, ZeroBytes(POLYNOMIAL))

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
        """Return `size` bytes of one page, None where the file ends before."""
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


Crcs = NDArray[np.uint32]

_COVERED: Final = HEADER_SIZE - ATTRIBUTES_OFFSET
_ONE: Final = 1 << 31
"""The polynomial 1: the highest power is in the lowest bit, as the CRC's bits are reflected."""
_DIGIT_BITS: Final = 11
"""Sizes have 31 bits: three digits of this many bits, each with a table of powers of 8 kB."""
_EVERY_FOURTH: Final = [np.uint64(0x1111111111111111 << first) for first in range(4)]
_BATCHES_AT_A_TIME: Final = 1 << 13
"""Batches computed together: the intermediate columns stay in the processor's cache."""


def records_crcs(batches: Batches) -> Crcs:
    """Return the CRC-32C of what follows each batch's header, compressed as it is: uint32, shape (n,).

    `batches` are of magic 2, their CRCs the right ones.
    """
    crcs = np.empty(len(batches), dtype=np.uint32)
    for first in range(0, len(batches), _BATCHES_AT_A_TIME):
        part = batches[first : first + _BATCHES_AT_A_TIME]
        header = _followed_by(_header_crcs(part), part["size"] - HEADER_SIZE)
        np.bitwise_xor(part["crc"], header, out=crcs[first : first + len(part)])
    return crcs


def _header_crcs(batches: Batches) -> Crcs:
    """Each batch's CRC over the part of its header that its own CRC covers."""
    crcs = np.zeros(len(batches), dtype=np.uint32)
    common = crc32c(bytes(_COVERED))
    for name, tables in _byte_tables().items():
        column = batches[name]
        first = int(column[0])
        varying = int(np.bitwise_or.reduce(column ^ column[0]))
        for number, table in enumerate(tables):  # most bytes are the same in all of them
            shift = 8 * number
            if varying >> shift & 0xFF:
                crcs ^= table.take(column >> shift & 0xFF)
            else:
                common ^= int(table[first >> shift & 0xFF])
    crcs ^= np.uint32(common)
    return crcs


@cache
def _byte_tables() -> dict[str, list[Crcs]]:
    """Return what each value of a byte of the header adds to the CRC, by field, lowest byte first."""
    tables: dict[str, list[Crcs]] = {}
    for name in HEADER.names:
        first, end = HEADER.offset(name) - ATTRIBUTES_OFFSET, HEADER.end(name) - ATTRIBUTES_OFFSET
        if first >= 0:
            tables[name] = [_table([_of_bit(place, bit) for bit in range(8)]) for place in reversed(range(first, end))]
    return tables


def _of_bit(place: int, bit: int) -> int:
    """Return what a bit of a byte of the header adds to the CRC."""
    header = bytearray(_COVERED)
    header[place] = 1 << bit
    return crc32c(bytes(header)) ^ crc32c(bytes(_COVERED))


def _table(bits: Sequence[int]) -> Crcs:
    """Return what each value of a byte adds, from what its bits add (lowest first): shape (256,)."""
    table = np.zeros(256, dtype=np.uint32)
    for bit, added in enumerate(bits):
        table[np.arange(256) >> bit & 1 != 0] ^= np.uint32(added)
    return table


def _followed_by(crcs: Crcs, sizes: NDArray[np.int64]) -> Crcs:
    """Return what each CRC adds to the CRC of its bytes and `sizes` more (0..2^31): it is multiplied by x^(8 * size)."""
    for digit in range(3):
        digits = sizes >> _DIGIT_BITS * digit & (1 << _DIGIT_BITS) - 1
        if digits.any():
            crcs = _product(crcs, _powers(digit).take(digits))
    return crcs


@cache
def _powers(digit: int) -> Crcs:
    """x^(8 * n * 2^(11 * digit)) for n below 2^11, shape (2048,)."""
    step = np.array([_ONE >> 8], dtype=np.uint32)  # x^8: one byte
    for _ in range(_DIGIT_BITS * digit):
        step = _product(step, step)
    powers = np.array([_ONE], dtype=np.uint32)
    for _ in range(_DIGIT_BITS):
        powers = np.concatenate((powers, _product(powers, np.repeat(step, len(powers)))))
        step = _product(step, step)
    return powers


def _product(one: Crcs, other: Crcs) -> Crcs:
    """The products of polynomials over GF(2), modulo that of CRC-32C; both of shape (n,)."""
    product = _carryless(one.astype(np.uint64), other.astype(np.uint64)) << np.uint64(1)
    low = product.astype("<u8").view(np.uint8).reshape(-1, 8)
    reduced = (product >> np.uint64(32)).astype(np.uint32)
    for place, table in enumerate(_reductions()):
        reduced ^= table.take(low[:, place])
    return reduced


def _carryless(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Products over GF(2) of numbers below 2^32: with only every fourth bit set, the carries of an integer product do no harm.

    At most eight ones meet in one place: their sum has four bits, and the lowest counts.
    """
    ones, others = ([number & mask for mask in _EVERY_FOURTH] for number in (one, other))
    product = np.zeros(len(one), dtype=np.uint64)
    for rest, mask in enumerate(_EVERY_FOURTH):
        part = np.zeros(len(one), dtype=np.uint64)
        for first in range(4):
            part ^= ones[first] * others[(rest - first) % 4]
        product |= part & mask
    return product


@cache
def _reductions() -> list[Crcs]:
    """Return each value of the four lowest bytes of a product, the powers x^63 to x^32, modulo the polynomial."""
    power, powers = _ONE, []
    for _ in range(64):
        powers.append(power)
        power = power >> 1 ^ POLYNOMIAL * (power & 1)
    return [_table(powers[63 - 8 * place : 55 - 8 * place : -1]) for place in range(4)]
