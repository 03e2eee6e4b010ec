"""One replica's log: its batches, leader epochs, segments, producer state. Source: UnifiedLog, LeaderEpochFileCache.

Producer state follows kaudit/broker/partition; this adds what lies on disk around it.
"""

from bisect import bisect_left
from typing import NamedTuple

from kaudit.broker.partition.replica import Replica, Tampering
from kaudit.broker.producer_state.producer_state_entry import UNKNOWN, DataBatch, MarkerBatch, ProducerStateEntry
from kaudit.broker.producer_state.producer_state_manager import ProducerStateManager
from kaudit.broker.producer_state.rebuild import snapshot_entry
from kaudit.broker.releases.profile import Profile
from kaudit.model.leader_epochs import EpochEntry
from kaudit.model.side_files import SnapshotEntry
from kaudit.simulate.producer_batch import ProducerBatch


class StoredBatch(NamedTuple):
    """A batch as every replica that has it holds it; `data` is as sent, `sent` None where no producer sent it."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    max_timestamp: int
    data: bytes
    state: DataBatch | MarkerBatch | None
    sent: ProducerBatch | None


class LogConfig(NamedTuple):
    """The release and the configuration of a log: sizes in bytes, times in ms."""

    profile: Profile
    segment_bytes: int
    expiration_ms: int
    sweep_ms: int


class ReplicaLog:
    """A partition's log on one broker."""

    def __init__(self, config: LogConfig) -> None:
        self._config = config
        self.memory = Replica(config.profile, config.expiration_ms, config.sweep_ms)
        self.batches: list[StoredBatch] = []
        self.epochs: list[EpochEntry] = []
        self.high_watermark = 0
        self.segments: list[int] = [0]
        """Base offsets of the segments, ascending."""
        self.snapshots: dict[int, list[SnapshotEntry]] = {}
        """Producer snapshots on disk by offset."""
        self._segment_size = 0

    # -- offsets and epochs ------------------------------------------------------------------------------------------
    @property
    def log_end(self) -> int:
        """Offset of the next record."""
        return self.memory.log_end

    @property
    def log_start(self) -> int:
        """Offset of the first record that was not deleted."""
        return self.memory.log_start

    @property
    def last_epoch(self) -> int:
        """Leader epoch of the newest entry, -1 without any."""
        return self.epochs[-1].epoch if self.epochs else -1

    def begin_epoch(self, epoch: int, start: int) -> None:
        """Begin a leader epoch at an offset, unless it has begun here. Source: LeaderEpochFileCache.assign."""
        if epoch > self.last_epoch:
            self.epochs = [entry for entry in self.epochs if entry.start_offset < start]
            self.epochs.append(EpochEntry(epoch, start))

    def drop_empty_epochs(self) -> None:
        """Forget leader epochs that began at the end of the log: nothing was written in them. Source: UnifiedLog.truncateTo."""
        self.epochs = [entry for entry in self.epochs if entry.start_offset < self.log_end]

    def position(self, offset: int) -> int:
        """Return the index of the first batch that ends at `offset` or later."""
        return bisect_left(self.batches, offset, key=lambda batch: batch.last_offset)

    def holds(self, batch: StoredBatch) -> bool:
        """Return whether this very batch lies in the log: replicas share the batches that they copy."""
        index = self.position(batch.base_offset)
        return index < len(self.batches) and self.batches[index] is batch

    # -- writing -----------------------------------------------------------------------------------------------------
    def store(self, batch: StoredBatch, producer_before: ProducerStateEntry) -> None:
        """Write a batch that is in memory already; `producer_before` is its producer's state before it."""
        size = len(batch.data)
        if self._segment_size and self._segment_size + size > self._config.segment_bytes:
            self._roll(batch, producer_before)
        self._segment_size += size
        self.batches.append(batch)
        self.begin_epoch(batch.leader_epoch, batch.base_offset)

    def _roll(self, following: StoredBatch, producer_before: ProducerStateEntry) -> None:
        """Begin a segment; the state before it is written to a snapshot. Source: UnifiedLog.roll."""
        base = following.base_offset
        self.segments.append(base)
        self._segment_size = 0
        before = ProducerStateManager(self._config.profile)
        before.states = dict(self.memory.producers.states)
        if following.state is not None:
            if producer_before is UNKNOWN:
                before.states.pop(following.state.producer_id, None)
            else:
                before.states[following.state.producer_id] = producer_before
        self._snapshot(base, before)

    def _snapshot(self, offset: int, producers: ProducerStateManager) -> None:
        self.snapshots[offset] = [snapshot_entry(producer_id, state) for producer_id, state in producers.states.items()]
        self.memory.snapshot_taken(offset)

    def follow(self, batches: list[StoredBatch]) -> None:
        """Append what was fetched from the leader."""
        memory = self.memory
        for batch in batches:
            state = batch.state
            before = UNKNOWN if state is None else memory.state_of(state.producer_id)
            memory.follow(() if state is None else (state,), batch.last_offset + 1)
            self.store(batch, before)

    # -- losing ------------------------------------------------------------------------------------------------------
    def truncate(self, end: int, now: int) -> None:
        """Cut the log at `end`; `now` is the wall clock, for what is too old to be remembered."""
        if end >= self.log_end:
            return
        keep = self.position(end)
        del self.batches[keep:]
        self.epochs = [entry for entry in self.epochs if entry.start_offset < end]
        self.segments = [base for base in self.segments if base <= end]
        self.snapshots = {offset: entries for offset, entries in self.snapshots.items() if offset <= end}
        base = self.segments[-1]
        self._segment_size = sum(len(batch.data) for batch in self.batches[self.position(base) :])
        self.memory.truncate_to(end, now)
        self.high_watermark = min(self.high_watermark, end)

    def delete_records(self, before_offset: int, now: int) -> None:
        """Move the log start up."""
        self.memory.delete_records(before_offset, now, None)

    # -- stopping and starting ---------------------------------------------------------------------------------------
    def stop_cleanly(self) -> None:
        """Write what a clean shutdown writes."""
        self._snapshot(self.log_end, self.memory.producers)

    def start(self, now: int, *, clean: bool, without_snapshots: bool) -> None:
        """Load the log. `without_snapshots`: the snapshot files were deleted while the broker was down."""
        deleted = frozenset(self.snapshots) | {self.log_end} if without_snapshots else frozenset()
        self.memory.restart(now, [], Tampering(deleted_snapshots=frozenset(deleted)), clean=clean)
        bases = set() if without_snapshots else {base for base in self.segments if base > self.log_start}
        self.snapshots = {offset: entries for offset, entries in self.snapshots.items() if offset in bases}
        for base in self.snapshots:
            self.memory.snapshot_taken(base)
        self._snapshot(self.log_end, self.memory.producers)
