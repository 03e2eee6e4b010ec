"""Settling the order of batches whose offsets do not ascend (KA006).

Replay goes in offset order. The first occurrence of an offset wins; a swapped pair is put back in order; a batch whose
offsets lie outside its neighbours' is set aside, and the offsets it should have held then count as missing.
"""

import numpy as np
from numpy.typing import NDArray

from kaudit.model.batch import Batches, concatenate, empty_batches, last_offsets
from kaudit.model.damage import DamageKind, LogDamage

_LOOK_AHEAD = 2
"""Batches that must follow before one can be judged."""
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
        """Take more batches; return those that can be judged now, ascending, and the damage found."""
        self._held = concatenate((self._held, batches))
        return self._settle(len(self._held) - _LOOK_AHEAD)

    def finish(self) -> tuple[Batches, list[LogDamage]]:
        """The segment has ended: return the rest."""
        return self._settle(len(self._held))

    def _settle(self, count: int) -> tuple[Batches, list[LogDamage]]:
        if count <= 0:
            return empty_batches(), []
        bases, lasts = self._held["base_offset"], last_offsets(self._held)
        keep: list[int] = []
        damages: list[LogDamage] = []
        index = 0
        while index < count:
            index = self._take_ascending(bases, lasts, index, count, keep)
            if index < count:
                index = self._take_odd(bases, lasts, index, keep, damages)
        settled = self._held[keep]
        self._held = self._held[index:]
        return settled, damages

    def _take_ascending(
        self, bases: NDArray[np.int64], lasts: NDArray[np.int64], start: int, count: int, keep: list[int]
    ) -> int:
        """Take the stretch in which every batch ascends and is followed by one that does; return where it stops."""
        stop = min(count, len(bases))
        ascends = np.ones(stop - start, dtype=bool)
        ascends[0] = bases[start] > self._last
        ascends[1:] = bases[start + 1 : stop] > lasts[start : stop - 1]
        ahead = np.ones(stop - start, dtype=bool)
        following = bases[start + 1 : stop + 1]
        ahead[: len(following)] = following > lasts[start : start + len(following)]
        inside = (bases[start:stop] >= self._bounds[0]) & (lasts[start:stop] < self._bounds[1])
        bad = np.flatnonzero(~(ascends & ahead & inside))
        taken = int(bad[0]) if len(bad) else stop - start
        if taken:
            keep.extend(range(start, start + taken))
            self._last = int(lasts[start + taken - 1])
        return start + taken

    def _take_odd(
        self,
        bases: NDArray[np.int64],
        lasts: NDArray[np.int64],
        index: int,
        keep: list[int],
        damages: list[LogDamage],
    ) -> int:
        base, last = int(bases[index]), int(lasts[index])
        if not self._bounds[0] <= base <= last < self._bounds[1]:
            self._set_aside(index, "its segment cannot hold these offsets", damages)
            return index + 1
        if base <= self._last:
            self._set_aside(index, f"it repeats or precedes offset {self._last}, which came before it", damages)
            return index + 1
        if index + 1 >= len(bases):
            keep.append(index)
            self._last = last
            return index + 1
        next_base, next_last = int(bases[index + 1]), int(lasts[index + 1])
        if next_base <= self._last or next_base < self._bounds[0] or next_last >= self._bounds[1]:
            # the next one is the odd one: take this, judge that when its turn comes
            keep.append(index)
            self._last = last
            return index + 1
        if next_base == base:
            # the same offsets twice: the first occurrence wins
            keep.append(index)
            self._last = last
            return index + 1
        if next_last < base and (index + 2 >= len(bases) or int(bases[index + 2]) > last):
            row = self._held[index]
            detail = f"it stands before the batch of offsets {next_base}..{next_last}: the two are exchanged"
            damages.append(_damage(int(row["position"]), int(row["size"]), base, last, detail))
            keep.extend((index + 1, index))
            self._last = last
            return index + 2
        self._set_aside(index, f"the next batch goes on at offset {next_base}", damages)
        return index + 1

    def _set_aside(self, index: int, detail: str, damages: list[LogDamage]) -> None:
        row = self._held[index]
        position, size = int(row["position"]), int(row["size"])
        base = int(row["base_offset"])
        last = base + int(row["last_offset_delta"])
        damages.append(_damage(position, size, base, last, detail, int(row["producer_id"])))


def _damage(position: int, size: int, base: int, last: int, detail: str, producer_id: int | None = None) -> LogDamage:
    return LogDamage(DamageKind.OUT_OF_ORDER, position, position + size, True, detail, base, last, producer_id)
