"""The state of many healthy producers at once, moved on to the end of a part of a chunk.

What sequence_audit.py does batch by batch, `add_batch` and `append_end_txn_marker`, here from the last run, the last marker
and the run with which an open transaction began. Only for producers that vectorised_transitions.py found healthy: their
epochs only rise, and their sequences go on.
"""

from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict
from numpy.typing import NDArray

from kaudit.audits.sequences.producer_table import RETAINED_BATCH
from kaudit.audits.sequences.vectorised_transitions import Mask, Numbers, TransitionColumns
from kaudit.broker.producer_state.rules import (
    begins_transaction,
    in_sequence,
    is_raising_abort,
    marks_own_epoch,
    may_commit,
)
from kaudit.model.batch_fields import NO_OFFSET, NO_SEQUENCE
from kaudit.model.producer_state import (
    ABORT_BUMPED,
    AFTER_MARKER,
    EXHAUSTION_REPORTED,
    MARKED_EPOCH,
    NO_CRC,
    NUM_BATCHES_TO_RETAIN,
    OUTSIDE_REPORTED,
    SILENCE_REPORTED,
    TV2,
    ProducerAuditState,
)
from kaudit.reading.producer_grouping import of
from kaudit.reading.rows import SILENCE_MS, pick, put, whole

NewColumns = dict[str, NDArray[Any]]
"""New values of fields of the state, one for each group."""

_BEGINNING = {
    "txn_first_offset": "base_offset",
    "txn_first_timestamp": "max_timestamp",
    "txn_position": "position",
    "txn_segment": "segment",
}
"""Fields that say where the open transaction began, and the field of its first batch each is taken from."""
_OF_LAST_MARKER = (
    ("coordinator_epoch", "coordinator_epoch"),
    ("rebuilt_coordinator_epoch", "coordinator_epoch"),
    ("marker_offset", "offset"),
)
_DEFAULTS = asdict(ProducerAuditState())
_NO_TRANSACTION: NewColumns = {name: np.array(_DEFAULTS[name]) for name in (*_BEGINNING, "txn_records", "flags")}


def continue_runs(columns: TransitionColumns) -> int:
    """Move each producer's open run to the end of this part; return how many first runs only went on with it."""
    merged, runs, state = columns.merged, columns.merged.runs, columns.before
    if not len(runs):
        state["run_open"] = False
        return 0
    head, tail = np.minimum(merged.run_starts, len(runs) - 1), merged.last_run
    continued = (
        merged.is_run.take(merged.starts)
        & state["run_open"]
        & (state["run_epoch"] == runs["producer_epoch"].take(head))
        & (state["run_transactional"] == runs["is_transactional"].take(head))
        & (state["run_sequence"] >= 0)
        & in_sequence(state["run_sequence"], runs["first_sequence"].take(head))
        & (runs["first_sequence"].take(head) > 0)
    )
    if continued.any():
        begin = columns.boundary["max_timestamp"].take(runs["boundary_start"].take(head))
        continued &= begin - state["run_timestamp"] < SILENCE_MS
    state["run_open"] = merged.is_run.take(merged.ends)
    state["run_epoch"] = runs["producer_epoch"].take(tail)
    state["run_transactional"] = runs["is_transactional"].take(tail)
    state["run_sequence"] = runs["last_sequence"].take(tail)
    state["run_timestamp"] = runs["last_max_timestamp"].take(tail)
    return int(np.count_nonzero(continued))


def advance(columns: TransitionColumns) -> None:
    """Move the state of producers, which are all healthy, to the end of their rows."""
    merged, state = columns.merged, columns.before
    final = merged.epochs.take(merged.ends)
    same_epoch = state["known"] & (state["epoch"] == final)
    run_of_final = merged.has_run & (of(merged.runs["producer_epoch"], merged.last_run) == final)
    last = np.where(same_epoch & ~merged.has_run, state["last_sequence"], NO_SEQUENCE)
    new: NewColumns = {
        "epoch": final,
        "rebuilt_epoch": final,
        "last_sequence": np.where(run_of_final, of(merged.runs["last_sequence"], merged.last_run), last),
        "last_timestamp": of(merged.runs["last_max_timestamp"], merged.last_run),
    }
    if len(merged.markers):
        _append_last_markers(columns, new)
    _track_transactions(columns, new)
    state["window_count"][~same_epoch] = 0
    state["start_crc"][~same_epoch] = NO_CRC
    if len(merged.runs):
        _add_batches(columns, run_of_final)
    for name, values in new.items():
        np.copyto(state[name], values, casting="same_kind")
    state["known"] = True


def _append_last_markers(columns: TransitionColumns, new: NewColumns) -> None:
    merged, state = columns.merged, columns.before
    times = merged.markers["timestamp"].take(merged.last_marker)
    new["last_timestamp"] = np.where(merged.is_run.take(merged.ends), new["last_timestamp"], times)
    new["marker_timestamp"] = np.where(merged.has_marker, times, state["marker_timestamp"])
    for of_state, of_marker in _OF_LAST_MARKER:
        values = merged.markers[of_marker].take(merged.last_marker)
        new[of_state] = np.where(merged.has_marker, values, state[of_state])


class _Transactions(Struct, frozen=True):
    """Per group: a transaction begins here that is open at the end (`opens`), with run `runs`; or one was open already."""

    has_data: Mask
    opens: Mask
    still_open: Mask
    runs: Numbers


def _track_transactions(columns: TransitionColumns, new: NewColumns) -> None:
    merged, state = columns.merged, columns.before
    waiting = state["txn_first_offset"] != NO_OFFSET
    transactional = merged.runs["is_transactional"].any()
    if not transactional and not len(merged.markers) and not waiting.any() and not state["flags"].any():
        new |= _NO_TRANSACTION  # nothing to carry on
        return
    has_data = merged.opening_runs < merged.run_stops
    still_open = ~merged.has_marker & waiting
    opens = begins_transaction(still_open, has_data)
    open_here = _Transactions(has_data, opens, still_open, np.where(has_data, merged.opening_runs, 0))
    new["txn_records"] = _transaction_records(columns, open_here)
    for of_state, of_batch in _BEGINNING.items():
        new[of_state] = np.where(still_open, state[of_state], _DEFAULTS[of_state])
        if opens.any():
            first = columns.boundary[of_batch].take(merged.runs["boundary_start"].take(open_here.runs))
            new[of_state] = np.where(opens, first, new[of_state])
    new["flags"] = _flags(columns, new["epoch"], open_here)


def _transaction_records(columns: TransitionColumns, open_here: _Transactions) -> NDArray[np.int64]:
    merged, has_data = columns.merged, open_here.has_data
    added: NDArray[np.int64] = np.zeros(len(has_data), dtype=np.int64)
    if has_data.any():
        records = np.where(merged.runs["is_transactional"], merged.runs["records"], 0)
        total, first = np.cumsum(records), open_here.runs
        added = np.where(has_data, total.take(merged.last_run) - total.take(first) + records.take(first), 0)
    return np.where(open_here.still_open, columns.before["txn_records"] + added, added)


def _flags(columns: TransitionColumns, final: NDArray[np.int16], open_here: _Transactions) -> NDArray[np.int32]:
    """Return the new flags; `final` is the epoch at the end."""
    merged, state, commits = columns.merged, columns.before, columns.version_2_commits
    flags, has_marker = state["flags"], merged.has_marker
    new: NDArray[np.int32] = flags & (EXHAUSTION_REPORTED | SILENCE_REPORTED | TV2)
    new |= np.where(commits.take(merged.marker_stops) > commits.take(merged.marker_starts), TV2, 0)
    new |= np.where(has_marker, 0, flags & OUTSIDE_REPORTED)
    marked, raised = _last_markers(columns)
    marker_epoch = of(merged.markers["producer_epoch"], merged.last_marker)
    was_marked = flags & MARKED_EPOCH != 0
    is_marked = np.where(has_marker, marked & (marker_epoch == final), was_marked & (state["epoch"] == final))
    new |= np.where(is_marked, MARKED_EPOCH, 0)
    new |= np.where(has_marker & raised, ABORT_BUMPED, 0)  # without a marker there is a run, which takes it back
    if open_here.opens.any():
        epoch = merged.runs["producer_epoch"].take(open_here.runs)
        was_marked &= (state["epoch"] == epoch) & state["known"]
        late = np.where(has_marker, marked & (marker_epoch == epoch), was_marked)
        new |= np.where(open_here.opens & late, AFTER_MARKER, 0)
    new |= np.where(open_here.still_open, flags & AFTER_MARKER, 0)
    return new


def _last_markers(columns: TransitionColumns) -> tuple[Mask, Mask]:
    """Return of each producer's last marker: it ended data of its own epoch; it is an abort that raised the epoch, and last."""
    merged = columns.merged
    groups = np.arange(len(merged.starts))
    if not len(merged.markers):
        return np.zeros(len(groups), dtype=np.bool_), np.zeros(len(groups), dtype=np.bool_)
    rows, committed = merged.marker_rows.take(merged.last_marker), may_commit(merged.markers["type"])
    epoch, previous = merged.epochs.take(rows), columns.previous_epoch.take(rows)
    remembered = columns.remembered(merged.runs_before_markers.take(merged.last_marker), groups, rows)
    raised = is_raising_abort(epoch, previous, committed.take(merged.last_marker)) & (rows == merged.ends)
    return marks_own_epoch(epoch, previous, remembered), raised & columns.known_at(rows, groups)


def _add_batches(columns: TransitionColumns, run_of_final: Mask) -> None:
    """Add the last batches of the groups that have any; `run_of_final`: their last run is of the epoch at the end."""
    merged, state, boundary = columns.merged, columns.before, columns.boundary
    newest = columns.newest_batches(merged.last_run)
    into = np.flatnonzero(merged.has_run)
    put(state["last"], into, boundary.rows(newest.take(into)))
    state["has_last"][into] = True
    first = np.where(run_of_final, _first_of_last_epoch(columns), 0)
    first_batch = merged.runs["boundary_start"].take(first)
    newest_at_zero = _newest_at_zero(columns)
    at_zero = np.flatnonzero(run_of_final & (newest_at_zero >= first))
    state["start_crc"][at_zero] = boundary["crc"].take(merged.runs["boundary_start"].take(newest_at_zero.take(at_zero)))
    added = np.where(run_of_final, np.minimum(newest - first_batch + 1, NUM_BATCHES_TO_RETAIN), 0)
    _append_to_windows(columns, into, newest, added)


def _newest_at_zero(columns: TransitionColumns) -> Numbers:
    """Return the number of the last run that begins at sequence 0 up to each producer's last run, -1 without one."""
    merged = columns.merged
    numbers = np.where(merged.runs["first_sequence"] == 0, np.arange(len(merged.runs)), -1)
    newest: Numbers = np.maximum.accumulate(numbers).take(merged.last_run)
    return newest


def _first_of_last_epoch(columns: TransitionColumns) -> Numbers:
    """Return for each producer the first of its runs of its last run's epoch: epochs only rise, so these are neighbours."""
    merged, epoch = columns.merged, columns.merged.runs["producer_epoch"]
    changes = np.flatnonzero(epoch[1:] != epoch[:-1]) + 1
    before = np.append(0, changes).take(np.searchsorted(changes, merged.last_run, side="right"))
    first: Numbers = np.maximum(before, merged.run_starts)
    return first


def _append_to_windows(
    columns: TransitionColumns, groups: Numbers, newest: NDArray[np.int64], fresh: NDArray[np.int64]
) -> None:
    """Append the `fresh` last boundary batches up to `newest` to the windows of these groups, dropping the oldest."""
    state, boundary, runs = columns.before, columns.boundary, columns.merged.runs
    added, kept = fresh.take(groups), state["window_count"].take(groups).astype(np.int64)
    count = np.minimum(kept + added, NUM_BATCHES_TO_RETAIN)
    # all entries there are: the old windows, and then the boundary batches of these runs
    first, held = int(runs["boundary_start"][0]), len(groups) * NUM_BATCHES_TO_RETAIN
    last = int(runs["boundary_start"][-1]) + int(runs["boundary_count"][-1])
    entries = np.empty(held + last - first, dtype=RETAINED_BATCH)
    windows = whole(state, "window")
    entries[:held].view(windows.dtype)[:] = windows[groups]
    for name in RETAINED_BATCH.names or ():
        entries[name][held:] = boundary[name][first:last]
    # of entry k of the new window: how many entries follow it; beyond its last one that one once more
    behind = np.maximum(count[:, None] - 1 - np.arange(NUM_BATCHES_TO_RETAIN), 0)
    newest_added = newest.take(groups) + (held - first)
    newest_kept = np.arange(0, held, NUM_BATCHES_TO_RETAIN) + kept + added - 1
    chosen = np.where(behind < added[:, None], newest_added[:, None], newest_kept[:, None]) - behind
    windows[groups] = pick(entries, chosen).view(windows.dtype)[:, 0]
    state["window_count"][groups] = count
