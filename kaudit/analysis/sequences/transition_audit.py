"""Auditing the rows of one chunk: healthy producers in numpy, the rest batch by batch.

`TransitionAudit.feed` takes chunks in offset order; cutting the log elsewhere does not change what it reports.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.analysis.scan.producer_grouping import Merged
from kaudit.analysis.scan.rows import pick, put
from kaudit.analysis.sequences.leader_changes import LeaderChangeCounts
from kaudit.analysis.sequences.producer_table import ProducerTable
from kaudit.analysis.sequences.sequence_audit import Producer, audit_batch, audit_end, audit_marker
from kaudit.analysis.sequences.transition_columns import TransitionColumns
from kaudit.analysis.sequences.vectorised_state import advance, continue_runs
from kaudit.analysis.sequences.vectorised_transitions import healthy_producers
from kaudit.model.columns import Columns, Row
from kaudit.model.limits import OBSERVATIONS
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_state import ABORT_BUMPED, NUM_BATCHES_TO_RETAIN, ProducerAuditState, RetainedBatch

MAX_OBSERVATIONS = OBSERVATIONS
"""Observations kept of one partition; more are counted, not listed, so that a ruined log cannot exhaust memory."""

_PART_ROWS = 1 << 14
"""Rows audited at a time: the columns made of them stay in the processor's cache, and memory stays bounded."""

_IN_FLIGHT = 5
"""max.in.flight.requests.per.connection of an idempotent producer at most: these batches it may renumber together."""

FetchRun = Callable[[Row], list[BoundaryBatch]]
"""All batches of a run (one row of RUN), read again from the log."""


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
        for group in np.flatnonzero(~healthy).tolist():
            self._audit_producer(int(slots[group]), columns, group)

    def finish(self) -> None:
        """The log has ended: report what only its end decides."""
        rows = self.table.rows
        for slot in np.flatnonzero(rows["flags"] & ABORT_BUMPED != 0).tolist():
            state = self.table.load(slot)
            if state is not None:
                self._keep(audit_end(state, int(rows["producer_id"][slot])))

    def _audit_producer(self, slot: int, columns: TransitionColumns, group: int) -> None:
        state, merged = self.table.load(slot), columns.merged
        producer = Producer(int(merged.producer_ids[group]), self.sequences_count)
        for is_marker, number in merged.rows_of(group):
            if is_marker:
                state, observations = audit_marker(state, EndTxnMarker._make(merged.markers.item(number)))
                self._keep(observations)
            else:
                state = self._audit_run(state, merged.runs[number], columns.boundary, producer)
        if state is not None:
            self.table.store(slot, state)

    def _audit_run(
        self, state: ProducerAuditState | None, run: Row, boundary: Columns, producer: Producer
    ) -> ProducerAuditState:
        start, head, count = int(run["boundary_start"]), int(run["head_count"]), int(run["batches"])
        epoch, transactional = int(run["producer_epoch"]), bool(run["is_transactional"])
        batches = [BoundaryBatch._make(batch) for batch in boundary[start : start + head].tolist()]
        state = self._audit_batches(state, batches, epoch, transactional, producer)
        if count == head:
            return state
        newest = batches[-1]
        if state.window and state.window[-1].base_offset == newest.base_offset:
            tail = [
                BoundaryBatch._make(batch)
                for batch in boundary[start + head : start + int(run["boundary_count"])].tolist()
            ]
            rest = int(run["records"]) - sum(batch.record_count for batch in batches)
            self.leader_changes.add_run(newest, tail[-1])
            return _continue_run(state, tail, rest, transactional=transactional)
        return self._audit_batches(state, self.fetch_run(run)[head:], epoch, transactional, producer)

    def _audit_batches(
        self,
        state: ProducerAuditState | None,
        batches: list[BoundaryBatch],
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
