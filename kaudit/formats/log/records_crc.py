"""The CRC-32C of a batch's records alone, from the CRC the batch bears: no byte of a record is read.

A batch's CRC covers its header from the attributes on, 40 bytes, and then its records. CRCs are linear over GF(2), so

    crc(header + records) = crc(header) * x^(8 * size of records) + crc(records)   modulo the polynomial,

where the header is made of the batch's columns. A client that sends a batch again under another producer id, epoch,
sequence or base timestamp writes another header and another CRC, but the same records.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import ATTRIBUTES_OFFSET, HEADER, HEADER_SIZE
from kaudit.formats.log.chained_crc import POLYNOMIAL
from kaudit.model.batch import Batches

Crcs = NDArray[np.uint32]

_COVERED: Final = HEADER_SIZE - ATTRIBUTES_OFFSET
_ONE: Final = 1 << 31
"""The polynomial 1: the highest power is in the lowest bit, as the CRC's bits are reflected."""
_DIGIT_BITS: Final = 11
"""Sizes, of 31 bits, are three digits of so many: a table of powers is 8 kB."""
_EVERY_FOURTH: Final = [np.uint64(0x1111111111111111 << first) for first in range(4)]
_BLOCK: Final = 1 << 13
"""Batches at a time: what is computed of them stays in the processor's cache."""


def records_crcs(batches: Batches) -> Crcs:
    """Return the CRC-32C of what follows each batch's header, compressed as it is: uint32, shape (n,).

    `batches` are of magic 2, their CRCs the right ones.
    """
    crcs = np.empty(len(batches), dtype=np.uint32)
    for first in range(0, len(batches), _BLOCK):
        part = batches[first : first + _BLOCK]
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
    """What each value of a byte of the header adds to the CRC, by field and then from its lowest byte."""
    tables: dict[str, list[Crcs]] = {}
    for name in HEADER.names:
        first, end = HEADER.offset(name) - ATTRIBUTES_OFFSET, HEADER.end(name) - ATTRIBUTES_OFFSET
        if first >= 0:
            tables[name] = [_table([_of_bit(place, bit) for bit in range(8)]) for place in reversed(range(first, end))]
    return tables


def _of_bit(place: int, bit: int) -> int:
    """What a bit of a byte of the header adds to the CRC."""
    header = bytearray(_COVERED)
    header[place] = 1 << bit
    return crc32c(bytes(header)) ^ crc32c(bytes(_COVERED))


def _table(bits: Sequence[int]) -> Crcs:
    """What each value of a byte adds, of what its bits add, the lowest first: shape (256,)."""
    table = np.zeros(256, dtype=np.uint32)
    for bit, added in enumerate(bits):
        table[np.arange(256) >> bit & 1 != 0] ^= np.uint32(added)
    return table


def _followed_by(crcs: Crcs, sizes: NDArray[np.int64]) -> Crcs:
    """What each CRC adds to that of its bytes and `sizes` more (0..2^31): multiplied by x^(8 * size)."""
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
    """Products over GF(2) of numbers below 2^32: with only every fourth bit set, an integer product's carries hurt nobody.

    At most eight ones meet in one place, which is a sum of four bits, of which the lowest counts.
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
    """What each value of the four lowest bytes of a product, the powers x^63 to x^32, is modulo the polynomial."""
    power, powers = _ONE, []
    for _ in range(64):
        powers.append(power)
        power = power >> 1 ^ POLYNOMIAL * (power & 1)
    return [_table(powers[63 - 8 * place : 55 - 8 * place : -1]) for place in range(4)]
