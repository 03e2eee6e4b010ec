"""Auditing the rows of one chunk: healthy producers in numpy, the rest batch by batch.

`TransitionAudit.feed` takes chunks in offset order; cutting the log elsewhere does not change what it reports.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
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

_AT_ONCE = 1 << 10
"""Runs and producers taken at a time, so that the cost per column is shared."""

_IN_FLIGHT = 5
"""max.in.flight.requests.per.connection of an idempotent producer at most: these batches it may renumber together."""

_RETAINED = itemgetter(*map(BoundaryBatch._fields.index, RetainedBatch._fields))
_RECORDS = BoundaryBatch._fields.index("record_count")

FetchRun = Callable[[Row], Iterable[BoundaryBatch]]
"""All batches of a run (one row of RUN), read again from the log."""


class _Run(NamedTuple):
    """A run: its first batches, up to five, and its last ones among the others, up to five; each the fields of a BoundaryBatch."""

    epoch: int
    is_transactional: bool
    length: int
    records: int
    head: list[tuple[int, ...]]
    tail: list[tuple[int, ...]]


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
        runs = _runs(merged, columns.boundary, groups)
        for first in range(0, len(groups), _AT_ONCE):
            chosen = groups[first : first + _AT_ONCE]
            states = dict(zip(slots[chosen].tolist(), self.table.load(slots[chosen]), strict=True))
            for (slot, state), group in zip(states.items(), chosen.tolist(), strict=True):
                states[slot] = self._audit_producer(state, columns, group, runs)
            self.table.store({slot: state for slot, state in states.items() if state is not None})

    def finish(self) -> None:
        """The log has ended: report what only its end decides."""
        rows = self.table.rows
        slots = np.flatnonzero(rows["flags"] & ABORT_BUMPED != 0)
        for producer_id, state in zip(rows["producer_id"][slots].tolist(), self.table.load(slots), strict=True):
            if state is not None:
                self._keep(audit_end(state, producer_id))

    def _audit_producer(
        self, state: ProducerAuditState | None, columns: TransitionColumns, group: int, runs: Iterator[_Run]
    ) -> ProducerAuditState | None:
        """Audit the rows of one group, and return the state after them; `runs` has its runs next."""
        merged = columns.merged
        producer = Producer(int(merged.producer_ids[group]), self.sequences_count)
        for is_marker, number in merged.rows_of(group):
            if is_marker:
                state, observations = audit_marker(state, EndTxnMarker._make(merged.markers.item(number)))
                self._keep(observations)
            else:
                state = self._audit_run(state, next(runs), merged.runs[number], producer)
        return state

    def _audit_run(
        self, state: ProducerAuditState | None, run: _Run, row: Row, producer: Producer
    ) -> ProducerAuditState | None:
        """Audit batches until one is adopted and nothing waits for what follows it: the others go on in sequence."""
        taken = 0
        for taken, batch in enumerate(map(BoundaryBatch._make, run.head), 1):
            state = self._audit_batch(state, batch, run, producer)
            adopted = state.window and state.window[-1].base_offset == batch.base_offset
            followed = producer.producer_id in self._awaiting or producer.producer_id in self._restarted
            last_of_head = taken == len(run.head)
            if adopted and (run.tail if last_of_head else not followed):
                return self._continue_run(state, run, taken)
        if run.tail:
            for batch in islice(self.fetch_run(row), taken, None):
                state = self._audit_batch(state, batch, run, producer)
        return state

    def _audit_batch(
        self, state: ProducerAuditState | None, batch: BoundaryBatch, run: _Run, producer: Producer
    ) -> ProducerAuditState:
        for index in self._awaiting.pop(producer.producer_id, ()):
            self.observations[index] = self.observations[index]._replace(following=batch, following_epoch=run.epoch)
        if self._restarted:
            self._follow(producer.producer_id, batch)
        self.leader_changes.add(state, batch, run.epoch)
        state, observations = audit_batch(state, batch, run.epoch, run.is_transactional, producer)
        self._keep(observations)
        return state

    def _continue_run(self, state: ProducerAuditState, run: _Run, taken: int) -> ProducerAuditState:
        """Take the rest of a run of which the batch number `taken` was adopted to its end: in sequence by construction."""
        rest = [*run.head[taken:], *run.tail]
        newest = BoundaryBatch._make(rest[-1])
        self.leader_changes.add_run(BoundaryBatch._make(run.head[taken - 1]), newest)
        remembered = [RetainedBatch._make(_RETAINED(batch)) for batch in rest[-NUM_BATCHES_TO_RETAIN:]]
        records = run.records - sum(batch[_RECORDS] for batch in run.head[:taken])
        return state._replace(
            last_sequence=newest.last_sequence,
            window=(*state.window, *remembered)[-NUM_BATCHES_TO_RETAIN:],
            last=newest,
            last_timestamp=newest.max_timestamp,
            txn_records=state.txn_records + (records if run.is_transactional else 0),
        )

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


def _runs(merged: Merged, boundary: Columns, groups: NDArray[np.intp]) -> Iterator[_Run]:
    """Yield the runs of these groups, in their order, made of the rows of many at a time."""
    starts, counts = merged.run_starts.take(groups), (merged.run_stops - merged.run_starts).take(groups)
    numbers = _ranges(starts, counts)
    for first in range(0, len(numbers), _AT_ONCE):
        runs = merged.runs[numbers[first : first + _AT_ONCE]]
        heads, both = runs["head_count"], runs["boundary_count"]
        batches = iter(boundary[_ranges(runs["boundary_start"], both)].tolist())
        columns = (
            runs["producer_epoch"],
            runs["is_transactional"],
            runs["batches"],
            runs["records"],
            heads,
            both - heads,
        )
        for *fields, head, tail in zip(*(column.tolist() for column in columns), strict=True):
            yield _Run._make((*fields, list(islice(batches, head)), list(islice(batches, tail))))


def _ranges(starts: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.intp]:
    """Return `counts[i]` consecutive numbers from each `starts[i]`, concatenated."""
    ends = np.cumsum(counts, dtype=np.intp)
    return np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)
