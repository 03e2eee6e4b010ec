"""Replaying the rows of one chunk: healthy joints accepted in numpy, the rest by the scalar judge.

`JointReplay.feed` takes chunks in offset order; cutting the log elsewhere changes nothing it reports.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.model.batch_fields import MAYBE_COMMITS, NO_OFFSET, NO_SEQUENCE
from kaudit.pipeline.columns import Columns, Row
from kaudit.pipeline.merging import Merged
from kaudit.pipeline.producer_table import REMEMBERED, ProducerTable
from kaudit.pipeline.rows import SILENCE_MS, WINDOW, Rows, pick, put, whole
from kaudit.replay.judge import (
    ABORT_BUMPED,
    AFTER_MARKER,
    EXHAUSTION_TOLD,
    EXPLAINED,
    MARKED_EPOCH,
    NEARLY_EXHAUSTED_EPOCH,
    OUTSIDE_TOLD,
    SHORTEST_EXPIRY_MS,
    TV2,
    Edge,
    Fact,
    Marker,
    Producer,
    Remembered,
    State,
    judge_batch,
    judge_end,
    judge_marker,
)

MAX_FACTS = 100_000
"""Facts kept of one partition; more are counted, not listed, so that a ruined log cannot exhaust memory."""

_PART_ROWS = 8192
"""Rows judged at a time: the columns made of them stay in the processor's cache, and memory stays bounded."""

_NO_TRANSACTION: dict[str, NDArray[Any]] = {
    "txn_first_offset": np.array(NO_OFFSET),
    "txn_first_timestamp": np.array(-1),
    "txn_position": np.array(-1),
    "txn_segment": np.array(-1),
    "txn_records": np.array(0),
    "flags": np.array(0),
}

FetchRun = Callable[[Row], list[Edge]]
"""All batches of a run (one row of RUN), read again from the log."""


class JointReplay(Struct):
    """The producers of one partition replica. `facts` are in the order the log told them."""

    fetch_run: FetchRun
    sequences_count: bool = True
    table: ProducerTable = field(default_factory=ProducerTable)
    facts: list[Fact] = field(default_factory=list)
    dropped_facts: int = 0
    holes_are_normal: bool = True
    """No damage was seen: missing offsets are compaction's or retention's, and what they explain needs no word."""
    runs: int = 0
    """Runs so far, wherever the log was cut into chunks."""
    _awaiting: dict[int, list[int]] = field(default_factory=dict)

    def feed(self, merged: Merged, edges: Columns) -> None:
        """Take one chunk's runs and its markers that have records, `present_before` counted from the log's start."""
        if not len(merged.ids):
            return
        # new ids are added once: making room for them moves the whole index
        slots = self.table.slots(merged.producer_ids)
        for part, groups in merged.parts(_PART_ROWS):
            self._feed(part, edges, slots[groups])

    def _feed(self, merged: Merged, edges: Columns, slots: NDArray[np.int32]) -> None:
        joints = _Joints(merged, edges)
        before = pick(self.table.rows, slots)
        self.runs += len(merged.runs) - joints.continue_runs(before)
        healthy = joints.healthy(before, sequences_count=self.sequences_count, holes_are_normal=self.holes_are_normal)
        if self._awaiting:
            awaiting = np.fromiter(self._awaiting, dtype=np.int64, count=len(self._awaiting))
            healthy &= ~np.isin(joints.producer_ids, awaiting)
        joints.advance(before, healthy)
        put(self.table.rows, slots, before)
        for index in np.flatnonzero(~healthy).tolist():
            self._replay(int(slots[index]), joints, index)

    def finish(self) -> None:
        """The log has ended: report what only its end decides."""
        rows = self.table.rows
        for slot in np.flatnonzero(rows["flags"] & ABORT_BUMPED != 0).tolist():
            state = self.table.load(slot)
            if state is not None:
                self._keep(judge_end(state, int(rows["producer_id"][slot])))

    def _replay(self, slot: int, joints: "_Joints", group_index: int) -> None:
        state = self.table.load(slot)
        producer = Producer(int(joints.producer_ids[group_index]), self.sequences_count)
        for is_marker, index in joints.group_rows(group_index):
            if is_marker:
                state, facts = judge_marker(state, Marker._make(joints.markers.item(index)))
                self._keep(facts)
            else:
                state = self._replay_run(state, joints.runs[index], joints.edges, producer)
        if state is not None:
            self.table.store(slot, state)

    def _replay_run(self, state: State | None, run: Row, edges: Columns, producer: Producer) -> State:
        start, head, count = int(run["edges_start"]), int(run["head"]), int(run["batches"])
        epoch, transactional = int(run["producer_epoch"]), bool(run["is_transactional"])
        batches = [Edge._make(edge) for edge in edges[start : start + head].tolist()]
        state = self._judge(state, batches, epoch, transactional, producer)
        if count == head:
            return state
        newest = batches[-1]
        if state.epoch == epoch and state.window and state.window[-1].base_offset == newest.base_offset:
            tail = [Edge._make(edge) for edge in edges[start + head : start + int(run["edges"])].tolist()]
            rest = int(run["records"]) - sum(batch.record_count for batch in batches)
            return _continue_run(state, tail, rest, transactional=transactional)
        return self._judge(state, self.fetch_run(run)[head:], epoch, transactional, producer)

    def _judge(
        self,
        state: State | None,
        batches: list[Edge],
        epoch: int,
        transactional: bool,  # noqa: FBT001 - a column of the run
        producer: Producer,
    ) -> State:
        for batch in batches:
            for index in self._awaiting.pop(producer.producer_id, ()):
                self.facts[index] = self.facts[index]._replace(following=batch, following_epoch=epoch)
            state, facts = judge_batch(state, batch, epoch, transactional, producer)
            self._keep(facts)
        assert state is not None
        return state

    def _keep(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            if fact.code == EXPLAINED and self.holes_are_normal:
                continue
            if len(self.facts) >= MAX_FACTS:
                self.dropped_facts += 1
                continue
            if fact.batch is not None:
                self._awaiting.setdefault(fact.producer_id, []).append(len(self.facts))
            self.facts.append(fact)


def _continue_run(state: State, tail: list[Edge], rest_records: int, *, transactional: bool) -> State:
    """Take the rest of a run whose head was adopted to its end: in sequence by construction."""
    remembered = tuple(Remembered(edge.base_offset, edge.first_sequence, edge.last_sequence, edge.crc) for edge in tail)
    newest = tail[-1]
    return state._replace(
        last_sequence=newest.last_sequence,
        window=(state.window + remembered)[-WINDOW:],
        last=newest,
        last_timestamp=newest.max_timestamp,
        txn_records=state.txn_records + (rest_records if transactional else 0),
    )


class _Joints:
    """A chunk's runs and markers in one order, by producer id and offset, with what precedes each."""

    def __init__(self, merged: Merged, edges: Columns) -> None:
        self.runs, self.edges, self.markers = merged.runs, edges, merged.markers
        self.source, self.is_run = merged.order, merged.is_run
        self.starts, self.ends = merged.starts, merged.ends()
        self.producer_ids = merged.producer_ids
        self.rows = np.arange(len(self.source))
        lengths = self.ends - self.starts + 1
        self.group = np.repeat(np.arange(len(lengths)), lengths)
        self.group_start = np.repeat(self.starts, lengths)
        self.epoch = self._of_both("producer_epoch", "producer_epoch", np.int64)
        self.first = self._of_both("first_sequence", NO_SEQUENCE, np.int64)
        self.last = self._of_both("last_sequence", NO_SEQUENCE, np.int64)
        self.transactional = self._of_both("is_transactional", 0, np.bool_)
        self.coordinator = self._of_both(NO_SEQUENCE, "coordinator_epoch", np.int64)
        self.commit = ~self.is_run
        if len(self.markers):
            types = self.markers["type"]  # not isin: it sorts
            self.commit[self.commit] = np.logical_or.reduce([types == commit for commit in MAYBE_COMMITS])
        # index of the newest run / marker at or before each row, in its group; -1 if none
        self.run_at = self._latest(self.is_run)
        self.marker_at = self._latest(~self.is_run)

    def _of_both(self, of_runs: str | int, of_markers: str | int, dtype: type[np.generic]) -> NDArray[Any]:
        """One column in the common order: a field of the runs or a constant, a field of the markers or a constant."""
        runs = self.runs[of_runs] if isinstance(of_runs, str) else of_runs
        if not len(self.markers):
            return np.full(len(self.runs), runs, dtype=dtype) if isinstance(runs, int) else runs.astype(dtype)
        both = np.empty(len(self.source), dtype=dtype)
        both[: len(self.runs)] = runs
        both[len(self.runs) :] = self.markers[of_markers] if isinstance(of_markers, str) else of_markers
        ordered: NDArray[Any] = both.take(self.source)
        return ordered

    def _latest(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        newest = np.maximum.accumulate(np.where(chosen, self.rows, -1))
        newest[newest < self.group_start] = -1
        return newest

    def _before(self, latest: NDArray[np.int64]) -> NDArray[np.int64]:
        shifted = np.empty_like(latest)
        shifted[0] = -1
        shifted[1:] = latest[:-1]
        shifted[self.starts] = -1
        return shifted

    def group_rows(self, index: int) -> list[tuple[bool, int]]:
        """Return the rows of one producer: (is it a marker, its index among runs or markers)."""
        rows = slice(int(self.starts[index]), int(self.ends[index]) + 1)
        count = len(self.runs)
        return [(index >= count, index - count if index >= count else index) for index in self.source[rows].tolist()]

    def continue_runs(self, state: Rows) -> int:
        """Move each producer's open run to the end of this chunk; return how many first runs only went on with it."""
        if not len(self.runs):
            state["run_open"] = False
            return 0
        first = self.source[self.starts]
        begins = self.is_run[self.starts]
        head = np.where(begins, first, 0)
        silence = self.edges["max_timestamp"][self.runs["edges_start"][head]] - state["run_timestamp"]
        continued = (
            begins
            & state["run_open"]
            & (state["run_epoch"] == self.runs["producer_epoch"][head])
            & (state["run_transactional"] == self.runs["is_transactional"][head])
            & (state["run_sequence"] >= 0)
            & (((state["run_sequence"].astype(np.int64) + 1) & 0x7FFFFFFF) == self.runs["first_sequence"][head])
            & (silence < SILENCE_MS)
        )
        ends = self.is_run[self.ends]
        tail = np.where(ends, self.source[self.ends], 0)
        state["run_open"] = ends
        state["run_epoch"] = self.runs["producer_epoch"][tail]
        state["run_transactional"] = self.runs["is_transactional"][tail]
        state["run_sequence"] = self.runs["last_sequence"][tail]
        state["run_timestamp"] = self.runs["last_max_timestamp"][tail]
        return int(continued.sum())

    def _explained(
        self, run_before: NDArray[np.int64], before: Rows, remembered: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Tell for each run whether missing offsets explain the sequences missing in front of it."""
        explained = np.zeros(len(self.rows), dtype=bool)
        ahead = (self.first - ((remembered + 1) & 0x7FFFFFFF)) & 0x7FFFFFFF
        gap = (remembered != NO_SEQUENCE) & (ahead > 0) & (ahead < 1 << 30) & (self.first > 0)
        at = np.flatnonzero(gap & self.is_run)
        if not len(at):
            return explained
        own, earlier = self.source[at], run_before[at]
        in_chunk = earlier >= 0
        previous = self.source[np.maximum(earlier, 0)] * in_chunk
        newest = self.runs["edges_start"][previous] + self.runs["edges"][previous] - 1
        state, group = before["last"], self.group[at]
        base = np.where(in_chunk, self.edges["base_offset"][newest], state["base_offset"][group])
        present = np.where(in_chunk, self.runs["present_before_last"][previous], state["present_before"][group])
        missing = (self.runs["first_offset"][own] - base) - (self.runs["present_before_first"][own] - present)
        explained[at] = missing >= ahead[at]
        return explained

    def _late(self, run_before: NDArray[np.int64], before: Rows) -> NDArray[np.bool_]:
        """Tell for each run whether brokers may have forgotten its producer since the batch before it."""
        late = np.zeros(len(self.rows), dtype=bool)
        at = np.flatnonzero(self.is_run)
        if not len(at):
            return late
        own, earlier = self.source[at], run_before[at]
        in_chunk = earlier >= 0
        previous = self.source[np.maximum(earlier, 0)] * in_chunk
        state = before["last"]["max_timestamp"][self.group[at]]
        newest = np.where(in_chunk, self.runs["last_max_timestamp"][previous], state)
        silence = self.edges["max_timestamp"][self.runs["edges_start"][own]] - newest
        late[at] = (in_chunk | before["known"][self.group[at]]) & (silence >= SHORTEST_EXPIRY_MS)
        return late

    def healthy(self, before: Rows, *, sequences_count: bool, holes_are_normal: bool) -> NDArray[np.bool_]:
        """Tell for each producer whether all its joints in this chunk are healthy, given its state before."""
        own, starts = self.group, self.starts
        known = np.ones(len(self.rows), dtype=bool)
        known[starts] = before["known"]
        previous = np.empty_like(self.epoch)
        previous[1:] = self.epoch[:-1]
        previous[starts] = before["epoch"]
        run_before = self._before(self.run_at)
        in_chunk = run_before >= 0
        remembered = np.where(in_chunk, self.last[run_before], before["last_sequence"][own])
        remembered_epoch = np.where(in_chunk, self.epoch[run_before], before["epoch"][own])
        remembered = np.where(known & (remembered_epoch == previous), remembered, NO_SEQUENCE)
        marker_before = self._before(self.marker_at)
        self.previous_epoch, self.known, self.remembered = previous, known, remembered
        self.marked = ~self.is_run & known & (self.epoch == previous) & (remembered != NO_SEQUENCE)
        commit_bump = self.commit & known & (self.epoch == previous + 1)
        tv2_at = self._latest(commit_bump)
        self.tv2 = (self._before(tv2_at) >= 0) | (before["flags"][own] & TV2 != 0)
        self.tv2_end = (tv2_at[self.ends] >= 0) | (before["flags"] & TV2 != 0)

        same = known & (self.epoch == previous)
        if sequences_count:
            following = (remembered + 1) & 0x7FFFFFFF
            in_order = np.where(remembered == NO_SEQUENCE, self.first <= 0, self.first == following)
            if holes_are_normal:
                in_order |= self._explained(run_before, before, remembered)
            sound = (same & (in_order | (self.first < 0))) | (~known & (self.first <= 0))
            sound |= known & (self.epoch > previous) & (self.first <= 0) & self.tv2
            sound &= ~self._late(run_before, before)
        else:
            sound = same | ~known | ((self.epoch > previous) & self.tv2)
        was_open = np.zeros(len(self.rows), dtype=bool)
        was_open[1:] = self.is_run[:-1] & self.transactional[:-1]
        was_open[starts] = before["txn_first_offset"] != NO_OFFSET
        sound &= self.transactional | ~was_open
        told = before["flags"][own] & EXHAUSTION_TOLD != 0
        sound &= (self.epoch < NEARLY_EXHAUSTED_EPOCH) | told
        coordinator = np.where(marker_before >= 0, self.coordinator[marker_before], before["coordinator_epoch"][own])
        ended = ~known | ((self.epoch >= previous) & (self.coordinator >= coordinator))
        return np.logical_and.reduceat(np.where(self.is_run, sound, ended), starts)

    def advance(self, state: Rows, chosen: NDArray[np.bool_]) -> None:
        """Move the state of the chosen (healthy) producers to the end of this chunk; others' rows are left alone."""
        # the columns are computed for all groups and written where chosen
        ends = self.ends
        final = self.epoch[ends]
        run_end, marker_end = self.run_at[ends], self.marker_at[ends]
        has_run, has_marker = run_end >= 0, marker_end >= 0
        same_epoch = state["known"] & (state["epoch"] == final)
        new: dict[str, NDArray[Any]] = {}
        new["epoch"] = final
        last = np.where(same_epoch & ~has_run, state["last_sequence"], NO_SEQUENCE)
        new["last_sequence"] = np.where(has_run & (self.epoch[run_end] == final), self.last[run_end], last)
        new["coordinator_epoch"] = np.where(has_marker, self.coordinator[marker_end], state["coordinator_epoch"])
        run_rows = np.where(has_run, self.source[np.maximum(run_end, 0)], 0)
        count = len(self.runs)
        marker_rows = np.where(has_marker, self.source[np.maximum(marker_end, 0)] - count, 0)
        marker_times = self.markers["timestamp"][marker_rows] if len(self.markers) else np.zeros(len(ends), np.int64)
        run_times = self.runs["last_max_timestamp"][run_rows] if count else np.zeros(len(ends), np.int64)
        new["last_timestamp"] = np.where(self.is_run[ends], run_times, marker_times)
        if len(self.markers):
            marker_offsets = self.markers["offset"][marker_rows]
            new["marker_offset"] = np.where(has_marker, marker_offsets, state["marker_offset"])
            new["marker_timestamp"] = np.where(has_marker, marker_times, state["marker_timestamp"])
        self._advance_transaction(state, new, has_marker, marker_end)
        self._advance_window(state, chosen, final, run_end, same_epoch)
        for name, values in new.items():
            np.copyto(state[name], values, where=chosen, casting="same_kind")
        state["known"] |= chosen

    def _advance_transaction(
        self,
        state: Rows,
        new: dict[str, NDArray[Any]],
        has_marker: NDArray[np.bool_],
        marker_end: NDArray[np.int64],
    ) -> None:
        ends, starts = self.ends, self.starts
        opening = np.flatnonzero(self.is_run & self.transactional)
        flags, waiting = state["flags"], state["txn_first_offset"] != NO_OFFSET
        if not len(opening) and not len(self.markers) and not waiting.any() and not flags.any():
            new |= _NO_TRANSACTION  # nothing to carry on
            return
        after = np.where(has_marker, marker_end + 1, starts)
        first = np.append(opening, len(self.rows)).take(np.searchsorted(opening, after))
        opens = first <= ends
        still_open = ~has_marker & waiting
        opens_here = opens & ~still_open
        at = np.where(opens, first, 0)
        runs = np.where(opens, self.source[at], 0)
        if opens.any():
            records = np.where(self.runs["is_transactional"], self.runs["records"], 0)
            total = np.cumsum(records)
            newest = np.where(opens, self.source[np.maximum(self.run_at[ends], 0)], 0)
            added = np.where(opens, total[newest] - total[runs] + records[runs], 0)
            head = self.runs["edges_start"].take(runs)
        else:
            added = np.zeros(len(ends), dtype=np.int64)
            head = np.zeros(len(ends), dtype=np.int64)

        def choose(name: str, of_edges: str, none: int) -> NDArray[np.generic]:
            carried = np.where(still_open, state[name], none)
            return np.where(opens_here, self.edges[of_edges].take(head), carried) if opens_here.any() else carried

        new["txn_first_offset"] = choose("txn_first_offset", "base_offset", NO_OFFSET)
        new["txn_first_timestamp"] = choose("txn_first_timestamp", "max_timestamp", -1)
        new["txn_position"] = choose("txn_position", "position", -1)
        new["txn_segment"] = choose("txn_segment", "segment", -1)
        new["txn_records"] = np.where(still_open, state["txn_records"] + added, added)

        kept = flags & EXHAUSTION_TOLD
        kept |= np.where(self.tv2_end, TV2, 0)
        kept |= np.where(has_marker, 0, flags & OUTSIDE_TOLD)
        final = self.epoch[ends]
        ended = np.where(has_marker, marker_end, 0)
        marked = np.where(
            has_marker,
            self.marked[ended] & (self.epoch[ended] == final),
            (flags & MARKED_EPOCH != 0) & (state["epoch"] == final),
        )
        kept |= np.where(marked, MARKED_EPOCH, 0)
        has_run = self.run_at[ends] >= 0
        bumped = self.known[ended] & ~self.commit[ended] & (self.epoch[ended] > self.previous_epoch[ended])
        bumped = np.where(has_marker, bumped & (marker_end == ends), (flags & ABORT_BUMPED != 0) & ~has_run)
        kept |= np.where(bumped, ABORT_BUMPED, 0)
        marker_before = self._before(self.marker_at)[at]
        late = np.where(
            marker_before >= 0,
            self.marked[marker_before] & (self.epoch[marker_before] == self.epoch[at]),
            (flags & MARKED_EPOCH != 0) & (state["epoch"] == self.epoch[at]) & state["known"],
        )
        kept |= np.where(opens_here & late, AFTER_MARKER, 0)
        kept |= np.where(still_open, flags & AFTER_MARKER, 0)
        new["flags"] = kept

    def _advance_window(
        self,
        state: Rows,
        chosen: NDArray[np.bool_],
        final: NDArray[np.int64],
        run_end: NDArray[np.int64],
        same_epoch: NDArray[np.bool_],
    ) -> None:
        has_run = run_end >= 0
        cleared = chosen & ~same_epoch
        state["remembered"][cleared] = 0
        state["start_crc"][cleared] = -1
        if not len(self.runs):
            return
        runs = np.where(has_run, self.source[np.maximum(run_end, 0)], 0)
        newest = self.runs["edges_start"][runs] + self.runs["edges"][runs] - 1
        written = chosen & has_run
        into = np.flatnonzero(written)
        put(state["last"], into, self.edges.rows(newest.take(into)))
        state["has_last"][into] = True
        # runs of the final epoch are the last ones of their group: epochs only rise where joints are healthy
        of_final = self.is_run & (self.epoch == final[self.group])
        upcoming = np.minimum.accumulate(np.where(of_final, self.rows, len(self.rows))[::-1])[::-1]
        first = upcoming[self.starts]
        has_final = first <= self.ends
        at = np.where(has_final, first, 0)
        first_run = np.where(has_final & has_run, self.source[at], 0)
        first_edge = self.runs["edges_start"][first_run]
        fresh_epoch = (self.remembered[at] == NO_SEQUENCE) | (self.epoch[at] != self.previous_epoch[at])
        opens_epoch = written & has_final & fresh_epoch & (self.first[at] == 0)
        state["start_crc"][opens_epoch] = self.edges["crc"][first_edge[opens_epoch]]
        fresh = np.where(has_final, np.minimum(newest - first_edge + 1, WINDOW), 0)
        self._append_to_windows(state, into, newest, fresh)

    def _append_to_windows(
        self, state: Rows, groups: NDArray[np.intp], newest: NDArray[np.int64], fresh: NDArray[np.int64]
    ) -> None:
        """Append the `fresh` last edges up to `newest` to the windows of these groups, dropping the oldest entries."""
        added, kept = fresh.take(groups), state["remembered"].take(groups).astype(np.int64)
        count = np.minimum(kept + added, WINDOW)
        # of entry k of the new window: how many entries follow it
        behind = count[:, None] - 1 - np.arange(WINDOW)
        is_edge = (behind >= 0) & (behind < added[:, None])
        # all entries there are, the old windows and then the edges of these runs, and which of them each new entry is
        first, held = int(self.runs["edges_start"][0]), len(groups) * WINDOW
        last = int(self.runs["edges_start"][-1]) + int(self.runs["edges"][-1])
        entries = np.empty(held + last - first, dtype=REMEMBERED)
        windows = whole(state, "window")
        entries[:held].view(windows.dtype)[:] = windows[groups]
        for name in REMEMBERED.names or ():
            entries[name][held:] = self.edges[name][first:last]
        old = np.clip(kept[:, None] - 1 - (behind - added[:, None]), 0, WINDOW - 1)
        old += np.arange(0, held, WINDOW)[:, None]
        new = newest.take(groups)[:, None] - behind + (held - first)
        windows[groups] = pick(entries, np.where(is_edge, new, old)).view(windows.dtype)[:, 0]
        state["remembered"][groups] = count
