"""Auditing the rows of one chunk: healthy producers in numpy, the rest batch by batch.

`TransitionAudit.feed` takes chunks in offset order; cutting the log elsewhere does not change what it reports.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.sequences.leader_changes import LeaderChangeCounts
from kaudit.audits.sequences.producer_table import ProducerTable
from kaudit.audits.sequences.sequence_audit import Producer, audit_batch, audit_end, audit_marker
from kaudit.audits.sequences.vectorised_state import advance, continue_runs
from kaudit.audits.sequences.vectorised_transitions import TransitionColumns, first_unhealthy
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

_Row = TypeVar("_Row", BoundaryBatch, RetainedBatch)

FetchRun = Callable[[Row], Iterable[BoundaryBatch]]
"""All batches of a run (one row of RUN), read again from the log."""


class _Run(NamedTuple):
    """A run: its first, second and last batch, as far as these are several, and of its last five but the first what is remembered."""

    epoch: int
    is_transactional: bool
    batches: int
    records: int
    edges: list[BoundaryBatch]
    retained: list[RetainedBatch]
    more: Callable[[], tuple[Row, list[BoundaryBatch]]]
    """Its row, and its first batches, up to five."""


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
        put(self.table.rows, slots, columns.before)
        first = first_unhealthy(columns, sequences_count=self.sequences_count, holes_are_normal=self.holes_are_normal)
        if self._awaiting or self._restarted:
            followed = self._awaiting.keys() | self._restarted.keys()
            awaited = np.isin(merged.producer_ids, np.fromiter(followed, dtype=np.int64, count=len(followed)))
            first[awaited] = merged.starts[awaited]
        unhealthy = first <= merged.ends
        if unhealthy.any():
            before = np.arange(len(merged.ids)) < np.repeat(first, merged.ends + 1 - merged.starts)
            begins_healthy = first > merged.starts
            self._advance(
                TransitionColumns(merged.where(before), boundary, pick(columns.before, begins_healthy)),
                slots[begins_healthy],
            )
            self._audit(merged.where(~before), boundary, slots[unhealthy])
        else:
            self._advance(columns, slots)

    def _advance(self, columns: TransitionColumns, slots: NDArray[np.int32]) -> None:
        """Take producers whose rows are all healthy."""
        if not self.one_leader_epoch:
            self.leader_changes.feed(columns)
        advance(columns)
        put(self.table.rows, slots, columns.before)

    def _audit(self, merged: Merged, boundary: Columns, slots: NDArray[np.int32]) -> None:
        """Take producers batch by batch."""
        runs = _runs(merged.runs, boundary)
        for first in range(0, len(slots), _AT_ONCE):
            chosen = slots[first : first + _AT_ONCE]
            states = dict(zip(chosen.tolist(), self.table.load(chosen), strict=True))
            for group, (slot, state) in enumerate(states.items(), first):
                states[slot] = self._audit_producer(state, merged, group, runs)
            self.table.store({slot: state for slot, state in states.items() if state is not None})

    def finish(self) -> None:
        """The log has ended: report what only its end decides."""
        rows = self.table.rows
        slots = np.flatnonzero(rows["flags"] & ABORT_BUMPED != 0)
        for producer_id, state in zip(rows["producer_id"][slots].tolist(), self.table.load(slots), strict=True):
            if state is not None:
                self._keep(audit_end(state, producer_id))

    def _audit_producer(
        self, state: ProducerAuditState | None, merged: Merged, group: int, runs: Iterator[_Run]
    ) -> ProducerAuditState | None:
        """Audit the rows of one group, and return the state after them; `runs` has its runs next."""
        producer = Producer(int(merged.producer_ids[group]), self.sequences_count)
        for is_marker, number in merged.rows_of(group):
            if is_marker:
                state, observations = audit_marker(state, EndTxnMarker._make(merged.markers.item(number)))
                self._keep(observations)
            else:
                state = self._audit_run(state, next(runs), producer)
        return state

    def _audit_run(self, state: ProducerAuditState | None, run: _Run, producer: Producer) -> ProducerAuditState | None:
        """Audit batches until one is adopted: the others go on in sequence, by construction."""
        records = run.records
        for taken, batch in enumerate(self._batches(run), 1):
            state = self._audit_batch(state, batch, run, producer)
            records -= batch.record_count
            if state.last is batch:
                return state if taken == run.batches else self._continue_run(state, run, taken, records, producer)
        return state

    def _batches(self, run: _Run) -> Iterator[BoundaryBatch]:
        yield from run.edges[:2]
        if run.batches > 2:
            row, head = run.more()
            yield from head[2:]
            if run.batches > len(head):
                yield from islice(self.fetch_run(row), len(head), None)

    def _audit_batch(
        self, state: ProducerAuditState | None, batch: BoundaryBatch, run: _Run, producer: Producer
    ) -> ProducerAuditState:
        self._follow(producer.producer_id, batch, run.epoch)
        if not self.one_leader_epoch:
            self.leader_changes.add(state, batch, run.epoch)
        state, observations = audit_batch(state, batch, run.epoch, run.is_transactional, producer)
        self._keep(observations)
        return state

    def _continue_run(
        self, state: ProducerAuditState, run: _Run, taken: int, records: int, producer: Producer
    ) -> ProducerAuditState:
        """Take the rest of a run, of so many records, after its batch number `taken`."""
        assert state.last is not None
        restarted = producer.producer_id in self._restarted
        if restarted or producer.producer_id in self._awaiting:
            for batch in run.edges[1:2] if taken == 1 and not restarted else run.more()[1][taken:]:
                self._follow(producer.producer_id, batch, run.epoch)
        newest = run.edges[-1]
        self.leader_changes.add_run(state.last, newest)
        rest = run.retained[-min(run.batches - taken, NUM_BATCHES_TO_RETAIN) :]
        return replace(
            state,
            last_sequence=newest.last_sequence,
            window=(*state.window, *rest)[-NUM_BATCHES_TO_RETAIN:],
            last=newest,
            last_timestamp=newest.max_timestamp,
            txn_records=state.txn_records + (records if run.is_transactional else 0),
        )

    def _follow(self, producer_id: int, batch: BoundaryBatch, epoch: int) -> None:
        """Note the batch as the next one, and compare its time with those since its producer's sequence started again."""
        for index in self._awaiting.pop(producer_id, ()):
            self.observations[index] = replace(self.observations[index], following=batch, following_epoch=epoch)
        restarted = self._restarted.pop(producer_id, None)
        if restarted is None:
            return
        index, left, newest = restarted
        if 0 <= batch.max_timestamp < newest:
            self.observations[index] = replace(self.observations[index], times_go_back=True)
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


def _runs(runs: Columns, boundary: Columns) -> Iterator[_Run]:
    """Yield the runs, made of the rows of many at a time."""
    for first in range(0, len(runs), _AT_ONCE):
        own = runs[first : first + _AT_ONCE]
        starts, counts = own["boundary_start"], own["boundary_count"]
        edges, retained = np.minimum(counts, 3), np.minimum(counts - 1, NUM_BATCHES_TO_RETAIN)
        at, (edge_ends, kept_ends) = _ranges(starts, edges), map(np.cumsum, (edges, retained))
        at[edge_ends - 1] = starts + counts - 1
        batches = list(_made(BoundaryBatch, boundary, at))
        behind = list(_made(RetainedBatch, boundary, _ranges(starts + counts - retained, retained)))
        names = ("producer_epoch", "is_transactional", "batches", "records")
        places = (edge_ends - edges, edge_ends, kept_ends - retained, kept_ends)
        columns = (each.tolist() for each in (*(own[name] for name in names), *places))
        for number, (*fields, edge, after, kept, end) in enumerate(zip(*columns, strict=True)):
            more = partial(_more, own, boundary, number)
            yield _Run._make((*fields, batches[edge:after], behind[kept:end], more))


def _more(runs: Columns, boundary: Columns, number: int) -> tuple[Row, list[BoundaryBatch]]:
    row = runs[number]
    start, count = row["boundary_start"], row["head_count"]
    return row, list(_made(BoundaryBatch, boundary, np.arange(start, start + count)))


def _made(kind: type[_Row], rows: Columns, chosen: NDArray[np.intp]) -> Iterator[_Row]:
    """Make tuples of these rows, which have the fields of `kind`, and more."""
    values = zip(*(rows[name].take(chosen).tolist() for name in kind.__annotations__), strict=True)
    return map(partial(tuple.__new__, kind), values)


def _ranges(starts: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.intp]:
    """Return `counts[i]` consecutive numbers from each `starts[i]`, concatenated."""
    ends = np.cumsum(counts, dtype=np.intp)
    return np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)
