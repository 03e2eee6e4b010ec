"""Auditing the rows of one chunk: healthy producers in numpy, the rest batch by batch.

`TransitionAudit.feed` takes chunks in offset order; cutting the log elsewhere does not change what it reports.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.audits.sequences.leader_changes import LeaderChangeCounts
from kaudit.audits.sequences.producer_table import ProducerTable
from kaudit.audits.sequences.sequence_audit import Producer, audit_batch, audit_end, audit_marker
from kaudit.audits.sequences.vectorised_state import advance, continue_runs
from kaudit.audits.sequences.vectorised_transitions import TransitionColumns, healthy_producers
from kaudit.model.columns import Columns, Row
from kaudit.model.limits import OBSERVATIONS
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_state import ABORT_BUMPED, NUM_BATCHES_TO_RETAIN, ProducerAuditState, RetainedBatch
from kaudit.reading.producer_grouping import Merged
from kaudit.reading.rows import pick, put

MAX_OBSERVATIONS = OBSERVATIONS
"""Observations kept of one partition; more are counted, not listed, so that a ruined log cannot exhaust memory."""

_PART_ROWS = 1 << 14
"""Rows audited at a time: the columns made of them stay in the processor's cache, and memory stays bounded."""

_HEADS = 1 << 10
"""Runs and producers taken at a time, so that the cost per column is shared."""

_IN_FLIGHT = 5
"""max.in.flight.requests.per.connection of an idempotent producer at most: these batches it may renumber together."""

FetchRun = Callable[[Row], Iterable[BoundaryBatch]]
"""All batches of a run (one row of RUN), read again from the log."""


class _Head(NamedTuple):
    """The first batches of a run, up to five, and how many it has."""

    epoch: int
    is_transactional: bool
    length: int
    batches: Sequence[BoundaryBatch]


class _Restarted(NamedTuple):
    """An observed restart: its number, how many batches after it are still to be compared, and the time of the newest, ms."""

    observation: int
    left: int
    newest_timestamp: int


class TransitionAudit(Struct):
    """The producers of one partition replica. Of each producer `observations` are in log order."""

    fetch_run: FetchRun
    sequences_count: bool
    table: ProducerTable = field(default_factory=ProducerTable)
    observations: list[Observation] = field(default_factory=list)
    dropped_observations: int = 0
    holes_are_normal: bool = True
    """No damage was seen: missing offsets are compaction's or retention's, and what they explain needs no word."""
    one_leader_epoch: bool = False
    """All batches so far have one: no producer can have written across a change of leader."""
    runs: int = 0
    """Runs so far, wherever the log was cut into chunks."""
    leader_changes: LeaderChangeCounts = field(default_factory=LeaderChangeCounts)
    _awaiting: dict[int, list[int]] = field(default_factory=dict)
    _restarted: dict[int, _Restarted] = field(default_factory=dict)

    def feed(self, merged: Merged, boundary: Columns) -> None:
        """Take one chunk's runs and its markers that have records, `present_before` counted from the log's start."""
        # new ids are added once: making room for them moves the whole index
        slots = self.table.slots(merged.producer_ids)
        for part, groups in merged.parts(_PART_ROWS):
            self._feed(part, boundary, slots[groups])

    def _feed(self, merged: Merged, boundary: Columns, slots: NDArray[np.int32]) -> None:
        columns = TransitionColumns(merged, boundary, pick(self.table.rows, slots))
        self.runs += len(merged.runs) - continue_runs(columns)
        healthy = healthy_producers(
            columns, sequences_count=self.sequences_count, holes_are_normal=self.holes_are_normal
        )
        if self._awaiting or self._restarted:
            followed = self._awaiting.keys() | self._restarted.keys()
            awaiting = np.fromiter(followed, dtype=np.int64, count=len(followed))
            healthy &= ~np.isin(merged.producer_ids, awaiting)
        if not self.one_leader_epoch:
            self.leader_changes.feed(columns, healthy)
        advance(columns, healthy)
        put(self.table.rows, slots, columns.before)
        groups = np.flatnonzero(~healthy)
        runs = _heads(merged, columns.boundary, groups)
        for first in range(0, len(groups), _HEADS):
            states = {}
            for group in groups[first : first + _HEADS].tolist():
                slot = int(slots[group])
                state = self._audit_producer(self.table.load(slot), columns, group, runs)
                if state is not None:
                    states[slot] = state
            self.table.store(states)

    def finish(self) -> None:
        """The log has ended: report what only its end decides."""
        rows = self.table.rows
        for slot in np.flatnonzero(rows["flags"] & ABORT_BUMPED != 0).tolist():
            state = self.table.load(slot)
            if state is not None:
                self._keep(audit_end(state, int(rows["producer_id"][slot])))

    def _audit_producer(
        self, state: ProducerAuditState | None, columns: TransitionColumns, group: int, runs: Iterator[_Head]
    ) -> ProducerAuditState | None:
        """Audit the rows of one group, and return the state after them; `runs` has its runs next."""
        merged = columns.merged
        producer = Producer(int(merged.producer_ids[group]), self.sequences_count)
        for is_marker, number in merged.rows_of(group):
            if is_marker:
                state, observations = audit_marker(state, EndTxnMarker._make(merged.markers.item(number)))
                self._keep(observations)
            else:
                run = next(runs)
                state = self._audit_batches(state, run.batches, run.epoch, run.is_transactional, producer)
                if len(run.batches) < run.length:
                    state = self._audit_rest(state, merged.runs[number], run, columns.boundary, producer)
        return state

    def _audit_rest(
        self, state: ProducerAuditState, run: Row, head: _Head, boundary: Columns, producer: Producer
    ) -> ProducerAuditState:
        newest, begin = head.batches[-1], len(head.batches)
        if state.window and state.window[-1].base_offset == newest.base_offset:
            start = run["boundary_start"]
            tail = list(map(BoundaryBatch._make, boundary[start + begin : start + run["boundary_count"]].tolist()))
            rest = run["records"] - sum(batch.record_count for batch in head.batches)
            self.leader_changes.add_run(newest, tail[-1])
            return _continue_run(state, tail, rest, transactional=head.is_transactional)
        batches = islice(self.fetch_run(run), begin, None)
        return self._audit_batches(state, batches, head.epoch, head.is_transactional, producer)

    def _audit_batches(
        self,
        state: ProducerAuditState | None,
        batches: Iterable[BoundaryBatch],
        epoch: int,
        transactional: bool,  # noqa: FBT001 - a column of the run
        producer: Producer,
    ) -> ProducerAuditState:
        for batch in batches:
            for index in self._awaiting.pop(producer.producer_id, ()):
                self.observations[index] = self.observations[index]._replace(following=batch, following_epoch=epoch)
            self._follow(producer.producer_id, batch)
            self.leader_changes.add(state, batch, epoch)
            state, observations = audit_batch(state, batch, epoch, transactional, producer)
            self._keep(observations)
        assert state is not None
        return state

    def _follow(self, producer_id: int, batch: BoundaryBatch) -> None:
        """Compare the time of a batch with those since its producer's sequence started again."""
        restarted = self._restarted.pop(producer_id, None)
        if restarted is None:
            return
        index, left, newest = restarted
        if 0 <= batch.max_timestamp < newest:
            self.observations[index] = self.observations[index]._replace(times_go_back=True)
        elif left > 1:
            self._restarted[producer_id] = _Restarted(index, left - 1, batch.max_timestamp)

    def _keep(self, observations: Sequence[Observation]) -> None:
        for observation in observations:
            if observation.explained and self.holes_are_normal:
                continue
            if len(self.observations) >= MAX_OBSERVATIONS:
                self.dropped_observations += 1
                continue
            if observation.batch is not None:
                self._awaiting.setdefault(observation.producer_id, []).append(len(self.observations))
                if observation.kind is ObservationKind.SEQUENCE_RESTART:
                    newest = observation.batch.max_timestamp
                    self._restarted[observation.producer_id] = _Restarted(
                        len(self.observations), _IN_FLIGHT - 1, newest
                    )
            self.observations.append(observation)


def _heads(merged: Merged, boundary: Columns, groups: NDArray[np.intp]) -> Iterator[_Head]:
    """Yield the runs of these groups, in their order, made of the rows of many at a time."""
    starts, counts = merged.run_starts.take(groups), (merged.run_stops - merged.run_starts).take(groups)
    numbers = _ranges(starts, counts)
    for first in range(0, len(numbers), _HEADS):
        runs = merged.runs[numbers[first : first + _HEADS]]
        heads = runs["head_count"]
        batches = map(BoundaryBatch._make, boundary[_ranges(runs["boundary_start"], heads)].tolist())
        columns = (runs["producer_epoch"], runs["is_transactional"], runs["batches"], heads)
        for epoch, is_transactional, length, head in zip(*(column.tolist() for column in columns), strict=True):
            yield _Head(epoch, is_transactional, length, list(islice(batches, head)))


def _ranges(starts: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.intp]:
    """Return `counts[i]` consecutive numbers from each `starts[i]`, concatenated."""
    ends = np.cumsum(counts, dtype=np.intp)
    return np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)


def _continue_run(
    state: ProducerAuditState, tail: list[BoundaryBatch], rest_records: int, *, transactional: bool
) -> ProducerAuditState:
    """Take the rest of a run whose head was adopted to its end: in sequence by construction."""
    remembered = tuple(
        RetainedBatch(batch.base_offset, batch.first_sequence, batch.last_sequence, batch.crc) for batch in tail
    )
    newest = tail[-1]
    return state._replace(
        last_sequence=newest.last_sequence,
        window=(state.window + remembered)[-NUM_BATCHES_TO_RETAIN:],
        last=newest,
        last_timestamp=newest.max_timestamp,
        txn_records=state.txn_records + (rest_records if transactional else 0),
    )
