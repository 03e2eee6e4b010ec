"""The last batches or records of a partition, searched for equals of those that follow."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.model.columns import Columns, joined
from kaudit.reading.equal_batches import EqualUnits, Indexes

WINDOW = 1 << 20
"""A unit - a batch or a record - is compared with so many before it: about 100 bytes of memory each."""
_SLOT_BITS = 23
_SLOTS = 1 << _SLOT_BITS
_SLOT_SHIFT = 64 - _SLOT_BITS


class _Filter:
    """Which values may be in the blocks: most are in none, and need not be searched."""

    def __init__(self) -> None:
        self._slots = np.zeros(_SLOTS, dtype=np.bool_)
        self._added = 0

    def may_hold(self, values: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each value whether it may be there. Fast where they ascend: then so do their slots."""
        return self._slots.take(_slots(values))

    def add(self, values: NDArray[np.int64]) -> None:
        """Take more values."""
        self._slots[_slots(values)] = True
        self._added += len(values)

    @property
    def is_full(self) -> bool:
        """Whether so many values were added, most of them out of reach by now, that it holds back few."""
        return self._added > 3 * WINDOW


def _slots(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return (values >> _SLOT_SHIFT) + _SLOTS // 2


class _Block(NamedTuple):
    """Neighbouring units, the first of which is unit `first` of the partition."""

    first: int
    units: Columns
    columns: dict[str, EqualUnits]


class Matches(NamedTuple):
    """The last equal before some units: `found` are indexes of units that have one, `earlier` those equals, row by row."""

    found: Indexes
    earlier: Columns


class LastUnits:
    """Takes a partition's units in order, and finds for each the last one before it with the same value in a column.

    Memory: at most `window` units and two blocks of a quarter of it.
    """

    def __init__(self, names: Sequence[str], window: int = WINDOW) -> None:
        self._names = names
        self._window = window
        self._blocks: list[_Block] = []
        self._filters = {name: _Filter() for name in names}
        self._count = 0

    def feed(self, units: Columns) -> dict[str, Matches]:
        """Take more units of dtype CONTENT; return the matches by column. A value of 0 has no equals."""
        matches = {}
        own = _Block(self._count, units, {name: EqualUnits.of(units[name]) for name in self._names})
        for name in self._names:
            matches[name] = self._match(name, own)
        self._count += len(units)
        self._blocks.append(own)
        self._settle()
        for name, column in own.columns.items():
            self._filters[name].add(column.contents)
            if self._filters[name].is_full:
                self._filters[name] = _Filter()
                for block in self._blocks:
                    self._filters[name].add(block.columns[name].contents)
        return matches

    def _match(self, name: str, own: _Block) -> Matches:
        column = own.columns[name]
        before, again = (places.compress(column.contents.take(places) != 0) for places in column.previous(self._window))
        found, earlier = [column.order.take(again)], [own.units[column.order.take(before)]]
        firsts = column.firsts()
        firsts = firsts.compress(self._filters[name].may_hold(column.contents.take(firsts)))
        firsts = firsts.compress(column.contents.take(firsts) != 0)
        for block in reversed(self._blocks):
            at = block.columns[name].latest(column.contents.take(firsts))
            again = column.order.take(firsts)
            hit = (at >= 0) & (block.first + at >= own.first + again - self._window)
            if hit.any():
                found.append(again.compress(hit))
                earlier.append(block.units[at.compress(hit)])
            firsts = firsts.compress(at < 0)
        indexes = np.concatenate(found)
        order = np.argsort(indexes)
        return Matches(indexes.take(order), joined(earlier)[order])

    def _settle(self) -> None:
        """Join small blocks, so that few are searched, and drop those that are out of reach."""
        blocks = self._blocks
        while len(blocks) > 1 and len(blocks[-2].units) <= 2 * len(blocks[-1].units):
            if len(blocks[-2].units) + len(blocks[-1].units) > self._window // 4:
                break
            last, before = blocks.pop(), blocks.pop()
            units = joined((before.units, last.units))
            blocks.append(_Block(before.first, units, {name: EqualUnits.of(units[name]) for name in self._names}))
        while len(blocks) > 1 and blocks[0].first + len(blocks[0].units) <= self._count - self._window:
            del blocks[0]
