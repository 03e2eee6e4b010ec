"""Valid batches of a file that may have damage between any two: finding them, and holding their headers until they become columns.

A batch is valid if its CRC holds. The block that was searched last is kept, as the next search often begins in it.
"""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

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
from kaudit.formats.log.records import VARINT_BYTES, record_size
from kaudit.model.batch import Batches, empty_batches
from kaudit.model.batch_fields import CODEC_MASK
from kaudit.reading.read_window import Window

_FIRST_SEARCH_BYTES = 512
"""Searched first, then twice as many: most logs have one damage, if any."""
_MOST_SEARCH_BYTES = 256 << 10
"""A block is copied, and its candidates are a list: they stay small."""

_MOST_CORRUPT = 4
"""Damaged batches in a row after which the framing of the first counts as lost."""
_MOST_INNER = 16
"""Batches inside a damaged one that are followed to its end: a payload may hold any number."""
_MOST_BATCH_BYTES = 4 << 20
"""A batch whose length is wrong is followed this far: brokers take 1 MiB unless configured otherwise (message.max.bytes)."""
_MOST_RECORDS = 1 << 14
"""Records followed in a batch whose length is wrong: those that carry batches are not small."""
_OFFSETS = HEADER.struct("base_offset", "last_offset_delta")
_RECORDS = HEADER.struct("crc", "attributes", "record_count")


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
        while start < end:
            block = self._block
            if not block.start <= start < block.stop:
                block = self._search(start)
                if not len(block.content):
                    return None
            for index in range(bisect_left(block.candidates, start), len(block.candidates)):
                candidate = block.candidates[index]
                if candidate >= end:
                    return None
                if self._is_valid(candidate):
                    return candidate
            start = block.stop
        return None

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

    def is_framed(self, start: int, end: int, expected_offset: int | None) -> bool:
        """Whether a batch that fails its CRC is as long as it says: what follows it is sound and goes on from its offsets.

        Bytes inside such a batch are not the log's, whatever they look like: a value may hold batches. A wrong length may lead to a
        sound batch too, past others: then these lead there as well, and go on from the batch's own offsets. `expected_offset` is
        the offset after the batch before, where known: the damaged header may claim a higher one than it had.
        """
        head = bytes(self._window.load(start, HEADER_SIZE)[:HEADER_SIZE])
        if len(head) < HEADER_SIZE:
            return False
        base_offset, last_offset_delta = _OFFSETS.unpack_from(head)
        before = base_offset if expected_offset is None else min(base_offset, expected_offset)
        if not self._is_sound_from(end, before):
            return False
        # at the end of the file no later offset confirms those that the damaged header claims
        last_offset = base_offset + last_offset_delta if end < self._window.end else -1
        inner, tries = self.first(start + 1, end), 0
        while inner is not None and tries < _MOST_INNER:
            broken_at = self._breaks_before(inner, end, last_offset)
            if broken_at is None:
                return False
            # the batches before the break lead to it too
            inner, tries = self.first(max(broken_at, inner + 1), end), tries + 1
        return True

    def end_by_records(self, start: int, expected_offset: int | None) -> int | None:
        """Return where the records of the uncompressed batch at `start` end, if that is proven: its length is wrong then.

        The CRC covers what follows its field, not the length (DefaultRecordBatch.computeChecksum): either the bytes up to there
        match it, or the batch is framed there. None if neither holds; `expected_offset` as in `is_framed`.
        """
        head = bytes(self._window.load(start, HEADER_SIZE)[:HEADER_SIZE])
        if not resync.is_plausible_but_for_length(head):
            return None
        stored, attributes, count = _RECORDS.unpack_from(head, CRC_OFFSET)
        if attributes & CODEC_MASK or not 0 < count <= _MOST_RECORDS:
            return None
        at, limit = start + HEADER_SIZE, min(start + _MOST_BATCH_BYTES, self._window.end)
        for _ in range(count):
            size = record_size(bytes(self._window.load(at, VARINT_BYTES)[:VARINT_BYTES]))
            if not 0 < size <= limit - at:
                return None
            at += size
        matches = self._window.crc_of(start + ATTRIBUTES_OFFSET, at) == stored
        return at if matches or self.is_framed(start, at, expected_offset) else None

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

    def _breaks_before(self, at: int, end: int, last_offset: int) -> int | None:
        """Return where valid batches from here on, with offsets that rise from `last_offset`, break off; None if they lead to `end`."""
        while at < end:
            size, base_offset = self._claim(at)
            if not size or at + size > end or base_offset <= last_offset or not self._window.is_batch(at, size):
                return at
            last_offset, at = base_offset, at + size
        size, base_offset = self._claim(at)
        return None if not size or base_offset > last_offset else at

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
