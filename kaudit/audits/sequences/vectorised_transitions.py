"""How far producers are healthy: their batches and markers in a part of a chunk pass every rule.

The rules are those the scalar audit asks (sequence_audit.py), here of whole columns. They may err on one side only: what
is not healthy by these goes to the scalar audit, which decides, and with it what follows of the same producer.

TransitionColumns has runs and markers of many producers beside each producer's state before them. Rows are runs and markers,
by producer id and offset; a group is one producer id. The epoch goes from row to row, all else from run to run.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.broker.producer_state.rules import (
    SHORTEST_EXPIRY_MS,
    begins_anew,
    explains,
    in_sequence,
    is_ahead,
    is_coordinator_fenced,
    is_expired,
    is_fenced,
    is_nearly_exhausted,
    is_new_epoch,
    is_outside_transaction,
    is_version_2_commit,
    may_commit,
    offsets_missing,
    sequences_missing,
    starts_above_zero,
)
from kaudit.model.batch_fields import NO_OFFSET, NO_SEQUENCE
from kaudit.model.columns import Columns
from kaudit.model.producer_state import ABORT_BUMPED, EXHAUSTION_REPORTED, TV2
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


def first_unhealthy(columns: TransitionColumns, *, sequences_count: bool, holes_are_normal: bool) -> Numbers:
    """Return for each group its first row that is not healthy, the row after its last one where all are.

    `sequences_count`: sequences mean something in this topic. `holes_are_normal`: what missing offsets explain is healthy.
    """
    merged = columns.merged
    healthy = np.ones(len(merged.ids), dtype=np.bool_)
    if len(merged.runs):
        valid = (
            _valid_sequences(columns, holes_are_normal=holes_are_normal) if sequences_count else _valid_epochs(columns)
        )
        _clear_outside_transactions(columns, valid)
        _clear_nearly_exhausted(columns, valid)
        healthy[merged.run_rows] = valid
    if len(merged.markers):
        healthy[merged.marker_rows] = _valid_markers(columns)
    first = merged.ends + 1
    rows = np.flatnonzero(~healthy)[::-1]  # the last one written of a group counts
    first[np.searchsorted(merged.ends, rows)] = rows
    return first


def _valid_sequences(columns: TransitionColumns, *, holes_are_normal: bool) -> Mask:
    """As checkProducerEpoch and checkSequence: the next sequence of the current epoch, or the first of a new one."""
    merged, before = columns.merged, columns.before
    first, epoch = merged.runs["first_sequence"], merged.runs["producer_epoch"]
    previous = columns.previous_epoch.take(merged.run_rows) if len(merged.markers) else columns.previous_epoch
    last = merged.before_runs(merged.runs["last_sequence"], before["last_sequence"])
    if len(merged.markers):
        # a marker raised the epoch: nothing is remembered of the new one
        last[merged.before_runs(epoch, before["epoch"]) != previous] = NO_SEQUENCE
    valid: Mask = (epoch == previous) & (in_sequence(last, first) | (first < 0))
    unknown = columns.first_unknown_runs()
    valid[unknown] = ~starts_above_zero(first.take(unknown))
    others = np.flatnonzero(~valid)
    if len(others):
        valid[others] = _is_version_2_epoch(columns, others) & ~starts_above_zero(first.take(others))
        if holes_are_normal:
            valid[others] |= _is_explained(columns, others)
    _clear_after_silence(columns, valid)
    return valid


def _valid_epochs(columns: TransitionColumns) -> Mask:
    """Like `_valid_sequences`, for topics whose sequences mean nothing."""
    merged = columns.merged
    valid: Mask = (merged.epochs == columns.previous_epoch).take(merged.run_rows)
    others = np.flatnonzero(~valid)
    unknown = ~columns.known_at(merged.run_rows.take(others), merged.groups_of_runs(others))
    valid[others] = _is_version_2_epoch(columns, others) | unknown
    return valid


def _is_version_2_epoch(columns: TransitionColumns, runs: Numbers) -> Mask:
    """Return for each of these runs whether its epoch is new where transactions raise epochs: no event then (KIP-890)."""
    merged, commits = columns.merged, columns.version_2_commits
    groups, rows = merged.groups_of_runs(runs), merged.run_rows.take(runs)
    version_2 = commits.take(rows - runs) > commits.take(merged.marker_starts.take(groups))
    version_2 |= columns.before["flags"].take(groups) & TV2 != 0
    epochs, previous = merged.epochs.take(rows).astype(np.int32), columns.previous_epoch.take(rows).astype(np.int32)
    aborted = columns.before["flags"].take(groups) & ABORT_BUMPED != 0
    inside = np.flatnonzero(rows > merged.starts.take(groups))
    after = inside.compress(~merged.is_run.take(rows.take(inside) - 1))
    aborted[inside] = False
    marker_rows = rows.take(after) - 1
    aborted[after] = (
        ~may_commit(merged.markers["type"].take(marker_rows - runs.take(after)))
        & is_new_epoch(merged.epochs.take(marker_rows), columns.previous_epoch.take(marker_rows))
        & columns.known_at(marker_rows, groups.take(after))
    )
    raised: Mask = version_2 & columns.known_at(rows, groups) & is_new_epoch(epochs, previous)
    raised &= ~begins_anew(epochs, previous, aborted)
    return raised


def _is_explained(columns: TransitionColumns, runs: Numbers) -> Mask:
    """Return for each of these runs whether missing offsets explain the sequences missing in front of it."""
    merged, last = columns.merged, columns.before["last"]
    groups, rows = merged.groups_of_runs(runs), merged.run_rows.take(runs)
    remembered, first = columns.remembered_at(runs, groups), merged.runs["first_sequence"].take(runs).astype(np.int64)
    missing = sequences_missing(remembered, first)
    gap = (remembered != NO_SEQUENCE) & is_ahead(missing) & starts_above_zero(first)
    gap &= merged.epochs.take(rows) == columns.previous_epoch.take(rows)
    in_chunk, earlier = runs > merged.run_starts.take(groups), np.maximum(runs - 1, 0)
    newest = columns.boundary["base_offset"].take(columns.newest_batches(earlier))
    base = np.where(in_chunk, newest, last["base_offset"].take(groups))
    present = np.where(in_chunk, merged.runs["present_before_last"].take(earlier), last["present_before"].take(groups))
    offsets = offsets_missing(
        merged.runs["first_offset"].take(runs), merged.runs["present_before_first"].take(runs), base, present
    )
    explained: Mask = gap & explains(offsets, missing)
    return explained


def _clear_after_silence(columns: TransitionColumns, valid: Mask) -> None:
    """Clear the runs before which brokers may have forgotten their producer."""
    merged, known = columns.merged, columns.before["has_last"]
    newest, last = merged.runs["last_max_timestamp"], columns.before["last"]["max_timestamp"]
    begin = columns.boundary["max_timestamp"].take(merged.runs["boundary_start"])
    earliest = min(int(newest.min()), int(last.min(where=known, initial=int(newest[0]))))
    if not is_expired(earliest, int(begin.max()), SHORTEST_EXPIRY_MS):
        return
    late = np.flatnonzero(is_expired(merged.before_runs(newest, last), begin, SHORTEST_EXPIRY_MS))
    groups = merged.groups_of_runs(late)
    valid[late.compress((late > merged.run_starts.take(groups)) | known.take(groups))] = False


def _clear_outside_transactions(columns: TransitionColumns, valid: Mask) -> None:
    """Clear the runs outside of the transaction that is open in front of them."""
    merged, transactional = columns.merged, columns.merged.runs["is_transactional"]
    waiting = columns.before["txn_first_offset"] != NO_OFFSET
    if transactional.all() or not (transactional.any() or waiting.any()):
        return
    in_transaction = merged.before_rows(merged.interleaved(transactional, 0), waiting).take(merged.run_rows)
    valid &= ~is_outside_transaction(in_transaction, transactional)


def _clear_nearly_exhausted(columns: TransitionColumns, valid: Mask) -> None:
    """Clear the runs whose epoch is nearly exhausted, until that was reported."""
    epoch = columns.merged.runs["producer_epoch"]
    if not is_nearly_exhausted(int(epoch.max())):
        return
    high = np.flatnonzero(is_nearly_exhausted(epoch))
    reported = columns.before["flags"].take(columns.merged.groups_of_runs(high)) & EXHAUSTION_REPORTED != 0
    valid[high.compress(~reported)] = False


def _valid_markers(columns: TransitionColumns) -> Mask:
    """As checkCoordinatorEpoch and checkProducerEpoch."""
    merged, coordinator = columns.merged, columns.merged.markers["coordinator_epoch"]
    current = merged.before_markers(coordinator, columns.before["coordinator_epoch"])
    valid: Mask = ~is_coordinator_fenced(coordinator, current)
    valid &= ~is_fenced(merged.markers["producer_epoch"], columns.previous_epoch.take(merged.marker_rows))
    valid[columns.first_unknown_markers()] = True
    return valid
