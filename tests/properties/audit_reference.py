"""What an audit of one partition has to observe, batch by batch, in plain Python: it shares no rule with kaudit.

The rules are Kafka's (ProducerAppendInfo and ProducerStateEntry of 3.x: checkProducerEpoch, checkSequence, inSequence,
findDuplicateBatch, appendDataBatch, appendEndTxnMarker), with what docs/architecture.md, "State", says about a log on disk:
after a gap, a new epoch, a restart or an unknown start the audit goes on from the new batch; of a stale, repeated or
overlapping batch it adopts only what lies beyond the last sequence; transactions follow whatever is on disk.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import crc32c

from tests.logs import CONTROL, TRANSACTIONAL, WRAP, Batch

ABORT, COMMIT = 0, 1
NO_SEQUENCE = -1
DAY_MS = 86_400_000  # producer.id.expiration.ms
RETAINED = 5  # ProducerStateEntry.NUM_BATCHES_TO_RETAIN
IN_FLIGHT = 5  # max.in.flight.requests.per.connection of an idempotent producer
FEW_EPOCHS_LEFT = 32_000


@dataclass
class State:
    """What is remembered of a producer id. None: nothing."""

    epoch: int
    last_sequence: int | None = None
    window: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Offset, first and last sequence, CRC of the newest batches of the epoch."""
    last: "Placed | None" = None
    start_crc: int | None = None
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction: tuple[int, int, int] | None = None
    """Offset, timestamp and position of the batch that opened it."""
    transaction_records: int = 0
    marker: tuple[int, int] | None = None
    """Offset and timestamp of the last one."""
    said: set[str] = field(default_factory=set)
    commits_raise: bool = False
    abort_raised: bool = False
    marked: bool = False
    opened_after_marker: bool = False
    rebuilt: tuple[int, int] = (-1, -1)
    """Epoch and coordinator epoch of a broker that read the log: those of the newest batch and marker, even lower ones."""


@dataclass(frozen=True)
class Placed:
    """A batch as it lies in the log."""

    offset: int
    last_offset: int
    first_sequence: int
    last_sequence: int
    records: int
    crc: int
    timestamp: int
    offsets_before: int
    position: int
    size: int
    leader_epoch: int


@dataclass(frozen=True)
class Written:
    """A batch and whose it is. `control`: type and coordinator epoch of an end marker."""

    producer_id: int
    epoch: int
    transactional: bool
    control: tuple[int, int] | None
    placed: Placed


@dataclass
class Observed:
    """What one batch or marker shows, the state before it, and the producer's next batch."""

    kind: str
    producer_id: int
    epoch: int
    offset: int
    transactional: bool
    before: State | None
    original: int | None = None
    missing_sequences: int = 0
    missing_offsets: int = 0
    explained: bool = False
    following: tuple[int, int] | None = None
    times_go_back: bool = False


class Reference:
    """Takes a log's batches one by one."""

    def __init__(self, *, sequences_count: bool = True) -> None:
        self.states: dict[int, State] = {}
        self.observed: list[Observed] = []
        self.carried_on: dict[int, int] = {}
        """By leader epoch: producers that went on in sequence across its beginning."""
        self._sequences_count = sequences_count
        self._unfollowed: dict[int, list[Observed]] = {}
        self._restarted: dict[int, tuple[Observed, list[int]]] = {}

    def read(self, batches: Iterable[Batch]) -> "Reference":
        """Audit a whole log."""
        offsets = position = 0
        written = []
        for batch in batches:
            content = batch.encode()
            placed = Placed(
                batch.base_offset,
                batch.last_offset,
                batch.sequence,
                (batch.sequence + batch.count - 1) % WRAP if batch.sequence >= 0 else batch.sequence,
                batch.count if batch.kept is None else batch.kept,
                crc32c.crc32c(content[21:]),
                batch.timestamp,
                offsets,
                position,
                len(content),
                batch.leader_epoch,
            )
            control = (batch.control or (ABORT, -1)) if batch.attributes & CONTROL else None
            written.append(
                Written(batch.producer_id, batch.epoch, bool(batch.attributes & TRANSACTIONAL), control, placed)
            )
            offsets += batch.count
            position += len(content)
        return self.audit(written)

    def audit(self, batches: Iterable[Written]) -> "Reference":
        """As `read`, of batches that lie in a log already."""
        for batch in batches:
            if batch.producer_id >= 0 and batch.control is not None:
                self._mark(batch, *batch.control)
            elif batch.producer_id >= 0:
                self._append(batch)
        for producer_id, state in self.states.items():
            if state.abort_raised and not state.commits_raise:
                assert state.marker is not None
                self._observe(
                    "epoch/timeout-abort", producer_id, state.epoch, state.marker[0], state, transactional=True
                )
        return self

    def _observe(
        self, kind: str, producer_id: int, epoch: int, offset: int, before: State | None, *, transactional: bool
    ) -> Observed:
        found = Observed(kind, producer_id, epoch, offset, transactional, before)
        self.observed.append(found)
        return found

    def _mark(self, batch: Written, kind: int, coordinator_epoch: int) -> None:
        placed, before = batch.placed, _copy(self.states.get(batch.producer_id))
        where = (batch.producer_id, batch.epoch, placed.offset)
        if before is not None and coordinator_epoch < before.coordinator_epoch and kind in (ABORT, COMMIT):
            self._observe("epoch/coordinator-epoch-regression", *where, before, transactional=True)
        if before is not None and batch.epoch < before.epoch:
            self._observe("epoch/stale-marker", *where, before, transactional=True)
        state = self.states.setdefault(batch.producer_id, State(batch.epoch))
        raised = batch.epoch - state.epoch
        state.marked = raised == 0 and state.last_sequence is not None
        state.commits_raise |= raised == 1 and kind != ABORT
        state.abort_raised = raised > 0 and kind == ABORT
        if raised > 0:
            _begin_epoch(state, batch.epoch)
        state.coordinator_epoch = max(state.coordinator_epoch, coordinator_epoch)
        state.rebuilt = (batch.epoch, coordinator_epoch)
        state.last_timestamp = placed.timestamp
        state.transaction, state.transaction_records, state.opened_after_marker = None, 0, False
        state.marker = (placed.offset, placed.timestamp)
        state.said.discard("transaction/outside-transaction")

    def _append(self, batch: Written) -> None:
        producer_id, transactional, placed = batch.producer_id, batch.transactional, batch.placed
        self._follow(producer_id, placed, batch.epoch)
        before = _copy(self.states.get(producer_id))
        state = self.states.setdefault(producer_id, State(batch.epoch))
        self._count_leaders(state, batch)

        def observe(kind: str) -> Observed:
            found = self._observe(kind, producer_id, batch.epoch, placed.offset, before, transactional=transactional)
            self._unfollowed.setdefault(producer_id, []).append(found)
            return found

        silence = "state/went-on"
        said = {
            "epoch/nearly-exhausted": batch.epoch >= FEW_EPOCHS_LEFT,
            "transaction/outside-transaction": state.transaction is not None and not transactional,
            silence: self._sequences_count and _is_late(state, batch),
        }
        for kind, happened in said.items():
            if happened and kind not in state.said:
                state.said.add(kind)
                observe(kind)
        stale = batch.epoch < state.epoch
        if stale:
            observe("epoch/stale-batch")
        elif batch.epoch > state.epoch:
            if self._sequences_count and placed.first_sequence > 0:
                _say_missing(observe("epoch/bump-nonzero"), placed.first_sequence, state, placed)
            elif not state.commits_raise or (state.abort_raised and batch.epoch == state.epoch + 1):
                observe("epoch/restart" if transactional else "epoch/client-bump")
            _begin_epoch(state, batch.epoch)
            state.marked = False
            _adopt(state, placed)
        else:
            self._check_sequence(state, before, placed, producer_id, observe)
        state.last_timestamp = placed.timestamp
        state.rebuilt = (batch.epoch, state.rebuilt[1])
        state.abort_raised &= stale
        if transactional and state.transaction is not None:
            state.transaction_records += placed.records
        elif transactional:
            state.transaction = (placed.offset, placed.timestamp, placed.position)
            state.transaction_records = placed.records
            state.opened_after_marker = state.marked and state.epoch == batch.epoch

    def _check_sequence(self, state: State, before: State | None, placed: Placed, producer_id: int, observe) -> None:
        """A batch of the current epoch."""
        first, last = placed.first_sequence, state.last_sequence
        expected = 0 if last is None else (last + 1) % WRAP
        ahead = (first - expected) % WRAP
        if not self._sequences_count or first < 0 or first == expected:
            _adopt(state, placed)
        elif last is None:
            kind = "sequence/unknown-start" if before is None else "sequence/after-marker"
            _say_missing(observe(kind), first, state, placed)
            _adopt(state, placed)
        else:
            known = [each for each in state.window if each[1:3] == (first, placed.last_sequence)]
            original = known[-1] if known else None
            if original is not None and original[3] == placed.crc:
                observe("sequence/exact").original = original[0]
            elif first == 0 and placed.crc != state.start_crc:
                if _offsets_missing(state, placed) >= ahead:
                    _say_missing(observe("sequence/gap"), ahead, state, placed)
                else:
                    found = observe("sequence/restart")
                    found.original = None if original is None else original[0]
                    self._restarted[producer_id] = (found, [placed.timestamp])
                    _begin_epoch(state, state.epoch)
                _adopt(state, placed)
            elif original is not None:
                observe("sequence/same-sequences").original = original[0]
            elif 0 < ahead < WRAP // 2:
                _say_missing(observe("sequence/gap"), ahead, state, placed)
                _adopt(state, placed)
            elif 0 < (placed.last_sequence - last) % WRAP < WRAP // 2:
                observe("sequence/overlap")
                _adopt(state, placed)
            else:
                oldest = state.window[0][1]
                behind = (placed.last_sequence - oldest) % WRAP >= WRAP // 2
                observe("sequence/behind-window" if behind else "sequence/inside")

    def _follow(self, producer_id: int, placed: Placed, epoch: int) -> None:
        """Record in what was observed of this producer which batch came next, and whether times go back after a restart."""
        for found in self._unfollowed.pop(producer_id, []):
            found.following = (placed.offset, epoch)
        if producer_id in self._restarted:
            found, times = self._restarted[producer_id]
            found.times_go_back = 0 <= placed.timestamp < times[-1]
            times.append(placed.timestamp)
            if found.times_go_back or len(times) == IN_FLIGHT:
                del self._restarted[producer_id]

    def _count_leaders(self, state: State, batch: Written) -> None:
        placed, last = batch.placed, state.last
        if last is None or state.epoch != batch.epoch or state.last_sequence is None or state.last_sequence < 0:
            return
        if placed.first_sequence == (state.last_sequence + 1) % WRAP:
            for epoch in range(last.leader_epoch + 1, placed.leader_epoch + 1):
                self.carried_on[epoch] = self.carried_on.get(epoch, 0) + 1


def _is_late(state: State, batch: Written) -> bool:
    """The next batch, so late that brokers have forgotten the one before; an open transaction is not forgotten."""
    placed = batch.placed
    if state.last is None or state.last_sequence is None or state.transaction is not None or batch.epoch != state.epoch:
        return False
    if placed.first_sequence != (state.last_sequence + 1) % WRAP:
        return False
    return placed.timestamp - max(state.last_timestamp, state.last.timestamp) >= DAY_MS


def _copy(state: State | None) -> State | None:
    return None if state is None else replace(state, window=[*state.window], said={*state.said})


def _begin_epoch(state: State, epoch: int) -> None:
    state.epoch, state.last_sequence, state.window, state.start_crc = epoch, None, [], None


def _adopt(state: State, placed: Placed) -> None:
    if placed.first_sequence == 0:
        state.start_crc = placed.crc
    state.last_sequence = None if placed.last_sequence == NO_SEQUENCE else placed.last_sequence
    state.last = placed
    state.window = [*state.window, (placed.offset, placed.first_sequence, placed.last_sequence, placed.crc)][-RETAINED:]


def _offsets_missing(state: State, placed: Placed) -> int:
    """Offsets that no batch covers, since the producer's last batch or the beginning of the log."""
    if state.last is None:
        return placed.offset - placed.offsets_before
    return placed.offset - state.last.offset - (placed.offsets_before - state.last.offsets_before)


def _say_missing(found: Observed, sequences: int, state: State, placed: Placed) -> None:
    found.missing_sequences, found.missing_offsets = sequences, _offsets_missing(state, placed)
    found.explained = 0 < sequences <= found.missing_offsets
