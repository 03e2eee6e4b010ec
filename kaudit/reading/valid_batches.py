"""Valid batches of a file that may have damage between any two: finding them, and holding their headers until they become columns.

A batch is valid if its CRC holds. The block that was searched last is kept, as the next search often begins in it.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.crc import crc32c
from kaudit.formats.log import resync
from kaudit.formats.log.batch_header import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    base_offset_of,
    batch_size,
    plausible_length,
)
from kaudit.formats.log.record_batch import (
    HEADER_BYTES,
    HEADER_DTYPE,
    Controls,
    Headers,
    decode_controls,
    gather_headers,
    header_columns,
)
from kaudit.model.batch import Batches, empty_batches
from kaudit.reading.read_window import Window

_FIRST_SEARCH_BYTES = 512
"""Searched first, then twice as many: most logs have one damage, if any."""
_MOST_SEARCH_BYTES = 256 << 10
"""A block is copied, and its candidates are a list: they stay small."""

_MOST_CORRUPT = 4
"""Damaged batches in a row after which the framing of the first counts as lost."""
_MOST_CHAINS = 16
"""Chains of batches after a damaged one that are looked at for the one that goes on from its offsets: a payload may hold any number."""
_MOST_CHAINED = 64
"""Batches after which a chain counts as the log's."""
_MOST_BATCH_BYTES = 4 << 20
"""A batch whose length is wrong is searched this far for its end: brokers take 1 MiB unless configured otherwise (message.max.bytes)."""
_LEAST_IN_VAIN, _MOST_IN_VAIN = 64 << 10, 64 << 20
"""Bytes that are searched for such ends, and for such chains, where there are none: a file's size between these."""
_OFFSETS = HEADER.struct("base_offset", "last_offset_delta")
_CRC = HEADER.struct("crc")
_COUNT, _COUNT_OFFSET = HEADER.struct("record_count"), HEADER.offset("record_count")


class Block(NamedTuple):
    """Bytes of the file from `start` on, searched up to `stop`; `candidates` ascend, as file positions."""

    start: int
    stop: int
    content: memoryview
    candidates: list[int]


class ValidBatches:
    """Finds batches whose CRC holds; the block searched last is kept, and the next one is larger if more was asked of it."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._block = Block(0, 0, memoryview(b""), [])
        self._valid: dict[int, bool] = {}
        self._without = range(0)
        """Bytes searched last where no batch begins whose CRC holds."""
        self._in_vain = 0
        """Bytes searched for the end of a damaged batch where it was not found."""

    def first(self, start: int, stop: int | None = None) -> int | None:
        """Return the first position from `start` on, and below `stop`, where a batch whose CRC holds begins."""
        end = self._window.end if stop is None else min(stop, self._window.end)
        if start in self._without:
            known, start = self._without.start, self._without.stop
        else:
            known = start
        found = self._first(start, end)
        if start < end:
            self._without = range(known, end if found is None else found)
        return found

    def _first(self, start: int, end: int) -> int | None:
        for block in self._blocks(start, end):
            for index in range(bisect_left(block.candidates, start), len(block.candidates)):
                candidate = block.candidates[index]
                if candidate >= end:
                    return None
                if self._is_valid(candidate):
                    return candidate
        return None

    def _blocks(self, start: int, stop: int) -> Iterator[Block]:
        """Yield the blocks that hold the bytes from `start` on, up to `stop` or the end of the file."""
        while start < stop:
            block = self._block
            if not block.start <= start < block.stop:
                block = self._search(start)
                if not len(block.content):
                    return
            yield block
            start = block.stop

    def chain(self, start: int, stop: int) -> tuple[Block, list[int]]:
        """Return the batches of magic 2 from `start` on that follow one another whole in the block searched last, below `stop`.

        Each of them matches its CRC. There are none unless `start` was searched.
        """
        block = self._block
        positions: list[int] = []
        at, stop = start, min(stop, block.stop)
        if not block.start <= at < stop:
            return block, positions
        index = bisect_left(block.candidates, at)
        while at < stop:
            while index < len(block.candidates) and block.candidates[index] < at:
                index += 1
            if index == len(block.candidates) or block.candidates[index] != at:
                break
            inside = at - block.start
            following = at + batch_size(block.content, inside)
            if block.content[inside + MAGIC_OFFSET] != CURRENT_MAGIC or following - block.start > len(block.content):
                break
            if not self._is_valid(at):
                break
            positions.append(at)
            at = following
        return block, positions

    def invalid_end(self, position: int) -> int | None:
        """Return where what may be a batch at `position` ends, if it lies whole in the block searched last and fails its CRC."""
        block = self._block
        index = bisect_left(block.candidates, position)
        if index == len(block.candidates) or block.candidates[index] != position:
            return None
        size = batch_size(block.content, position - block.start)
        whole = position + size <= block.start + len(block.content)
        return position + size if whole and not self._is_valid(position) else None

    def begins_no_batch(self, position: int) -> bool:
        """Return whether the bytes at `position` were searched last and cannot be the header of a batch, valid or not."""
        block = self._block
        inside = position - block.start
        if not 0 <= inside < len(block.content) - MAGIC_OFFSET:
            return False
        length = batch_size(block.content, inside) - LOG_OVERHEAD
        return not plausible_length(block.content[inside + MAGIC_OFFSET], length)

    def end_of(self, start: int, end: int, expected_offset: int | None) -> int | None:
        """Return where the damaged batch at `start`, which claims to end at `end`, does end, if that is proven; None if not.

        Bytes inside a batch are not the log's, whatever they look like: a value may hold batches. The CRC covers neither the length
        nor what is before it (DefaultRecordBatch.computeChecksum): where the bytes up to what may be a header, or to the end of the
        file, match it, only the length is wrong. Else the length is right if what it leads to is sound and goes on from the offsets
        before. `expected_offset` is the offset after the batch before, where known: the damaged header may claim a higher one.
        """
        head = bytes(self._window.load(start, HEADER_SIZE)[:HEADER_SIZE])
        if len(head) < HEADER_SIZE:
            return None
        found = self._end_by_crc(start, head, end)
        if found is not None:
            return found
        base_offset = base_offset_of(head)
        before = base_offset if expected_offset is None else min(base_offset, expected_offset - 1)
        if start + HEADER_SIZE <= end <= self._window.end and self._is_sound_from(end, before):
            return end
        return self._end_by_crc(start, head, start + _MOST_BATCH_BYTES) if end < start + _MOST_BATCH_BYTES else None

    def _end_by_crc(self, start: int, head: bytes, stop: int) -> int | None:
        """Return the first possible header before `stop`, or the end of the file, up to which the bytes match the CRC in `head`."""
        if not resync.is_plausible_but_for_length(head):
            return None
        stored, at, crc = _CRC.unpack_from(head, CRC_OFFSET)[0], start + ATTRIBUTES_OFFSET, 0
        stop = min(stop, start + _MOST_BATCH_BYTES, start + self._left_to_search(), self._window.end)
        if HEADER_SIZE < stop - start <= _FIRST_SEARCH_BYTES and stop < self._window.end:
            size = min(stop + MAGIC_OFFSET, self._window.end) - start
            content = self._window.load(start, size)[HEADER_SIZE:size]
            if not resync.may_hold_header(content, self._window.end - start - size):
                self._in_vain += stop - start
                return None
        for block in self._blocks(at, stop):
            content = block.content
            for candidate in block.candidates[bisect_left(block.candidates, start + HEADER_SIZE) :]:
                crc, at = crc32c(content[at - block.start : candidate - block.start], crc), candidate
                if crc == stored:
                    return at
            crc, at = crc32c(content[at - block.start : block.stop - block.start], crc), block.stop
        if at == self._window.end and crc == stored:
            return at
        self._in_vain += max(stop - start, 0)
        return None

    def following(self, start: int) -> int | None:
        """Return where a valid batch begins after the damaged bytes at `start`, None if none does.

        If these are a batch's, a chain of valid batches that goes on from its last offset outranks those before it.
        """
        first = at = self.first(start + 1)
        head = bytes(self._window.load(start, HEADER_SIZE)[:HEADER_SIZE])
        if not resync.is_plausible_but_for_length(head):
            return first
        base_offset, last_offset_delta = _OFFSETS.unpack_from(head)
        # either may be damaged: a batch that was not compacted has as many records as offsets
        next_offsets = base_offset + last_offset_delta + 1, base_offset + _COUNT.unpack_from(head, _COUNT_OFFSET)[0]
        going_on, stop = None, min(start + _MOST_BATCH_BYTES, start + self._left_to_search())
        for _ in range(_MOST_CHAINS):
            if at is None or at >= stop:
                break
            broken_at = self._break_of_chain(at)
            if self._claim(at)[1] in next_offsets:
                if broken_at is None:
                    return at
                going_on = at if going_on is None else going_on
            self._in_vain += (at if broken_at is None else broken_at) - start
            at = None if broken_at is None else self.first(broken_at)
        return first if going_on is None else going_on

    def _left_to_search(self) -> int:
        """Return the bytes that may still be searched in vain: as many as the file has, however many of its batches are damaged."""
        return min(max(self._window.end, _LEAST_IN_VAIN), _MOST_IN_VAIN) - self._in_vain

    def _break_of_chain(self, at: int) -> int | None:
        """Return where valid batches with rising offsets, of which one is here, break off; None where they go on as the log does."""
        last_offset = -1
        for _ in range(_MOST_CHAINED):
            size, base_offset = self._claim(at)
            if at == self._window.end:
                return None
            if not size or base_offset <= last_offset or not self._window.is_batch(at, size):
                return at
            last_offset, at = base_offset, at + size
        return None

    def _is_sound_from(self, at: int, before: int) -> bool:
        """Whether a valid batch or the end of the file is here or after a few more damaged batches; offsets rise from `before`."""
        for _ in range(_MOST_CORRUPT):
            size, base_offset = self._claim(at)
            if not size or base_offset <= before:
                return at == self._window.end
            if self._window.is_batch(at, size):
                return True
            before, at = base_offset, at + size
        return False

    def _claim(self, at: int) -> tuple[int, int]:
        """Return the size and the base offset of what may be a batch here, whole in the file; size 0 of what cannot be one."""
        view = self._window.load(at, HEADER_SIZE)
        if len(view) <= MAGIC_OFFSET:
            return 0, -1
        size = batch_size(view, 0)
        plausible = plausible_length(view[MAGIC_OFFSET], size - LOG_OVERHEAD) and size <= self._window.end - at
        return size if plausible else 0, base_offset_of(view)

    def _is_valid(self, position: int) -> bool:
        known = self._valid.get(position)
        if known is None:
            size = batch_size(self._block.content, position - self._block.start)
            known = self._valid[position] = self._window.is_batch(position, size)
        return known

    def _search(self, start: int) -> Block:
        last = self._block
        goes_on = last.start < last.stop and last.stop <= start < last.stop + _FIRST_SEARCH_BYTES
        step = min(2 * (last.stop - last.start), _MOST_SEARCH_BYTES) if goes_on else _FIRST_SEARCH_BYTES
        content = memoryview(bytes(self._window.load(start, step + HEADER_SIZE)[: step + HEADER_SIZE]))
        after = self._window.end - (start + len(content))
        found = resync.candidates(content, 0, after, step)
        # a header in the last bytes is seen whole only in the next block, if there is one
        searched = max(min(step, len(content) - (HEADER_SIZE - 1 if after else 0)), 1)
        self._block = Block(start, start + searched, content, (found[found < searched] + start).tolist())
        self._valid = {}
        return self._block


class HeaderBlock(Struct, frozen=True):
    """The headers of valid batches of magic 2 that lie in one buffer; `file_positions`: int64, shape (n,), bytes, ascending."""

    headers: Headers
    file_positions: NDArray[np.int64]
    controls: Controls


class HeldBatches:
    """Holds headers in file order; batches between damages, one or two each, are gathered from their block together."""

    def __init__(self) -> None:
        self._held: list[HeaderBlock] = []
        self._block: Block | None = None
        self._positions: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._held or self._positions)

    def add(self, headers: HeaderBlock) -> None:
        """Take batches that come after those held."""
        self._gather()
        self._held.append(headers)

    def add_from(self, block: Block, positions: list[int]) -> None:
        """Take the batches at these positions of the file, which lie whole in the block, after those held."""
        if block is not self._block:
            self._gather()
            self._block = block
        self._positions += positions

    def columns(self) -> Batches:
        """Return what is held."""
        self._gather()
        held = self._held
        if not held:
            return empty_batches()
        if len(held) == 1:
            return header_columns(held[0].headers, held[0].file_positions, held[0].controls)
        before = np.cumsum([0] + [len(part.headers) for part in held[:-1]])
        controls = Controls(
            np.concatenate([part.controls.indexes + first for part, first in zip(held, before, strict=True)]),
            np.concatenate([part.controls.types for part in held]),
            np.concatenate([part.controls.coordinator_epochs for part in held]),
        )
        # as plain bytes: records would be copied field by field
        headers = np.concatenate([part.headers.view(HEADER_BYTES) for part in held]).view(HEADER_DTYPE)
        return header_columns(headers, np.concatenate([part.file_positions for part in held]), controls)

    def _gather(self) -> None:
        if self._block is None or not self._positions:
            return
        file_positions = np.array(self._positions, dtype=np.int64)
        positions = file_positions - self._block.start
        headers = gather_headers(self._block.content, positions)
        controls = decode_controls(self._block.content, positions, headers)
        self._held.append(HeaderBlock(headers, file_positions, controls))
        self._positions = []
