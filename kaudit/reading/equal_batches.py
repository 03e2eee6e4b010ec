"""Batches with equal records near one another: copies that a client sent again, or records that recur for their own reasons.

What recurs around is no evidence of a copy. Where timestamps are equal too, the records themselves show what recurs
(audits/repeats/non_idempotent_repeats.py). Where they are not, records recur if they are found more than MAX_COPIES times,
or further than NEAR apart, within DISTANCE: a client that sends a batch again does so a few times, and soon.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

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


class EqualBatches(NamedTuple):
    """Batches sorted by their keys, equal ones as in the log; shape (n,) each."""

    order: Indexes
    ordinals: NDArray[np.int64]
    """In the log, in the order of `order`."""
    earliest: Indexes
    """Where in `order` the first of its equals stands that is no more than DISTANCE before."""

    @classmethod
    def of(cls, keys: Sequence[NDArray[Any]], ordinals: NDArray[np.int64]) -> "EqualBatches":
        """Sort batches by these columns, shape (n,) each; `ordinals` ascend."""
        order = np.lexsort(keys)
        ordinals = ordinals[order]
        changes = np.zeros(len(order), dtype=np.bool_)
        for key in keys:
            changes[1:] |= key[order[1:]] != key[order[:-1]]
        width = int(ordinals.max()) + 1 if len(ordinals) else 1
        # ordinals ascend within a group, and groups ascend: one search finds the first near enough in each row's own
        groups = np.cumsum(changes) * width
        earliest = np.searchsorted(groups + ordinals, groups + np.maximum(ordinals - DISTANCE, 0))
        return cls(order, ordinals, earliest)

    def copies(self) -> tuple[Indexes, Indexes]:
        """Return (first, again): indexes of batches with an equal one at most DISTANCE before, and of the first such one."""
        again = np.flatnonzero(self.earliest < np.arange(len(self.order)))
        return self.order[self.earliest[again]], self.order[again]

    def restamped(self, times: NDArray[np.int64]) -> tuple[Indexes, Indexes]:
        """Return (first, again): indexes of batches that may be copies with other timestamps, and of what they copy.

        `times` are base timestamps in ms, in the order of the log.
        """
        again = np.flatnonzero(self.earliest < np.arange(len(self.order)))
        later = times[self.order[again]] - times[self.order[again - 1]]
        near = self.ordinals[again] - self.ordinals[again - 1] <= NEAR
        again = again[near & (later > 0) & (later <= DELIVERY_TIMEOUT_MS)]
        return self.order[again - 1], self.order[again]

    def counts_before(self, chosen: Indexes, times: NDArray[np.int64]) -> list[int]:
        """Return for each chosen batch under how many of these times it and its equals within DISTANCE before it are."""
        places = np.empty(len(self.order), dtype=np.intp)
        places[self.order] = np.arange(len(self.order))
        ends = places.take(chosen)
        bounds = zip(self.earliest.take(ends).tolist(), ends.tolist(), strict=True)
        return [len(np.unique(times.take(self.order[start : end + 1]))) for start, end in bounds]

    def recurring(self, times: NDArray[np.int64]) -> Ranges:
        """Return the ranges of ordinals in which records recur under other timestamps, merged."""
        numbers = np.arange(len(self.order))
        often = (numbers - self.earliest >= MAX_COPIES) | (self.ordinals - self.ordinals[self.earliest] > NEAR)
        often &= times[self.order] != times[self.order[self.earliest]]
        return merged(np.stack((self.ordinals[self.earliest[often]], self.ordinals[often]), axis=1))


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
