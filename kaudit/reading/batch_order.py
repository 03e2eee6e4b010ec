"""Settling the order of batches whose offsets do not ascend.

A log is replayed in offset order. The first occurrence of an offset wins; a swapped pair is put back in order; a batch whose
offsets lie outside its neighbours' is set aside, and the offsets it should have held then count as missing.
"""

from bisect import bisect_left

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.model.batch import Batches, concatenate, empty_batches, last_offsets
from kaudit.model.columns import Row
from kaudit.model.damage import DamageKind, LogDamage

_LOOKAHEAD = 2
"""Batches that must follow before the place of one can be decided."""
_NO_BOUND = 2**63 - 1


class OrderFilter:
    """Takes batches in file order, gives them back in offset order together with those that broke it."""

    def __init__(self) -> None:
        self._last = -1
        self._bounds = (0, _NO_BOUND)
        self._held = empty_batches()

    def enter_segment(self, base_offset: int, next_base_offset: int | None) -> None:
        """Take note of the offsets the next batches' segment can hold; those before must have been settled."""
        self._bounds = (base_offset, _NO_BOUND if next_base_offset is None else next_base_offset)

    def feed(self, batches: Batches) -> tuple[Batches, list[LogDamage]]:
        """Take more batches; return those whose place is decided, ascending, and the damage found."""
        self._held = concatenate((self._held, batches))
        return self._settle(len(self._held) - _LOOKAHEAD)

    def finish(self) -> tuple[Batches, list[LogDamage]]:
        """The segment has ended: return the rest."""
        return self._settle(len(self._held))

    def _settle(self, count: int) -> tuple[Batches, list[LogDamage]]:
        if count <= 0:
            return empty_batches(), []
        bases, lasts = self._held["base_offset"], last_offsets(self._held)
        odd = [*self._odd(bases, lasts, count), count]
        keep: list[int] = []
        damages: list[LogDamage] = []
        index = 0
        while index < count:
            index = self._take_ascending(bases, lasts, index, odd[bisect_left(odd, index)], keep)
            if index < count:
                index = self._take_odd(bases, lasts, index, keep, damages)
        settled = self._held[keep]
        self._held = self._held[index:]
        return settled, damages

    def _odd(self, bases: NDArray[np.int64], lasts: NDArray[np.int64], count: int) -> list[int]:
        """Return which of the first `count` batches are followed by one that does not ascend, or lie outside of their segment."""
        odd = (bases < self._bounds[0]) | (lasts >= self._bounds[1])
        odd[:-1] |= bases[1:] <= lasts[:-1]
        numbers: list[int] = np.flatnonzero(odd[:count]).tolist()
        return numbers

    def _take_ascending(
        self, bases: NDArray[np.int64], lasts: NDArray[np.int64], start: int, stop: int, keep: list[int]
    ) -> int:
        """Take the batches from `start` to `stop`, none of them odd, if the first ascends; return where that ends."""
        if stop == start or bases[start] <= self._last:
            return start
        keep.extend(range(start, stop))
        self._last = int(lasts[stop - 1])
        return stop

    def _take_odd(
        self,
        bases: NDArray[np.int64],
        lasts: NDArray[np.int64],
        index: int,
        keep: list[int],
        damages: list[LogDamage],
    ) -> int:
        """Settle one batch that does not ascend, or is followed by one that does not; return where to go on."""
        base, last = int(bases[index]), int(lasts[index])
        if not self._bounds[0] <= base <= last < self._bounds[1]:
            damages.append(_damage(self._held[index], "its segment cannot hold these offsets"))
            return index + 1
        if base <= self._last:
            damages.append(_damage(self._held[index], f"offset {self._last} had already been written"))
            return index + 1
        following = (int(bases[index + 1]), int(lasts[index + 1])) if index + 1 < len(bases) else None
        if following is None or self._is_odd(following) or following[0] == base:
            # if the next one is the odd one, its turn comes; of the same offsets twice the first occurrence wins
            keep.append(index)
            self._last = last
            return index + 1
        if following[1] < base and (index + 2 >= len(bases) or int(bases[index + 2]) > last):
            detail = f"it stands before the batch of offsets {following[0]}..{following[1]}: the two are exchanged"
            damages.append(replace(_damage(self._held[index], detail), producer_id=None))
            keep.extend((index + 1, index))
            self._last = last
            return index + 2
        damages.append(_damage(self._held[index], f"the next batch goes on at offset {following[0]}"))
        return index + 1

    def _is_odd(self, offsets: tuple[int, int]) -> bool:
        """Return whether a batch of these first and last offsets cannot follow those taken."""
        return offsets[0] <= self._last or offsets[0] < self._bounds[0] or offsets[1] >= self._bounds[1]


def _damage(batch: Row, detail: str) -> LogDamage:
    position, base = batch["position"], batch["base_offset"]
    last = base + max(batch["last_offset_delta"], 0)
    end = position + batch["size"]
    return LogDamage(DamageKind.OUT_OF_ORDER, position, end, True, detail, base, last, batch["producer_id"])
