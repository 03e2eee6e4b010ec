"""A reusable buffer over a file: bounded memory whatever the file's or a batch's size."""

from kaudit.crc import crc32c
from kaudit.formats.log.batch_header import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MESSAGE_V0,
    PREFIX_SIZE,
    batch_size,
    plausible_length,
)
from kaudit.formats.log.crc_algebra import CrcRanges
from kaudit.formats.log.record_batch import batch_crc_holds
from kaudit.source.bytes import ByteSource

_PIECE_BYTES = 1 << 20
_LARGE_CLAIM_BYTES = 4 << 20
"""Brokers take batches of 1 MiB unless configured otherwise (message.max.bytes)."""
_SMALL_CLAIM_BYTES = 4 << 10
"""Cheaper to look at than to compute from CRCs that are known."""


class Window:
    """`load` makes the bytes of a file from a position on available as a memoryview, valid until the next load."""

    def __init__(self, source: ByteSource, end: int, size: int) -> None:
        self._source = source
        self.end = end
        self.base = 0
        """Position of the first byte of the last load."""
        self._buffer = memoryview(bytearray(size))
        self._origin = 0
        """Position of the buffer's first byte in the file."""
        self._filled = 0
        self._spent = 0
        self._claimed = 0
        """Bytes of claims that were no batch."""
        self._ranges: CrcRanges | None = None

    @property
    def capacity(self) -> int:
        """Return the window's size in bytes."""
        return len(self._buffer)

    def load(self, position: int, size: int | None = None) -> memoryview:
        """Return the bytes from `position` up to `size` (at most the window's) or the end of the file, keeping what is there."""
        left = max(self.end - position, 0)
        wanted = min(self.capacity if size is None else min(size, self.capacity), left)
        kept = self._origin + self._filled - position if self._holds(position) else 0
        if kept < wanted or not kept:
            if kept > wanted // 2:
                # small steps: without more to go on with, each of them would move the whole buffer
                wanted = min(2 * wanted, self.capacity, left)
            first = position - self._origin
            if kept and first:
                self._buffer[:kept] = self._buffer[first : self._filled]
            read = self._source.read_into(position + kept, self._buffer[kept:wanted]) if wanted > kept else 0
            self._origin, self._filled = position, kept + read
        self.base = position
        return self._buffer[position - self._origin : self._filled]

    def spend(self, position: int) -> None:
        """Mark that the bytes before `position` are no longer the file's: they must be read again if asked for."""
        self._spent = position

    def _holds(self, position: int) -> bool:
        return max(self._origin, self._spent) <= position < self._origin + self._filled

    def crc_holds(self, position: int, size: int) -> bool:
        """Return whether the batch of `size` bytes at `position` matches its CRC, in bounded memory."""
        if self._holds(position) and position + size <= self._origin + self._filled:
            return batch_crc_holds(self._buffer, position - self._origin, size)
        if size <= self.capacity:
            piece = memoryview(bytearray(size))
            return self._source.read_into(position, piece) == size and batch_crc_holds(piece, 0, size)
        return self._crc_in_pieces(position, size)

    def is_batch(self, position: int, size: int) -> bool:
        """Return whether the bytes at `position`, which may claim by chance to be a batch of `size` bytes, are a valid one.

        What claims to be large is read only if a batch, zeros or the end follow, and where much was claimed in vain nothing is read
        more than once: a payload may hold any number of such claims, each on the rest of the file.
        """
        if size > _LARGE_CLAIM_BYTES and not self._goes_on_at(position + size):
            return False
        if size <= _SMALL_CLAIM_BYTES or self._claimed <= _LARGE_CLAIM_BYTES:
            holds = self.crc_holds(position, size)
            self._claimed += 0 if holds else size
            return holds
        return self._crc_holds_by_ranges(position, size)

    def _crc_holds_by_ranges(self, position: int, size: int) -> bool:
        ranges = self._ranges
        if ranges is None or position < ranges.start:
            # the search for a batch may step back, though not far
            ranges = self._ranges = CrcRanges(self._read, max(position - _LARGE_CLAIM_BYTES, 0))
        head, end = self._read(position, ATTRIBUTES_OFFSET), position + size
        if head[MAGIC_OFFSET] == CURRENT_MAGIC:
            return ranges.crc32c(position + ATTRIBUTES_OFFSET, end) == int.from_bytes(head[CRC_OFFSET:], "big")
        stored = int.from_bytes(head[MESSAGE_V0.offset("crc") : MAGIC_OFFSET], "big")
        return size <= self.capacity and ranges.crc32(position + MAGIC_OFFSET, end) == stored

    def _read(self, position: int, size: int) -> bytes:
        piece = bytearray(max(min(size, self.end - position), 0))
        return bytes(piece[: self._source.read_into(position, memoryview(piece))])

    def _goes_on_at(self, position: int) -> bool:
        prefix = memoryview(bytearray(PREFIX_SIZE))
        if self._source.read_into(position, prefix[: max(self.end - position, 0)]) < PREFIX_SIZE or not any(prefix):
            return True
        return plausible_length(prefix[MAGIC_OFFSET], batch_size(prefix) - LOG_OVERHEAD)

    def _crc_in_pieces(self, position: int, size: int) -> bool:
        head = memoryview(bytearray(HEADER_SIZE))
        if self._source.read_into(position, head) < HEADER_SIZE or head[MAGIC_OFFSET] != CURRENT_MAGIC:
            return False  # legacy messages of more than a window do not exist: max.message.bytes predates them
        crc, at, stop = 0, position + ATTRIBUTES_OFFSET, position + size
        piece = memoryview(bytearray(_PIECE_BYTES))
        while at < stop:
            read = self._source.read_into(at, piece[: min(len(piece), stop - at)])
            if read == 0:
                return False
            crc = crc32c(piece[:read], crc)
            at += read
        return crc == int.from_bytes(head[CRC_OFFSET:ATTRIBUTES_OFFSET], "big")
