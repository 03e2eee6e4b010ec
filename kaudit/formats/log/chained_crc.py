"""The CRC-32C of every batch of a buffer in one pass of the hardware instruction.

A batch's CRC covers its bytes from the attributes on (its body) and none of the 21 bytes before (its head). One call for
each small batch costs twenty times what its bytes cost, so the heads are overwritten with bytes that turn one long
computation into the many short ones:

- After body i-1 the register holds ~c, if c is the CRC of that body. Four bytes w (little endian) change a register r to
  Z4(r ^ w), where Zn is the effect of n zero bytes: invertible and linear over GF(2).
- With w = c ^ ~K and K = inverse of Z21 applied to ~0, those four bytes and 17 zeros leave the register at ~0: the value
  with which the CRC of body i begins.

So if every stored CRC is right, one CRC over everything from the first body on is the last batch's stored one. If
exactly one is wrong, the register is off by some d != 0 behind it, and stays off, for what follows acts on d as a power
of Z; the last value is then wrong. Several wrong ones in one buffer escape only if their differences cancel, one chance in
2^32, the chance any single wrong batch has of escaping its own CRC.
"""

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import ATTRIBUTES_OFFSET
from kaudit.formats.log.record_batch import Headers, at_every_byte

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


_LINK = _before_zero_bytes(0xFFFFFFFF, HEAD_SIZE) ^ 0xFFFFFFFF


def all_crcs_hold(buffer: memoryview, positions: NDArray[np.int64], stored: NDArray[np.uint32], end: int) -> bool:
    """Return whether batches of magic 2 that follow one another without a gap all match their `stored` CRCs.

    `buffer` is writable; the batches start at `positions` (bytes, shape (n,) as `stored`, n > 0) and the last one ends at
    `end`. All heads but the first are overwritten: `restore_heads` brings them back.
    """
    if len(positions) > 1:
        links = np.zeros((len(positions) - 1, HEAD_SIZE), dtype=np.uint8)
        links[:, :4] = (stored[:-1] ^ np.uint32(_LINK)).astype("<u4").view(np.uint8).reshape(-1, 4)
        at_every_byte(buffer, _HEAD)[positions[1:]] = links.view(_HEAD)[:, 0]
    return bool(crc32c(buffer[int(positions[0]) + HEAD_SIZE : end]) == int(stored[-1]))


def restore_heads(buffer: memoryview, positions: NDArray[np.int64], headers: Headers) -> None:
    """Write back the heads of the batches at `positions` (bytes, shape (n,)); `headers` are theirs, of HEADER_DTYPE."""
    heads = np.ascontiguousarray(headers).view(np.uint8).reshape(len(headers), -1)[:, :HEAD_SIZE]
    at_every_byte(buffer, _HEAD)[positions] = np.ascontiguousarray(heads).view(_HEAD)[:, 0]
