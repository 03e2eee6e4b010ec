"""One bucket of identities matched: the function that is scheduled for every bucket."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.records.places import NOWHERE, numbers_of
from kaudit.audits.records.spill import Spill
from kaudit.diff.records.matching import Begins, Bounds, Matched, Rows, match_groups, match_single
from kaudit.diff.records.side import COPIED, PLACED
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import PartitionDirectory

MOST_ROWS = 1 << 20
"""Rows of both sides that are matched at once; a bucket with more is split."""
_MORE_BITS = 4
_HOT_SHARE = 16
"""An identity that a sixteenth of a part has is kept apart from the others."""


class Sides(Struct, frozen=True):
    """The spills of both sides: rows by identity, those that are left for `match_groups`, and where the results go."""

    source: Spill
    target: Spill
    left_source: Spill
    left_target: Spill
    placed: Spill
    copied: Spill
    source_cuts: NDArray[np.uint64]
    target_cuts: NDArray[np.uint64]

    @classmethod
    def of(cls, identified: tuple[Spill, Spill], matched: tuple[Spill, Spill], cuts: Begins) -> "Sides":
        """Return the spills for rows of two sides; what is left lies beside them."""
        source, target = (replace(spill, name=f"left-{spill.name}") for spill in identified)
        return cls(*identified, source, target, *matched, *cuts)


class BucketTask(Struct, frozen=True):
    """A bucket: first of all identities, then of those that a side has several times, with the `begins` of `match_groups` found by then.

    `cut_off`: records before the first one have been removed from a side.
    `bits` of the identities all of its rows have in common.
    """

    number: int
    bits: int
    sides: Sides
    partitions: int
    cut_off: bool = False
    begins: Begins | None = None

    def of_each_bucket(self) -> list["BucketTask"]:
        """Return a task for each bucket that has rows."""
        numbers = sorted({number for spill in self.spills for number in spill.numbers()})
        return [replace(self, number=number) for number in numbers]

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        source, target = self.spills
        return (source.size(self.number) + target.size(self.number)) * 32

    @property
    def spills(self) -> tuple[Spill, Spill]:
        """The rows of both sides."""
        sides = self.sides
        return (sides.source, sides.target) if self.begins is None else (sides.left_source, sides.left_target)

    @property
    def directories(self) -> Sequence[PartitionDirectory]:
        """None of the log is read."""
        return ()


class Counted(Struct, frozen=True):
    """Equal records, too many to be placed: how many each side has, in a partition with this number."""

    number: int
    source: int
    target: int


class MatchedBucket(Struct, frozen=True):
    """The bounds of the records that both sides have, and what could only be counted."""

    bounds: tuple[Bounds, Bounds]
    counted: Sequence[Counted]


def match_bucket(task: BucketTask, options: ScanOptions, open_source: OpenSource) -> MatchedBucket:  # noqa: ARG001 - as every job
    """Match the rows of a bucket, in any process."""
    return matched(task)


def matched(task: BucketTask) -> MatchedBucket:
    """Match the rows of a bucket, and write what became of each under its place."""
    bounds = Bounds.empty(task.partitions), Bounds.empty(task.partitions)
    counted: list[Counted] = []
    _match(task, bounds, counted)
    return MatchedBucket(bounds, counted)


def _match(task: BucketTask, bounds: tuple[Bounds, Bounds], counted: list[Counted]) -> None:
    source, target = task.spills
    if source.size(task.number) + target.size(task.number) > MOST_ROWS:
        _match_parts(task, bounds, counted)
        return
    rows = source.read(task.number), target.read(task.number)
    if task.begins is None:
        found, *left = match_single(*rows)
        for spill, own, at in zip((task.sides.left_source, task.sides.left_target), rows, left, strict=True):
            spill.append(np.full(len(at), task.number), own[at])
        _include(bounds, rows, found)
        if task.cut_off:
            nothing = np.zeros(task.partitions, dtype=np.uint64)
            grouped = rows[0][left[0]], rows[1][left[1]]
            _include(bounds, grouped, match_groups(*grouped, (nothing, nothing)))
    else:
        found = match_groups(*rows, task.begins)
        _include(bounds, rows, found)
    _write(task.sides, *rows, found)


def _include(bounds: tuple[Bounds, Bounds], rows: tuple[Rows, Rows], found: Matched) -> None:
    """Take what rows of source and target were matched to."""
    again = found.copied >= 0
    source = np.concatenate([found.source, found.source[found.copied[again]]])
    target = np.concatenate([found.target, found.surplus[again]])
    own, other = rows[0]["place"][source], rows[1]["place"][target]
    bounds[0].include(own, other)
    bounds[1].include(other, own)
    bounds[0].leave_out(rows[0]["place"][found.missing])
    bounds[1].leave_out(rows[1]["place"][found.surplus[~again]])


def _write(sides: Sides, source: Rows, target: Rows, found: Matched) -> None:
    placed = np.empty(len(found.source) + len(found.missing), dtype=PLACED)
    at = np.concatenate([found.source, found.missing])
    placed["place"], placed["key"], placed["other"] = source["place"][at], source["key"][at], NOWHERE
    placed["other"][: len(found.source)] = target["place"][found.target]
    sides.placed.append(np.searchsorted(sides.source_cuts, placed["place"], side="right"), placed)
    at = np.concatenate([found.target, found.surplus])
    copied = np.empty(len(at), dtype=COPIED)
    copied["place"], copied["key"] = target["place"][at], target["key"][at]
    copied["other"] = copied["earlier"] = NOWHERE
    copied["other"][: len(found.target)] = source["place"][found.source]
    again = np.flatnonzero(found.copied >= 0)
    pair = found.copied[again]
    copied["other"][len(found.target) + again] = source["place"][found.source[pair]]
    copied["earlier"][len(found.target) + again] = target["place"][found.target[pair]]
    again = np.flatnonzero(found.repeated >= 0)
    copied["earlier"][len(found.target) + again] = target["place"][found.repeated[again]]
    sides.copied.append(np.searchsorted(sides.target_cuts, copied["place"], side="right"), copied)


def _match_parts(task: BucketTask, bounds: tuple[Bounds, Bounds], counted: list[Counted]) -> None:
    """Split a bucket by more bits, its frequent identities apart; count those that do not fit into memory, and copy none of their rows."""
    hot = _frequent(task)
    counts, of_hot = np.zeros((2, len(hot)), dtype=np.int64), np.zeros(len(hot), dtype=np.int64)
    for side, spill in enumerate(task.spills):
        for rows in spill.parts(task.number):
            at, known = _found(hot, rows)
            counts[side] += np.bincount(at[known], minlength=len(hot))
            of_hot[at[known]] = numbers_of(rows["place"][known])
    too_many = counts.sum(axis=0) > MOST_ROWS
    counted += map(Counted, of_hot[too_many].tolist(), *counts[:, too_many].tolist())
    spills = [replace(spill, name=f"{spill.name}-{task.number}") for spill in task.spills]
    shift, mask = np.uint64(64 - task.bits - _MORE_BITS), np.uint64((1 << _MORE_BITS) - 1)
    for spill, part_of in zip(task.spills, spills, strict=True):
        for rows in spill.parts(task.number):
            numbers = ((rows["high"] >> shift) & mask).astype(np.int64)
            at, known = _found(hot, rows)
            numbers[known] = (1 << _MORE_BITS) + at[known]
            known[known] = too_many[at[known]]
            part_of.append(numbers[~known], rows[~known])
    names = ("source", "target") if task.begins is None else ("left_source", "left_target")
    sides = replace(task.sides, **dict(zip(names, spills, strict=True)))
    for number in sorted({number for spill in spills for number in spill.numbers()}):
        _match(replace(task, number=number, bits=task.bits + _MORE_BITS, sides=sides), bounds, counted)
        for spill in spills:
            spill.remove(number)


def _frequent(task: BucketTask) -> Rows:
    """Return the identities that are frequent in the first part of a side, ascending."""
    found = []
    for spill in task.spills:
        rows = next(spill.parts(task.number), None)
        if rows is not None:
            values, counts = np.unique(_identities(rows), return_counts=True)
            found.append(values[counts >= len(rows) // _HOT_SHARE + 1])
    return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=_IDENTITY)


_IDENTITY = np.dtype([("high", "<u8"), ("low", "<u8")])


def _found(hot: NDArray[Any], rows: Rows) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where in `hot` the identity of each row is, and of which rows it is there."""
    identities = _identities(rows)
    at = np.searchsorted(hot, identities)
    known = at < len(hot)
    known[known] = hot[at[known]] == identities[known]
    return at, known


def _identities(rows: Rows) -> Rows:
    found = np.empty(len(rows), dtype=_IDENTITY)
    found["high"], found["low"] = rows["high"], rows["low"]
    return found
