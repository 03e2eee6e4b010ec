"""Runs and markers of many producers at once, beside each producer's state before them: what both vectorised halves ask.

vectorised_transitions.py decides by it which producers are healthy, vectorised_state.py moves the state of those on. Rows
are runs and markers, by producer id and offset; a group is one producer id. The epoch goes from row to row, all else from
run to run. What only few rows need - that a producer id was new, what was remembered of it - is asked of those few.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.broker.producer_state.rules import is_version_2_commit, may_commit
from kaudit.model.batch_fields import NO_SEQUENCE
from kaudit.model.columns import Columns
from kaudit.reading.producer_grouping import Merged, of
from kaudit.reading.rows import Rows

Numbers = NDArray[np.intp]
Mask = NDArray[np.bool_]


class TransitionColumns:
    """A part of a chunk: `merged`, its boundary batches, and `before`, a row of ProducerTable for each group, writable."""

    def __init__(self, merged: Merged, boundary: Columns, before: Rows) -> None:
        self.merged, self.boundary, self.before = merged, boundary, before
        self.begins_unknown: Mask = ~before["known"]
        """Per group: nothing was known of it when its first row came."""

    @cached_property
    def previous_epoch(self) -> NDArray[np.int16]:
        """The producer epoch in front of each row."""
        return self.merged.before_rows(self.merged.epochs, self.before["epoch"])

    @cached_property
    def version_2_commits(self) -> NDArray[np.int64]:
        """How many commits of transaction version 2 (KIP-890) come before each marker, and before the end."""
        merged = self.merged
        counts = np.zeros(len(merged.markers) + 1, dtype=np.int64)
        if len(merged.markers):
            committed = may_commit(merged.markers["type"])
            previous = self.previous_epoch.take(merged.marker_rows).astype(np.int32)  # int16 would wrap
            bumps = is_version_2_commit(merged.markers["producer_epoch"], previous, committed)
            bumps[self.first_unknown_markers()] = False
            np.cumsum(bumps, out=counts[1:])
        return counts

    def first_unknown_runs(self) -> Numbers:
        """Return the runs that are the first row of a producer of whom nothing was known."""
        unknown = np.flatnonzero(self.begins_unknown)
        begins_with_run = self.merged.is_run.take(self.merged.starts.take(unknown))
        return self.merged.run_starts.take(unknown.compress(begins_with_run))

    def first_unknown_markers(self) -> Numbers:
        """Return the markers that are the first row of a producer of whom nothing was known."""
        unknown = np.flatnonzero(self.begins_unknown)
        begins_with_run = self.merged.is_run.take(self.merged.starts.take(unknown))
        return self.merged.marker_starts.take(unknown.compress(~begins_with_run))

    def known_at(self, rows: Numbers, groups: Numbers) -> Mask:
        """Return for each of these rows whether anything is known of its producer in front of it."""
        known: Mask = (rows > self.merged.starts.take(groups)) | ~self.begins_unknown.take(groups)
        return known

    def remembered_at(self, runs: Numbers, groups: Numbers) -> NDArray[np.int64]:
        """Return the last sequence that is remembered in front of each of these runs, NO_SEQUENCE without one."""
        return self.remembered(runs, groups, self.merged.run_rows.take(runs))

    def remembered(self, runs: Numbers, groups: Numbers, rows: Numbers) -> NDArray[np.int64]:
        """Return the last sequence remembered in front of `rows`, `runs` being the first run there or after it."""
        merged, before, known = self.merged, self.before, self.known_at(rows, groups)
        in_chunk, earlier = runs > merged.run_starts.take(groups), np.maximum(runs - 1, 0)
        epoch = np.where(in_chunk, of(merged.runs["producer_epoch"], earlier), before["epoch"].take(groups))
        last = np.where(in_chunk, of(merged.runs["last_sequence"], earlier), before["last_sequence"].take(groups))
        return np.where(known & (epoch == self.previous_epoch.take(rows)), last, NO_SEQUENCE).astype(np.int64)

    def newest_batches(self, runs: Numbers) -> NDArray[Any]:
        """Return the index of the last boundary batch of each of these runs."""
        newest: NDArray[Any] = (
            self.merged.runs["boundary_start"].take(runs) + self.merged.runs["boundary_count"].take(runs) - 1
        )
        return newest
