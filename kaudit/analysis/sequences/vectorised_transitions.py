"""The joints of many producers at once: which producers' rows are all healthy, and what state that leads them to.

Rows are runs and markers, by producer id and offset. What is asked of runs among themselves is asked of them alone, where a
producer's previous run is simply the one before; only the epoch goes from row to row, through runs and markers. What only
few rows need - that a producer id was new, an epoch raised, a gap explained - is asked of those few.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.analysis.scan.producer_grouping import Merged
from kaudit.analysis.scan.rows import SILENCE_MS, Rows, pick, put, whole
from kaudit.analysis.sequences.producer_table import RETAINED_BATCH
from kaudit.broker.producer_state.rules import NEARLY_EXHAUSTED_EPOCH, SHORTEST_EXPIRY_MS
from kaudit.model.batch_fields import MAYBE_COMMITS, NO_OFFSET, NO_SEQUENCE
from kaudit.model.columns import Columns
from kaudit.model.producer_state import (
    ABORT_BUMPED,
    AFTER_MARKER,
    EXHAUSTION_REPORTED,
    MARKED_EPOCH,
    NUM_BATCHES_TO_RETAIN,
    OUTSIDE_REPORTED,
    SILENCE_REPORTED,
    TV2,
)

_SEQUENCES = 0x7FFFFFFF
_HALF_OF_SEQUENCES = 1 << 30

_NO_TRANSACTION: dict[str, NDArray[Any]] = {
    "txn_first_offset": np.array(NO_OFFSET),
    "txn_first_timestamp": np.array(-1),
    "txn_position": np.array(-1),
    "txn_segment": np.array(-1),
    "txn_records": np.array(0),
    "flags": np.array(0),
}

_Numbers = NDArray[np.intp]
_Mask = NDArray[np.bool_]


class VectorisedTransitions:
    """A chunk's runs and markers, and each producer's state before them."""

    def __init__(self, merged: Merged, boundary: Columns, before: Rows) -> None:
        self.runs, self.markers, self.boundary_batches = merged.runs, merged.markers, boundary
        self.producer_ids = merged.producer_ids
        self._before = before
        self._is_run = merged.is_run
        self._starts, self._ends = merged.starts, merged.ends()
        self._run_rows, self._marker_rows = np.flatnonzero(merged.is_run), np.flatnonzero(~merged.is_run)
        # of each producer's rows, where its runs and its markers begin and stop among those of all
        stops = self._ends + 1
        self._run_stops = np.searchsorted(self._run_rows, stops) if len(self.markers) else stops
        self._run_starts = np.append(0, self._run_stops[:-1])
        self._marker_stops, self._marker_starts = stops - self._run_stops, self._starts - self._run_starts
        self._has_run = self._run_stops > self._run_starts
        self._has_marker = self._marker_stops > self._marker_starts
        self._last_run = np.maximum(self._run_stops - 1, 0)
        self._last_marker = np.maximum(self._marker_stops - 1, 0)
        self._epoch = self._epochs()
        self._previous = _shifted(self._epoch, self._starts, before["epoch"])
        self._begins_unknown = ~before["known"]
        self._bumps = self._commit_bumps()

    def _epochs(self) -> NDArray[np.int16]:
        runs, markers = self.runs["producer_epoch"], self.markers["producer_epoch"]
        if not len(markers):
            return runs
        epochs = np.empty(len(self._is_run), dtype=np.int16)
        epochs[self._run_rows], epochs[self._marker_rows] = runs, markers
        return epochs

    def group_rows(self, index: int) -> list[tuple[bool, int]]:
        """Return the rows of one producer: (is it a marker, its index among runs or markers)."""
        run, marker = int(self._run_starts[index]), int(self._marker_starts[index])
        rows = []
        for is_run in self._is_run[int(self._starts[index]) : int(self._ends[index]) + 1].tolist():
            rows.append((not is_run, run if is_run else marker))
            run, marker = run + is_run, marker + (not is_run)
        return rows

    def continue_runs(self) -> int:
        """Move each producer's open run to the end of this chunk; return how many first runs only went on with it."""
        state = self._before
        if not len(self.runs):
            state["run_open"] = False
            return 0
        head, tail = np.minimum(self._run_starts, len(self.runs) - 1), self._last_run
        runs = self.runs
        continued = (
            self._is_run.take(self._starts)
            & state["run_open"]
            & (state["run_epoch"] == runs["producer_epoch"].take(head))
            & (state["run_transactional"] == runs["is_transactional"].take(head))
            & (state["run_sequence"] >= 0)
            & (((state["run_sequence"] + 1) & _SEQUENCES) == runs["first_sequence"].take(head))
        )
        if continued.any():
            silence = (
                self.boundary_batches["max_timestamp"].take(runs["boundary_start"].take(head)) - state["run_timestamp"]
            )
            continued &= silence < SILENCE_MS
        state["run_open"] = self._is_run.take(self._ends)
        state["run_epoch"] = runs["producer_epoch"].take(tail)
        state["run_transactional"] = runs["is_transactional"].take(tail)
        state["run_sequence"] = runs["last_sequence"].take(tail)
        state["run_timestamp"] = runs["last_max_timestamp"].take(tail)
        return int(np.count_nonzero(continued))

    def healthy(self, *, sequences_count: bool, holes_are_normal: bool) -> _Mask:
        """Tell for each producer whether all its joints in this chunk are healthy."""
        healthy = np.ones(len(self._starts), dtype=np.bool_)
        if len(self.runs):
            sound = self._sound_runs(holes_are_normal=holes_are_normal) if sequences_count else self._sound_epochs()
            self._clear_outside(sound)
            self._clear_exhausted(sound)
            healthy[self._groups_of_runs(np.flatnonzero(~sound))] = False
        if len(self.markers):
            failed = np.flatnonzero(~self._sound_markers())
            healthy[np.searchsorted(self._marker_stops, failed, side="right")] = False
        return healthy

    def _groups_of_runs(self, runs: _Numbers) -> _Numbers:
        return np.searchsorted(self._run_stops, runs, side="right")

    def _unknown_first(self) -> _Numbers:
        """Numbers of the producers of whom nothing was known when their first row came."""
        return np.flatnonzero(self._begins_unknown)

    def _sound_runs(self, *, holes_are_normal: bool) -> _Mask:
        first, epoch = self.runs["first_sequence"], self.runs["producer_epoch"]
        previous = self._previous.take(self._run_rows) if len(self.markers) else self._previous
        last = self._before_runs(self.runs["last_sequence"], self._before["last_sequence"])
        # sequences begin at 0 where nothing is remembered, NO_SEQUENCE + 1, and nothing is of another epoch
        expected = (last + 1) & _SEQUENCES
        if len(self.markers):
            expected[self._before_runs(epoch, self._before["epoch"]) != previous] = 0
        sound: _Mask = (epoch == previous) & ((first == expected) | (first < 0))
        unknown = self._unknown_first()
        unknown = self._run_starts.take(unknown.compress(self._is_run.take(self._starts.take(unknown))))
        sound[unknown] = first.take(unknown) <= 0
        others = np.flatnonzero(~sound)
        if len(others):
            sound[others] = self._raised(others) & (first.take(others) <= 0)
            if holes_are_normal:
                sound[others] |= self._explained(others)
        self._clear_late(sound)
        return sound

    def _sound_epochs(self) -> _Mask:
        """As `_sound_runs`, where sequences mean nothing."""
        sound: _Mask = (self._epoch == self._previous).take(self._run_rows)
        others = np.flatnonzero(~sound)
        sound[others] = self._raised(others) | ~self._known_at(others, self._groups_of_runs(others))
        return sound

    def _before_runs(self, column: NDArray[Any], states: NDArray[Any]) -> NDArray[Any]:
        """Return for each run the value of its producer's run before it, or of its state."""
        if self._has_run.all():
            return _shifted(column, self._run_starts, states)
        return _shifted(column, self._run_starts.compress(self._has_run), states.compress(self._has_run))

    def _known_at(self, runs: _Numbers, groups: _Numbers) -> _Mask:
        known: _Mask = (self._run_rows.take(runs) > self._starts.take(groups)) | ~self._begins_unknown.take(groups)
        return known

    def _remembered_at(self, runs: _Numbers, groups: _Numbers) -> NDArray[np.int64]:
        """Last sequence that is remembered in front of these runs, NO_SEQUENCE without one."""
        previous = self._previous.take(self._run_rows.take(runs))
        return self._remembered(runs, groups, previous, self._known_at(runs, groups))

    def _remembered(
        self, runs: _Numbers, groups: _Numbers, previous: NDArray[np.int16], known: _Mask
    ) -> NDArray[np.int64]:
        """Last sequence of the epoch `previous` in front of the run numbers `runs`, which may be that of no run."""
        state = self._before
        in_chunk, before = runs > self._run_starts.take(groups), np.maximum(runs - 1, 0)
        epoch = np.where(in_chunk, _of(self.runs["producer_epoch"], before), state["epoch"].take(groups))
        last = np.where(in_chunk, _of(self.runs["last_sequence"], before), state["last_sequence"].take(groups))
        return np.where(known & (epoch == previous), last, NO_SEQUENCE).astype(np.int64)

    def _raised(self, runs: _Numbers) -> _Mask:
        """Tell for each of these runs whether its epoch was raised where markers raise epochs (KIP-890)."""
        groups, rows = self._groups_of_runs(runs), self._run_rows.take(runs)
        bumped = self._bumps.take(rows - runs) > self._bumps.take(self._marker_starts.take(groups))
        bumped |= self._before["flags"].take(groups) & TV2 != 0
        raised: _Mask = bumped & self._known_at(runs, groups) & (self._epoch.take(rows) > self._previous.take(rows))
        return raised

    def _explained(self, runs: _Numbers) -> _Mask:
        """Tell for each of these runs whether missing offsets explain the sequences missing in front of it."""
        groups, rows = self._groups_of_runs(runs), self._run_rows.take(runs)
        remembered = self._remembered_at(runs, groups)
        first = self.runs["first_sequence"].take(runs).astype(np.int64)
        ahead = (first - ((remembered + 1) & _SEQUENCES)) & _SEQUENCES
        gap = (remembered != NO_SEQUENCE) & (ahead > 0) & (ahead < _HALF_OF_SEQUENCES) & (first > 0)
        gap &= self._epoch.take(rows) == self._previous.take(rows)
        in_chunk, earlier = runs > self._run_starts.take(groups), np.maximum(runs - 1, 0)
        newest = self.runs["boundary_start"].take(earlier) + self.runs["boundary_count"].take(earlier) - 1
        state = self._before["last"]
        base = np.where(in_chunk, self.boundary_batches["base_offset"].take(newest), state["base_offset"].take(groups))
        present = np.where(
            in_chunk, self.runs["present_before_last"].take(earlier), state["present_before"].take(groups)
        )
        present = self.runs["present_before_first"].take(runs) - present
        explained: _Mask = gap & (self.runs["first_offset"].take(runs) - base - present >= ahead)
        return explained

    def _clear_late(self, sound: _Mask) -> None:
        """Clear the runs before which brokers may have forgotten their producer."""
        newest, state = self.runs["last_max_timestamp"], self._before["last"]["max_timestamp"]
        begin = self.boundary_batches["max_timestamp"].take(self.runs["boundary_start"])
        earliest = min(int(newest.min()), int(state.min(where=~self._begins_unknown, initial=int(newest[0]))))
        if int(begin.max()) - earliest < SHORTEST_EXPIRY_MS:
            return
        silence = begin - self._before_runs(newest, state)
        late = np.flatnonzero(silence >= SHORTEST_EXPIRY_MS)
        groups = self._groups_of_runs(late)
        sound[late.compress((late > self._run_starts.take(groups)) | ~self._begins_unknown.take(groups))] = False

    def _clear_outside(self, sound: _Mask) -> None:
        """Clear the runs outside of the transaction that is open in front of them."""
        transactional, waiting = self.runs["is_transactional"], self._before["txn_first_offset"] != NO_OFFSET
        if transactional.all() or not (transactional.any() or waiting.any()):
            return
        before = np.zeros(len(self._is_run), dtype=np.bool_)
        before[self._run_rows] = transactional
        sound &= transactional | ~_shifted(before, self._starts, waiting).take(self._run_rows)

    def _clear_exhausted(self, sound: _Mask) -> None:
        """Clear the runs whose epoch is nearly exhausted, until that was told."""
        epoch = self.runs["producer_epoch"]
        if int(epoch.max()) < NEARLY_EXHAUSTED_EPOCH:
            return
        high = np.flatnonzero(epoch >= NEARLY_EXHAUSTED_EPOCH)
        told = self._before["flags"].take(self._groups_of_runs(high)) & EXHAUSTION_REPORTED != 0
        sound[high.compress(~told)] = False

    def _sound_markers(self) -> _Mask:
        state, coordinator = self._before, self.markers["coordinator_epoch"]
        has = self._has_marker
        earlier = _shifted(coordinator, self._marker_starts.compress(has), state["coordinator_epoch"].compress(has))
        sound: _Mask = coordinator >= earlier
        sound &= self.markers["producer_epoch"] >= self._previous.take(self._marker_rows)
        sound[self._first_unknown_markers()] = True
        return sound

    def _first_unknown_markers(self) -> _Numbers:
        unknown = self._unknown_first()
        first: _Numbers = self._marker_starts.take(unknown.compress(~self._is_run.take(self._starts.take(unknown))))
        return first

    def _commit_bumps(self) -> NDArray[np.int64]:
        """Count in front of each marker, and behind the last, the commits that raised the epoch by one (KIP-890)."""
        counts = np.zeros(len(self.markers) + 1, dtype=np.int64)
        if len(self.markers):
            types = self.markers["type"]  # not isin: it sorts
            step = np.subtract(self.markers["producer_epoch"], self._previous.take(self._marker_rows), dtype=np.int32)
            bumps = np.logical_or.reduce([types == commit for commit in MAYBE_COMMITS]) & (step == 1)
            bumps[self._first_unknown_markers()] = False
            np.cumsum(bumps, out=counts[1:])
        return counts

    def advance(self, chosen: _Mask) -> None:
        """Move the state of the chosen (healthy) producers to the end of this chunk; others' rows are left alone."""
        # the columns are computed for all groups and written where chosen
        state, has_run, has_marker = self._before, self._has_run, self._has_marker
        final = self._epoch.take(self._ends)
        same_epoch = state["known"] & (state["epoch"] == final)
        run_of_final = has_run & (_of(self.runs["producer_epoch"], self._last_run) == final)
        last = np.where(same_epoch & ~has_run, state["last_sequence"], NO_SEQUENCE)
        times = _of(self.runs["last_max_timestamp"], self._last_run)
        new: dict[str, NDArray[Any]] = {
            "epoch": final,
            "last_sequence": np.where(run_of_final, _of(self.runs["last_sequence"], self._last_run), last),
            "last_timestamp": times,
        }
        if len(self.markers):
            marker_times = self.markers["timestamp"].take(self._last_marker)
            new["last_timestamp"] = np.where(self._is_run.take(self._ends), times, marker_times)
            new["marker_timestamp"] = np.where(has_marker, marker_times, state["marker_timestamp"])
            for of_state, of_marker in (("coordinator_epoch", "coordinator_epoch"), ("marker_offset", "offset")):
                values = self.markers[of_marker].take(self._last_marker)
                new[of_state] = np.where(has_marker, values, state[of_state])
        self._advance_transaction(new, final)
        self._advance_window(chosen, run_of_final, same_epoch)
        for name, values in new.items():
            np.copyto(state[name], values, where=chosen, casting="same_kind")
        state["known"] |= chosen

    def _advance_transaction(self, new: dict[str, NDArray[Any]], final: NDArray[np.int16]) -> None:
        state, has_marker = self._before, self._has_marker
        opening = np.flatnonzero(self.runs["is_transactional"])
        flags, waiting = state["flags"], state["txn_first_offset"] != NO_OFFSET
        if not len(opening) and not len(self.markers) and not waiting.any() and not flags.any():
            new |= _NO_TRANSACTION  # nothing to carry on
            return
        # behind a producer's last marker there are only runs
        behind = self._ends - _of(self._marker_rows, self._last_marker)
        after = np.where(has_marker, self._run_stops - behind, self._run_starts)
        first = np.append(opening, len(self.runs)).take(np.searchsorted(opening, after))
        opens = first < self._run_stops
        still_open = ~has_marker & waiting
        opens_here = opens & ~still_open
        runs = np.where(opens, first, 0)
        self._carry_on(new, opens, opens_here, still_open, runs)

        kept = flags & (EXHAUSTION_REPORTED | SILENCE_REPORTED)
        bumped_before = self._bumps.take(self._marker_stops) > self._bumps.take(self._marker_starts)
        kept |= np.where(bumped_before, TV2, flags & TV2)
        kept |= np.where(has_marker, 0, flags & OUTSIDE_REPORTED)
        is_marked, was_marked = self._marked(), flags & MARKED_EPOCH != 0
        marker_epoch = _of(self.markers["producer_epoch"], self._last_marker)
        marked = np.where(has_marker, is_marked & (marker_epoch == final), was_marked & (state["epoch"] == final))
        kept |= np.where(marked, MARKED_EPOCH, 0)
        bumped = np.where(has_marker, self._ends_with_raising_abort(), (flags & ABORT_BUMPED != 0) & ~self._has_run)
        kept |= np.where(bumped, ABORT_BUMPED, 0)
        if opens_here.any():
            epoch = self.runs["producer_epoch"].take(runs)
            was_marked &= (state["epoch"] == epoch) & state["known"]
            late = np.where(has_marker, is_marked & (marker_epoch == epoch), was_marked)
            kept |= np.where(opens_here & late, AFTER_MARKER, 0)
        kept |= np.where(still_open, flags & AFTER_MARKER, 0)
        new["flags"] = kept

    def _carry_on(
        self, new: dict[str, NDArray[Any]], opens: _Mask, opens_here: _Mask, still_open: _Mask, runs: _Numbers
    ) -> None:
        """Tell of each open transaction where it began; `runs`, with which one begins where `opens_here` is set."""
        state = self._before
        added: NDArray[Any] = np.zeros(len(opens), dtype=np.int64)
        if opens.any():
            records = np.where(self.runs["is_transactional"], self.runs["records"], 0)
            total = np.cumsum(records)
            added = np.where(opens, total.take(self._last_run) - total.take(runs) + records.take(runs), 0)
        new["txn_records"] = np.where(still_open, state["txn_records"] + added, added)
        for of_state, of_boundary, none in (
            ("txn_first_offset", "base_offset", NO_OFFSET),
            ("txn_first_timestamp", "max_timestamp", -1),
            ("txn_position", "position", -1),
            ("txn_segment", "segment", -1),
        ):
            new[of_state] = np.where(still_open, state[of_state], none)
            if opens_here.any():
                values = self.boundary_batches[of_boundary].take(self.runs["boundary_start"].take(runs))
                new[of_state] = np.where(opens_here, values, new[of_state])

    def _marked(self) -> _Mask:
        """Tell for each producer with markers whether its last one ended what a sequence was remembered of."""
        if not len(self.markers):
            return np.zeros(len(self._starts), dtype=np.bool_)
        rows, groups = self._marker_rows.take(self._last_marker), np.arange(len(self._starts))
        known, previous = ~self._begins_unknown | (rows > self._starts), self._previous.take(rows)
        remembered = self._remembered(rows - self._last_marker, groups, previous, known)
        marked: _Mask = (self._epoch.take(rows) == previous) & (remembered != NO_SEQUENCE)
        return marked

    def _ends_with_raising_abort(self) -> _Mask:
        """Tell for each producer with markers whether its last row is one that raised the epoch, and no commit."""
        if not len(self.markers):
            return np.zeros(len(self._starts), dtype=np.bool_)
        types, rows = self.markers["type"].take(self._last_marker), self._marker_rows.take(self._last_marker)
        commit = np.logical_or.reduce([types == commit for commit in MAYBE_COMMITS])
        known = ~self._begins_unknown | (rows > self._starts)
        raising: _Mask = known & ~commit & (self._epoch.take(rows) > self._previous.take(rows)) & (rows == self._ends)
        return raising

    def _advance_window(self, chosen: _Mask, run_of_final: _Mask, same_epoch: _Mask) -> None:
        state = self._before
        cleared = chosen & ~same_epoch
        state["window_count"][cleared] = 0
        state["start_crc"][cleared] = -1
        if not len(self.runs):
            return
        newest = self.runs["boundary_start"].take(self._last_run) + self.runs["boundary_count"].take(self._last_run) - 1
        written = chosen & self._has_run
        into = np.flatnonzero(written)
        put(state["last"], into, self.boundary_batches.rows(newest.take(into)))
        state["has_last"][into] = True
        first = np.where(run_of_final, self._first_of_last_epoch(), 0)
        first_boundary = self.runs["boundary_start"].take(first)
        opens_epoch = np.flatnonzero(written & run_of_final & (self.runs["first_sequence"].take(first) == 0))
        runs = first.take(opens_epoch)
        rows = self._run_rows.take(runs)
        fresh_epoch = self._remembered_at(runs, opens_epoch) == NO_SEQUENCE
        fresh_epoch |= self._epoch.take(rows) != self._previous.take(rows)
        opens_epoch = opens_epoch.compress(fresh_epoch)
        state["start_crc"][opens_epoch] = self.boundary_batches["crc"].take(first_boundary.take(opens_epoch))
        fresh = np.where(run_of_final, np.minimum(newest - first_boundary + 1, NUM_BATCHES_TO_RETAIN), 0)
        self._append_to_windows(into, newest, fresh)

    def _first_of_last_epoch(self) -> _Numbers:
        """Return for each producer the first of its runs of the last one's epoch: those are the last ones of all its runs.

        Epochs only rise where joints are healthy.
        """
        epoch = self.runs["producer_epoch"]
        changes = np.flatnonzero(epoch[1:] != epoch[:-1]) + 1
        before = np.append(0, changes).take(np.searchsorted(changes, self._last_run, side="right"))
        first: _Numbers = np.maximum(before, self._run_starts)
        return first

    def _append_to_windows(self, groups: _Numbers, newest: NDArray[np.int64], fresh: NDArray[np.int64]) -> None:
        """Append the `fresh` last boundary batches up to `newest` to the windows of these groups, dropping the oldest entries."""
        state = self._before
        added, kept = fresh.take(groups), state["window_count"].take(groups).astype(np.int64)
        count = np.minimum(kept + added, NUM_BATCHES_TO_RETAIN)
        # of entry k of the new window: how many entries follow it; beyond its last one that one once more
        behind = np.maximum(count[:, None] - 1 - np.arange(NUM_BATCHES_TO_RETAIN), 0)
        # all entries there are, the old windows and then the boundary batches of these runs, and which of them each new entry is
        first, held = int(self.runs["boundary_start"][0]), len(groups) * NUM_BATCHES_TO_RETAIN
        last = int(self.runs["boundary_start"][-1]) + int(self.runs["boundary_count"][-1])
        entries = np.empty(held + last - first, dtype=RETAINED_BATCH)
        windows = whole(state, "window")
        entries[:held].view(windows.dtype)[:] = windows[groups]
        for name in RETAINED_BATCH.names or ():
            entries[name][held:] = self.boundary_batches[name][first:last]
        of_boundary, of_windows = (
            newest.take(groups) + (held - first),
            np.arange(0, held, NUM_BATCHES_TO_RETAIN) + kept + added - 1,
        )
        chosen = np.where(behind < added[:, None], of_boundary[:, None], of_windows[:, None]) - behind
        windows[groups] = pick(entries, chosen).view(windows.dtype)[:, 0]
        state["window_count"][groups] = count


def _shifted(column: NDArray[Any], starts: _Numbers, values: NDArray[Any]) -> NDArray[Any]:
    """Return what precedes each entry: the one before it, but these values at `starts`."""
    shifted = np.empty_like(column)
    shifted[1:] = column[:-1]
    shifted[starts] = values
    return shifted


def _of(column: NDArray[Any], numbers: _Numbers) -> NDArray[Any]:
    """Return a column's values at these places, zeros if it is empty."""
    return column.take(numbers) if len(column) else np.zeros(len(numbers), dtype=column.dtype)
