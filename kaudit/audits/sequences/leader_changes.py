"""How producers came through changes of the partition's leader: in sequence, or with a new epoch of their own.

If a new leader lacks the end of the old one's log, it refuses what a producer sends next with OUT_OF_ORDER_SEQUENCE_NUMBER,
and a client of 2.5 or later raises its epoch (KIP-360). A producer that goes on in sequence lost nothing before its next batch.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from msgspec import Struct, field

from kaudit.audits.sequences.vectorised_transitions import Mask, Numbers, TransitionColumns
from kaudit.broker.producer_state.rules import in_sequence, offsets_missing
from kaudit.model.batch_fields import NO_LEADER_EPOCH, NO_SEQUENCE
from kaudit.model.leader_epochs import LeaderChange
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_state import ProducerAuditState
from kaudit.reading.rows import Rows

_MAX_LEADER_EPOCHS = 100_000
"""Leader epochs counted of one partition, so that a ruined log cannot exhaust memory."""


_EPOCH_BITS = 32
"""Leader epochs are int32: two of them, from 0 up, share a number of 64 bits."""


class LeaderChangeCounts(Struct):
    """How many producers wrote on in sequence across the beginning of each leader epoch."""

    _steps: Counter[int] = field(default_factory=Counter)
    """By leader epoch: how much higher the number is than for the one before it."""

    def feed(self, columns: TransitionColumns) -> None:
        """Take producers that are healthy; `columns.before` still is the state in front of their rows."""
        runs = columns.merged.runs
        begin, end = runs["first_leader_epoch"], runs["last_leader_epoch"]
        before = columns.merged.before_runs(end, columns.before["last"]["leader_epoch"])
        chosen = np.flatnonzero((before != end) | (begin != end))
        if not len(chosen):
            return
        begin, end, before = begin.take(chosen), end.take(chosen), before.take(chosen)
        begin = np.where(_goes_on(columns, chosen), before, begin)
        rising = (begin > NO_LEADER_EPOCH) & (begin < end)
        pairs = (begin.astype(np.int64) << _EPOCH_BITS | end).compress(rising)
        for pair, producers in zip(*np.unique(pairs, return_counts=True), strict=True):
            self._count(int(pair) >> _EPOCH_BITS, int(pair) & ((1 << _EPOCH_BITS) - 1), int(producers))

    def add(self, state: ProducerAuditState | None, batch: BoundaryBatch, epoch: int) -> None:
        """Take one batch of a producer, with its state in front of it."""
        if state is None or state.last is None or state.epoch != epoch or state.last_sequence == NO_SEQUENCE:
            return
        if in_sequence(state.last_sequence, batch.first_sequence):
            self.add_run(state.last, batch)

    def add_run(self, first: BoundaryBatch, last: BoundaryBatch) -> None:
        """Take two batches of one run of a producer, or of runs that go on in sequence."""
        if NO_LEADER_EPOCH < first.leader_epoch < last.leader_epoch:
            self._count(first.leader_epoch, last.leader_epoch, 1)

    def across(self, leader_epoch: int) -> int:
        """Return how many producers wrote on in sequence across the beginning of this leader epoch."""
        return sum(step for epoch, step in self._steps.items() if epoch <= leader_epoch)

    def _count(self, before: int, after: int, producers: int) -> None:
        if len(self._steps) < _MAX_LEADER_EPOCHS:
            self._steps[before + 1] += producers
            self._steps[after + 1] -= producers


def _goes_on(columns: TransitionColumns, runs: Numbers) -> Mask:
    """Return for each of these runs whether it has the next sequence of its producer's epoch."""
    merged = columns.merged
    remembered = columns.remembered_at(runs, merged.groups_of_runs(runs))
    same_epoch = merged.runs["producer_epoch"].take(runs) == columns.previous_epoch.take(merged.run_rows.take(runs))
    next_one = in_sequence(remembered, merged.runs["first_sequence"].take(runs))
    goes_on: Mask = same_epoch & (remembered != NO_SEQUENCE) & next_one
    return goes_on


def leader_changes(
    observations: Iterable[Observation], epoch_starts: Rows, counts: LeaderChangeCounts, *, compacted: bool
) -> list[LeaderChange]:
    """Find the changes of leader at which clients raised their epochs; `epoch_starts` are rows of LEADER_EPOCH_START.

    In a compacted log only where all between a client's two batches is there: its last batch before may be gone.
    """
    bumps: dict[int, list[Observation]] = {}
    for observation in observations:
        if observation.kind is not ObservationKind.CLIENT_BUMP or not observation.is_after_leader_change:
            continue
        if not (compacted and _has_holes(observation)):
            start = int(np.searchsorted(epoch_starts["base_offset"], observation.offset, side="right")) - 1
            bumps.setdefault(start, []).append(observation)
    return [
        LeaderChange(
            int(epoch_starts["leader_epoch"][start]),
            int(epoch_starts["base_offset"][start]),
            found,
            counts.across(int(epoch_starts["leader_epoch"][start])),
        )
        for start, found in bumps.items()
    ]


def _has_holes(bump: Observation) -> bool:
    """Whether offsets are missing between the producer's batch before the bump and the one after it."""
    assert bump.remembered is not None
    last, first = bump.remembered.last, bump.batch
    assert last is not None
    assert first is not None
    return offsets_missing(first.base_offset, first.present_before, last.base_offset, last.present_before) > 0
