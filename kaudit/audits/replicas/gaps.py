"""Offsets that one copy of a partition lacks inside its own range and another copy holds.

In a partition that was never compacted every offset is in a batch. Where a copy has no bytes for some offsets, they were
cut out, or a segment was not copied. Where bytes lie there, they are damage, which is reported as such.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kaudit.audits.replicas.compare import Columns, cleaned
from kaudit.model.replicas import OffsetRange, ReplicaGap
from kaudit.source.layout import SegmentFile

_MOST_GAPS = 10_000
"""Most gaps of one copy; a log with more is taken for a compacted one."""


class Gap(NamedTuple):
    """Offsets `first` to `last` that a copy lacks; `cut`: no bytes lie there. The log goes on at byte `position` of `segment`."""

    first: int
    last: int
    cut: bool
    segment: int
    position: int


class _Reached(NamedTuple):
    """The end of the batches read so far: byte `end` of `segment`, and the offset that follows."""

    segment: int
    end: int
    next_offset: int


class ReplicaGaps:
    """Collects the gaps between one copy's valid batches, in offset order.

    `compacted`: the log cleaner rewrote a batch, or there are too many gaps for an accident.
    """

    def __init__(self, segments: Sequence[SegmentFile]) -> None:
        self.gaps: list[Gap] = []
        self.compacted = False
        self._segments = segments
        self._reached: _Reached | None = None

    def feed(self, segment: int, rows: Columns) -> None:
        """Take the next batches, of one segment."""
        self.compacted = self.compacted or bool(cleaned(rows, slice(None)).any())
        bases, lasts = rows["base_offset"], rows["last_offset"]
        positions, ends = rows["position"], rows["position"] + rows["size"]
        before = self._reached or _Reached(segment, int(positions[0]), int(bases[0]))
        expected = np.concatenate(([before.next_offset], lasts[:-1] + 1))
        # a compressed wrapper of magic 0 or 1 names its last offset
        missing = np.flatnonzero((bases > expected) & (rows["record_count"] >= 0))
        self.compacted = self.compacted or len(self.gaps) + len(missing) > _MOST_GAPS
        for index in missing[: _MOST_GAPS - len(self.gaps)].tolist():
            position = int(positions[index])
            cut = int(ends[index - 1]) == position if index else self._joins(before, segment, position)
            self.gaps.append(Gap(int(expected[index]), int(bases[index]) - 1, cut, segment, position))
        self._reached = _Reached(segment, int(ends[-1]), int(lasts[-1]) + 1)

    def pass_over(self) -> None:
        """Say that batches are left out before the next ones: what lies between them is no gap."""
        self._reached = None

    def _joins(self, before: _Reached, segment: int, position: int) -> bool:
        """Return whether no bytes lie between the batches so far and byte `position` of a segment."""
        if segment == before.segment:
            return position == before.end
        between = sum(file.size for file in self._segments[before.segment : segment])
        return position == 0 and between == before.end


class Held(NamedTuple):
    """The offsets of one copy: from `start` (None: it has none) to `end`, exclusive, without those of its gaps."""

    start: int | None
    end: int
    gaps: Sequence[Gap]

    def range_of(self, first: int, last: int) -> OffsetRange | None:
        """Return the part of offsets `first` to `last` that lies in its log, None for none."""
        if self.start is None:
            return None
        within = OffsetRange(max(first, self.start), min(last, self.end - 1))
        return within if within.first <= within.last else None

    def parts(self, within: OffsetRange) -> Iterator[OffsetRange]:
        """Yield the parts of a range of its log that are in no gap."""
        at = within.first
        for gap in self.gaps[bisect_left(self.gaps, at, key=lambda gap: gap.last) :]:
            if gap.first > within.last:
                break
            if gap.first > at:
                yield OffsetRange(at, gap.first - 1)
            at = gap.last + 1
        if at <= within.last:
            yield OffsetRange(at, within.last)


def replica_gaps(copies: Mapping[str, Held], agreed: Callable[[str, str], int]) -> list[ReplicaGap]:
    """Return the gaps of copies that other copies fill, below the offset up to which both are `agreed`, in offset order.

    Nothing where some offsets are in no copy: then the partition was compacted.
    """
    found: dict[OffsetRange, tuple[list[tuple[str, Gap]], dict[str, None]]] = {}
    for name, copy in copies.items():
        for gap in copy.gaps:
            if not gap.cut:
                continue
            covered = False
            held: list[tuple[str, OffsetRange]] = []
            for other, theirs in copies.items():
                within = theirs.range_of(gap.first, min(gap.last, agreed(name, other) - 1)) if other != name else None
                if within is not None:
                    covered = True
                    held += [(other, part) for part in theirs.parts(within)]
            if covered and not held:
                return []
            if held:
                lacked = OffsetRange(min(part.first for _, part in held), max(part.last for _, part in held))
                lacking, holders = found.setdefault(lacked, ([], {}))
                lacking.append((name, gap))
                holders.update((other, None) for other, _ in held)
    return [
        ReplicaGap(
            first_offset=lacked.first,
            last_offset=lacked.last,
            missing_on=[name for name, _ in lacking],
            held_by=list(holders),
            segment=lacking[0][1].segment,
            position=lacking[0][1].position,
        )
        for lacked, (lacking, holders) in sorted(found.items(), key=lambda entry: (entry[0].first, entry[0].last))
    ]
