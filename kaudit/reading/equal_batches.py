"""Batches with equal records near one another: copies that a client sent again, or records that recur for their own reasons.

What recurs around is no evidence of a copy. Where timestamps are equal too, the records themselves show what recurs
(audits/repeats/non_idempotent_repeats.py). Where they are not, records recur if they are found more than MAX_COPIES times,
or further than NEAR apart, within DISTANCE: a client that sends a batch again does so a few times, and soon.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DISTANCE = 1024
"""A copy is searched for among this many preceding batches without a producer id."""
NEAR = 64
"""A copy with other timestamps comes at most this many such batches later."""
MAX_COPIES = 3
"""Equal records with other timestamps are copies if there are no more of them."""
DELIVERY_TIMEOUT_MS = 120_000
"""A client gives up after this (delivery.timeout.ms by default): copies with other timestamps are no later."""

Ranges = NDArray[np.int64]
"""First and last ordinals, both inclusive, shape (n, 2)."""
NO_RANGES: Ranges = np.empty((0, 2), dtype=np.int64)
Indexes = NDArray[np.intp]


class EqualUnits(NamedTuple):
    """Batches sorted by 64 bits of content, equal ones in the order of the log; shape (n,) each."""

    contents: NDArray[np.int64]
    order: Indexes
    """The index that each had before."""
    positions: NDArray[np.int64]
    """In the log: windows are measured in these."""

    @classmethod
    def of(cls, contents: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> "EqualUnits":
        """Sort units by content. `positions` ascend; None: they are neighbours."""
        order = np.argsort(contents)  # a stable sort takes several times as long
        ordered = contents.take(order)
        equal = ordered[1:] == ordered[:-1]
        if equal.any():
            among = np.flatnonzero(np.append(False, equal) | np.append(equal, False))
            order[among] = order[among].take(np.lexsort((order.take(among), ordered.take(among))))
        return cls(ordered, order, order if positions is None else positions.take(order))

    def previous(self, window: int) -> tuple[Indexes, Indexes]:
        """Return where in the order units with an equal one at most `window` before stand, after where that one stands."""
        again = np.flatnonzero(self.contents[1:] == self.contents[:-1]) + 1
        again = again.compress(self.positions.take(again) - self.positions.take(again - 1) <= window)
        return again - 1, again

    def earliest(self, window: int) -> Indexes:
        """Return for each where in the order the first of its equals stands that is at most `window` before."""
        changes = np.append(False, self.contents[1:] != self.contents[:-1])[: len(self.contents)]
        width = int(self.positions.max()) + 1 if len(self.positions) else 1
        # positions ascend within a group, and groups ascend: one search finds the first near enough in each row's own
        groups = np.cumsum(changes) * width
        return np.searchsorted(groups + self.positions, groups + np.maximum(self.positions - window, 0))


class EqualBatches(NamedTuple):
    """Batches without producer ids sorted by content, and for each the first of its equals within DISTANCE; shape (n,)."""

    units: EqualUnits
    earliest: Indexes

    @classmethod
    def of(cls, contents: NDArray[np.int64], ordinals: NDArray[np.int64]) -> "EqualBatches":
        """Sort batches by content; `ordinals` ascend."""
        units = EqualUnits.of(contents, ordinals)
        return cls(units, units.earliest(DISTANCE))

    def copies(self) -> tuple[Indexes, Indexes]:
        """Return (first, again): indexes of batches with an equal one at most DISTANCE before, and of the first such one."""
        order = self.units.order
        again = np.flatnonzero(self.earliest < np.arange(len(order)))
        return order[self.earliest[again]], order[again]

    def restamped(self, times: NDArray[np.int64]) -> tuple[Indexes, Indexes]:
        """Return (first, again): indexes of batches that may be copies with other timestamps, and of what they copy.

        `times` are base timestamps in ms, in the order of the log.
        """
        before, again = (self.units.order[places] for places in self.units.previous(NEAR))
        later = times[again] - times[before]
        soon = (later > 0) & (later <= DELIVERY_TIMEOUT_MS)
        return before[soon], again[soon]

    def counts_before(self, chosen: Indexes, times: NDArray[np.int64]) -> list[int]:
        """Return for each chosen batch under how many of these times it and its equals within DISTANCE before it are."""
        order = self.units.order
        places = np.empty(len(order), dtype=np.intp)
        places[order] = np.arange(len(order))
        ends = places.take(chosen)
        bounds = zip(self.earliest.take(ends).tolist(), ends.tolist(), strict=True)
        return [len(np.unique(times.take(order[start : end + 1]))) for start, end in bounds]

    def recurring(self, times: NDArray[np.int64]) -> Ranges:
        """Return the ranges of ordinals in which records recur under other timestamps, merged.

        Each range ends with a batch and begins with the first of its equals within DISTANCE that has another timestamp. More
        batches only make ranges longer or add some, so that the ranges of parts are among those of the whole.
        """
        order, ordinals = self.units.order, self.units.positions
        at, places = times[order], np.arange(len(order))
        changes = np.flatnonzero(at[1:] != at[:-1]) + 1
        first_other = np.append(changes, len(order))[np.searchsorted(changes, self.earliest, side="right")]
        first = np.where(at[self.earliest] != at, self.earliest, np.minimum(first_other, places))
        often = (places - first >= MAX_COPIES) | (ordinals - ordinals[first] > NEAR)
        return merged(np.stack((ordinals[first[often]], ordinals[often]), axis=1))


def merged(ranges: Ranges) -> Ranges:
    """Return the same ranges in order, those less than DISTANCE apart as one."""
    if len(ranges) < 2:
        return ranges
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    ends = np.maximum.accumulate(ranges[:, 1])
    starts = np.append(True, ranges[1:, 0] > ends[:-1] + DISTANCE)
    return np.stack((ranges[starts, 0], ends[np.append(starts[1:], True)]), axis=1)


def near_none(ordinals: NDArray[np.int64], ranges: Ranges) -> NDArray[np.bool_]:
    """Return which ordinals are further than DISTANCE from all of these ranges, which are merged."""
    if not len(ranges):
        return np.ones(len(ordinals), dtype=np.bool_)
    after = np.searchsorted(ranges[:, 1], ordinals - DISTANCE)
    starts = ranges[:, 0][np.minimum(after, len(ranges) - 1)]
    alone: NDArray[np.bool_] = (after == len(ranges)) | (starts > ordinals + DISTANCE)
    return alone
