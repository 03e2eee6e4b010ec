"""Where in a file the next batch begins whose CRC holds: damage may stand between any two batches, so what was searched is kept."""

from bisect import bisect_left
from typing import NamedTuple

from kaudit.formats.log import resync
from kaudit.formats.log.batch_header import (
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    batch_size,
    plausible_length,
)
from kaudit.reading.read_window import Window

_FIRST_SEARCH_BYTES = 512
"""Searched first, then twice as many: most logs have one damage, if any."""
_MOST_SEARCH_BYTES = 256 << 10
"""A block is copied, and its candidates are a list: they stay small."""


class Block(NamedTuple):
    """Bytes of the file from `start` on, of which those before `stop` were searched; `candidates` ascend, as file positions."""

    start: int
    stop: int
    content: memoryview
    candidates: list[int]


class SoundBatches:
    """Finds batches whose CRC holds; the block searched last is kept, and the next one is larger if more was asked of it."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._block = Block(0, 0, memoryview(b""), [])
        self._sound: dict[int, bool] = {}
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
                if self._is_sound(candidate):
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
            if not self._is_sound(at):
                break
            positions.append(at)
            at = following
        return block, positions

    def unsound_end(self, position: int) -> int | None:
        """Return where what may be a batch at `position` ends, if it lies whole in the block searched last and fails its CRC."""
        block = self._block
        index = bisect_left(block.candidates, position)
        if index == len(block.candidates) or block.candidates[index] != position:
            return None
        size = batch_size(block.content, position - block.start)
        whole = position + size <= block.start + len(block.content)
        return position + size if whole and not self._is_sound(position) else None

    def begins_no_batch(self, position: int) -> bool:
        """Return whether the bytes at `position` were searched last and cannot be a batch's header, sound or not."""
        block = self._block
        inside = position - block.start
        if not 0 <= inside < len(block.content) - MAGIC_OFFSET:
            return False
        length = batch_size(block.content, inside) - LOG_OVERHEAD
        return not plausible_length(block.content[inside + MAGIC_OFFSET], length)

    def _is_sound(self, position: int) -> bool:
        known = self._sound.get(position)
        if known is None:
            size = batch_size(self._block.content, position - self._block.start)
            known = self._sound[position] = self._window.is_batch(position, size)
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
        self._sound = {}
        return self._block
