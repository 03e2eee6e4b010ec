"""Pairs of equal records, found while a partition is read, each among the last units before it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.sequences.producer_table import ProducerTable
from kaudit.audits.transactions.transaction_spans import TransactionSpans
from kaudit.model.columns import Columns, joined, no_rows
from kaudit.model.log_rows import BoundaryBatch, NonIdempotentBatch
from kaudit.model.producer_patterns import RepeatedBatch, RepeatedEpoch, RepeatedSession
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.content_rows import CONTENT, NO_KEY
from kaudit.reading.equal_batches import EqualUnits, Indexes
from kaudit.reading.producer_grouping import Merged
from kaudit.source.layout import PartitionDirectory

WINDOW = 1 << 20
"""Number of earlier records with which each is compared: about 100 bytes of memory each."""
_SLOT_BITS = 23
_SLOTS = 1 << _SLOT_BITS
_SLOT_SHIFT = 64 - _SLOT_BITS


class _Filter:
    """Filter of values: most are in no block, and need not be searched."""

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


MAX_LISTED = 1_000_000
"""Suspects kept of all partitions together, about 120 bytes each; the rest is counted."""

Flags = NDArray[np.bool_]


class Pairs(Struct, frozen=True):
    """Suspects in offset order: `again` repeats `earlier`, row by row, both of dtype CONTENT; outcomes as of TransactionSpans.

    `same_content`: what they say; else only producer id, epoch and sequence. `known_sequence`: an earlier record has the
    same producer id, epoch and sequence.
    """

    again: Columns
    earlier: Columns
    same_content: Flags
    known_sequence: Flags
    outcomes: Sequence[str | None]
    earlier_outcomes: Sequence[str | None]


class ReportedRepeat(Struct, frozen=True):
    """A repeat that a scan reports: the batches of both sides in offset order, and where the equal records begin.

    `records` of them are equal. They may be further apart than WINDOW.
    """

    copied: Sequence[NonIdempotentBatch | BoundaryBatch]
    again: Sequence[NonIdempotentBatch | BoundaryBatch]
    copied_first: int
    first_offset: int
    records: int

    @classmethod
    def of(cls, repeat: RepeatedBatch | RepeatedSession | RepeatedEpoch) -> "ReportedRepeat":
        """Return what a scan found in the form that is compared here."""
        if isinstance(repeat, RepeatedBatch):
            first, again = repeat.first, repeat.again
            return cls([first], [again], first.base_offset, again.base_offset, again.record_count)
        return cls(repeat.copied, repeat.again, repeat.copied_first, repeat.first_offset, repeat.records)


class PartitionDuplicates(Struct):
    """The suspects of a partition, and what was counted of it.

    `records` were compared; `more` are those of suspects that were not kept, `undecoded` the batches that cannot be decoded;
    `known_keys` and `without_key` as in SuspectRows.
    """

    directory: PartitionDirectory
    identity: str
    """By which records were compared, as `--identity` names it."""
    pairs: Pairs
    records: int
    more: int
    undecoded: int
    known_keys: int
    without_key: int
    compacted: bool
    reported: Sequence[ReportedRepeat] = ()
    """What a scan reports, in any order: listed also where it is not among `pairs`."""


class Room:
    """How many more suspects are kept."""

    def __init__(self, most: int = MAX_LISTED) -> None:
        self.left = most

    def take(self, wanted: int) -> int:
        """Return how many of those wanted are granted."""
        granted = min(wanted, self.left)
        self.left -= granted
        return granted


class SuspectRows:
    """Takes a partition's rows in order, and keeps the suspects among its records."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.clear()

    def clear(self) -> None:
        """Begin again: the partition is read once more."""
        self.records = 0
        self.undecoded = 0
        self.more = 0
        """Records of suspects that are not kept."""
        self.known_keys = 0
        """Records with a key that an earlier one has, which says something else."""
        self.without_key = 0
        self._units: LastUnits | None = None
        self._spans = TransactionSpans()
        self._kept: list[tuple[Columns, Columns, Flags, Flags]] = []

    def add(self, chunk: ChunkRows, merged: Merged, table: ProducerTable) -> None:  # noqa: ARG002 - rows name their ids
        """Take a chunk's rows."""
        self._spans.feed(merged)
        self.undecoded += chunk.undecoded
        units = chunk.contents
        if units is None or not len(units):
            return
        if self._units is None:
            self._units = LastUnits(("content", "identity", "key"))
        self.records += int(units["records"].sum(dtype=np.int64))
        matches = self._units.feed(units)
        self._count_keys(units, matches["key"], matches["content"])
        self._keep(units, matches["content"], matches["identity"])

    def _count_keys(self, units: Columns, keys: Matches, contents: Matches) -> None:
        new = np.setdiff1d(keys.found, contents.found, assume_unique=True)
        self.known_keys += len(new)
        self.without_key += int(np.count_nonzero(units["key"] == NO_KEY))

    def _keep(self, units: Columns, contents: Matches, identities: Matches) -> None:
        known = np.zeros(len(units), dtype=np.bool_)
        known[identities.found] = True
        reused = identities.earlier["content"] != units["content"].take(identities.found)
        found = np.concatenate((contents.found, identities.found.compress(reused)))
        if not len(found):
            return
        same = np.arange(len(found)) < len(contents.found)
        earlier = joined((contents.earlier, identities.earlier[reused]))
        order = np.argsort(found, kind="stable")
        kept = order[: self._room.take(len(found))]
        self.more += int(units["records"].take(found.take(order[len(kept) :])).sum(dtype=np.int64))
        chosen = found.take(kept)
        self._kept.append((units[chosen].settled(), earlier[kept].settled(), same.take(kept), known.take(chosen)))

    def of(self, directory: PartitionDirectory, identity: str, *, compacted: bool) -> PartitionDuplicates:
        """Return what was found in the partition, which has been read."""
        return PartitionDuplicates(
            directory,
            identity,
            self._pairs(),
            self.records,
            self.more,
            self.undecoded,
            self.known_keys,
            self.without_key,
            compacted,
        )

    def _pairs(self) -> Pairs:
        again = joined([kept[0] for kept in self._kept]) if self._kept else no_rows(CONTENT)
        earlier = joined([kept[1] for kept in self._kept]) if self._kept else no_rows(CONTENT)
        same_content = _flags([kept[2] for kept in self._kept])
        known_sequence = _flags([kept[3] for kept in self._kept])
        return Pairs(again, earlier, same_content, known_sequence, self._outcomes(again), self._outcomes(earlier))

    def _outcomes(self, units: Columns) -> list[str | None]:
        return self._spans.outcomes(units["transaction_of"], units["offset"])


def _flags(parts: Sequence[Flags]) -> Flags:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)
