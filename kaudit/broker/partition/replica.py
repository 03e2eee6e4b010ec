"""One replica of a partition: offsets, producer states, snapshots, restarts. Used by kaudit replay and by simulated brokers.

Source: UnifiedLog (Log before 3.0), LogLoader, ProducerStateManager.

The batches of one partition's log, as far as producer state can be rebuilt from any offset.

Packed, since attempts may be any number: 47 bytes a batch instead of a Python object.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from kaudit.broker.producer_state.append_result import AppendResult, Origin, Outcome
from kaudit.broker.producer_state.producer_append_info import (
    TRANSACTION_VERSION_2,
    validate_append,
    validate_end_txn_marker,
)
from kaudit.broker.producer_state.producer_state_entry import (
    UNKNOWN,
    DataBatch,
    MarkerBatch,
    ProducerStateEntry,
    VerificationStateEntry,
)
from kaudit.broker.producer_state.producer_state_manager import AbortedTransaction, ProducerStateManager
from kaudit.broker.releases.profile import Profile

_ROW = struct.Struct("<qqqhiiqBi")
_pack = _ROW.pack
# producer id, base offset, last offset, epoch, base sequence, last sequence, timestamp, kind, coordinator epoch
_PLAIN, _TRANSACTIONAL, _ABORT, _COMMIT = range(4)
_NO_COORDINATOR_EPOCH = -1


class History:
    """Batches with a producer id in offset order; offsets of others need not be known."""

    def __init__(self) -> None:
        self._rows = bytearray()

    def __len__(self) -> int:
        return len(self._rows) // _ROW.size

    def add_data(self, batch: DataBatch) -> None:
        """Append a batch of records."""
        self._rows += _pack(
            batch.producer_id,
            batch.base_offset,
            batch.last_offset,
            batch.producer_epoch,
            batch.base_sequence,
            batch.last_sequence,
            batch.max_timestamp,
            _TRANSACTIONAL if batch.is_transactional else _PLAIN,
            _NO_COORDINATOR_EPOCH,
        )

    def add_marker(self, marker: MarkerBatch) -> None:
        """Append an end of transaction marker."""
        offset, kind = marker.offset, _COMMIT if marker.commit else _ABORT
        self._rows += _pack(
            marker.producer_id,
            offset,
            offset,
            marker.producer_epoch,
            0,
            0,
            marker.timestamp,
            kind,
            marker.coordinator_epoch,
        )

    def truncate(self, offset: int) -> None:
        """Forget every batch that reaches `offset` or beyond."""
        del self._rows[self._first_reaching(offset) * _ROW.size :]

    def between(self, start: int, end: int) -> Iterator[DataBatch | MarkerBatch]:
        """Yield what ends at `start` or later and before `end`, in order; a batch that straddles `start` is whole."""
        for at in range(self._first_reaching(start) * _ROW.size, self._first_reaching(end) * _ROW.size, _ROW.size):
            pid, base, last, epoch, base_sequence, last_sequence, timestamp, kind, coordinator = _ROW.unpack_from(
                self._rows, at
            )
            if kind in (_ABORT, _COMMIT):
                yield MarkerBatch(pid, epoch, coordinator, base, timestamp, kind == _COMMIT)
            else:
                yield DataBatch(pid, epoch, base_sequence, last_sequence, base, last, timestamp, kind == _TRANSACTIONAL)

    def base_of(self, offset: int) -> int:
        """Return the base offset of the batch that holds `offset`; `offset` itself where that is not known."""
        index = self._first_reaching(offset)
        base = _ROW.unpack_from(self._rows, index * _ROW.size)[1] if index < len(self) else offset
        return int(min(base, offset))

    def _first_reaching(self, offset: int) -> int:
        """Index of the first batch whose last offset is `offset` or more."""
        rows = self._rows
        return bisect_left(range(len(self)), offset, key=lambda index: _ROW.unpack_from(rows, index * _ROW.size)[2])


_APPENDED, _CLIENT, _COORDINATOR = Outcome.APPENDED, Origin.CLIENT, Origin.COORDINATOR
"""Looking a member up in its Enum costs as much as making a state does."""
SNAPSHOT_SUFFIX = ".snapshot"
_NEVER, _ALWAYS = -(2**63) - 1, 2**63
"""Before and after every clock."""


class Tampering(Struct, frozen=True):
    """Changes to a partition's files while the broker was down."""

    truncated_to_offset: int | None = None
    corrupted_batch_offset: int | None = None
    torn_batch_offset: int | None = None
    deleted_snapshots: frozenset[int] = frozenset()
    corrupted_snapshots: frozenset[int] = frozenset()


class Replica:
    """One broker's replica of a partition. Times are ms; offsets 0..2^63-1.

    Replicas of one log may share its `history`: what lies beyond a replica's own log end is not its own yet.
    """

    def __init__(self, profile: Profile, expiration_ms: int, sweep_ms: int, history: History | None = None) -> None:
        self._profile = profile
        self._expiration_ms = expiration_ms
        self._sweep_ms = sweep_ms
        self.next_sweep: int | None = None
        """When the periodic check for idle producers runs next (ms), None before the first attempt."""
        self.log_start = 0
        self.log_end = 0
        self.producers = ProducerStateManager(profile)
        self.verifications: dict[int, VerificationStateEntry] = {}
        self._history = History() if history is None else history
        self._checkpointed_log_start = 0
        self._log_start_moved_at = _NEVER
        self.snapshots: set[int] = set()
        """Offsets of the producer snapshots on disk."""

    # -- appends -----------------------------------------------------------------------------------------------------
    def append(self, batch: DataBatch, origin: Origin = _CLIENT) -> tuple[ProducerStateEntry, AppendResult]:
        """Check a batch of a client or coordinator and, when it passes, write it; return the producer's state afterwards."""
        producer_id = batch.producer_id
        states = self.producers.states
        verification = None
        if self.verifications and self._profile.verification_remembers_lowest_sequence:
            verification = self.verifications.get(producer_id)
        after, result = validate_append(states.get(producer_id, UNKNOWN), batch, self._profile, origin, verification)
        if result.outcome is _APPENDED:
            states[producer_id] = after
            if batch.is_transactional:
                self.producers.ongoing[after.current_txn_first_offset] = producer_id
                if verification is not None:
                    del self.verifications[producer_id]
            self._history.add_data(batch)
            self.log_end = batch.last_offset + 1
        elif after is not result.state:
            states[producer_id] = after  # see Switches.refused_batch_is_remembered
        return after, result

    def state_of(self, producer_id: int) -> ProducerStateEntry:
        """Return what is remembered of a producer now."""
        return self.producers.get(producer_id)

    def never_replicates(self, batch: DataBatch) -> bool:
        """Return whether the remembered batch that `batch` repeats lies beyond the log's end: it was never written."""
        known = self.producers.get(batch.producer_id).batches
        return any(old.last_sequence == batch.last_sequence and old.last_offset >= self.log_end for old in known)

    def append_marker(self, marker: MarkerBatch) -> AppendResult:
        """Check a marker at the log's end and, when it passes, write it."""
        state = self.producers.get(marker.producer_id)
        after, result, completed = validate_end_txn_marker(state, marker, self._profile, _COORDINATOR)
        if result.outcome is _APPENDED:
            self.producers.put(marker.producer_id, after)
            self.producers.complete(completed)
            self._history.add_marker(marker)
            self.log_end = marker.offset + 1
            self._end_verification(marker)
        return result

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether a batch of this producer needs no verification."""
        state = self.producers.get(producer_id)
        if self._profile.verification_is_per_epoch and state.epoch != producer_epoch:
            return False
        return state.in_transaction

    def is_fenced(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether a higher epoch of the producer is remembered."""
        return producer_id in self.producers.states and producer_epoch < self.producers.states[producer_id].epoch

    def start_verification(self, first: tuple[int, int, int], now: int, transaction_version: int) -> None:
        """Remember that the coordinator is asked about a batch: its producer id, epoch and first sequence."""
        producer_id, epoch, sequence = first
        known = self.verifications.get(producer_id)
        self.verifications[producer_id] = (
            VerificationStateEntry(sequence, epoch, now, transaction_version)
            if known is None
            else known.lowered(sequence, epoch)
        )

    def _end_verification(self, marker: MarkerBatch) -> None:
        known = self.verifications.get(marker.producer_id)
        if known is None:
            return
        of_next_transaction = (
            self._profile.verification_survives_tv2_marker
            and known.transaction_version >= TRANSACTION_VERSION_2
            and known.producer_epoch == marker.producer_epoch
        )
        if not of_next_transaction:
            del self.verifications[marker.producer_id]

    # -- offsets -----------------------------------------------------------------------------------------------------
    @property
    def last_stable_offset(self) -> int:
        """Where readers of committed records stop: the oldest open transaction, at least the log start.

        That start may lie inside of a batch, see Switches.last_stable_offset_is_batch_base.
        """
        undecided = self.producers.first_undecided
        if undecided is None:
            return self.log_end
        if undecided >= self.log_start:
            return min(undecided, self.log_end)
        stable = (
            self._history.base_of(self.log_start) if self._profile.last_stable_offset_is_batch_base else self.log_start
        )
        return min(stable, self.log_end)

    def aborted_for_readers(self) -> Iterator[AbortedTransaction]:
        """Yield the aborted transactions that a read_committed fetch from the log start lists.

        A fetch lists them up to the offset where the offset index ends it: in a short log, its end. Where nothing can
        be read, see Switches.empty_read_lists_aborted.
        """
        if self.last_stable_offset <= self.log_start and not self._profile.empty_read_lists_aborted:
            return iter(())
        return self.producers.aborted_between(self.log_start, self.log_end)

    def delete_records(self, before_offset: int, now: int, checkpointed_at: int | None) -> None:
        """Move the log start up to `before_offset`, at most the log's end, at `now`.

        `checkpointed_at` is when the broker last wrote log starts to their checkpoint, None if never (both ms).
        """
        if before_offset > self.log_start:
            self._take_checkpoint(checkpointed_at)
            self.log_start, self._log_start_moved_at = before_offset, now
            self.producers.advance_log_start(before_offset)
            self.snapshots = {offset for offset in self.snapshots if offset >= before_offset}

    def _take_checkpoint(self, at: int | None) -> None:
        self._checkpointed_log_start = self.log_start_written(at)

    def log_start_written(self, at: int | None) -> int:
        """Return the log start in the checkpoint, last written at `at` (ms, None: never)."""
        moved_since = at is None or at <= self._log_start_moved_at
        return self._checkpointed_log_start if moved_since else self.log_start

    def come_back_from(self, checkpointed_at: int | None, log_start: int | None, *, clean: bool) -> None:
        """Begin a restart with the log start the broker finds: `log_start` if that is known, else its checkpoint's.

        Source: LogManager.checkpointLogStartOffsets, by a timer and at a clean shutdown.
        """
        self._take_checkpoint(_ALWAYS if clean else checkpointed_at)
        self.log_start = self._checkpointed_log_start = (
            min(self._checkpointed_log_start, self.log_start) if log_start is None else min(log_start, self.log_end)
        )

    def take_over(self, batches: Sequence[DataBatch | MarkerBatch], log_start: int, log_end: int) -> None:
        """Begin with a log that exists: hold what a replica holds that has replicated all of it."""
        for batch in batches:
            if isinstance(batch, MarkerBatch):
                self._history.add_marker(batch)
            else:
                self._history.add_data(batch)
        self.producers.replicate(batches)
        self.log_start, self.log_end = log_start, log_end
        self._checkpointed_log_start = log_start

    def catch_up(self, leader: "Replica") -> None:
        """Take over what the leader of a shared history wrote since this replica's log end."""
        begin = max(self.log_end, leader.log_start)
        self.producers.replicate(self._history.between(self.log_end, begin))
        self.producers.advance_log_start(leader.log_start)
        self.producers.replicate(self._history.between(begin, leader.log_end))
        self.log_end = leader.log_end

    def follow(self, batches: Sequence[DataBatch | MarkerBatch], log_end: int) -> None:
        """Take over what the leader wrote, up to `log_end`, as a replica that fetches does."""
        self.take_over(batches, self.log_start, log_end)

    def truncate_to(self, end: int, now: int) -> None:
        """Cut the log at `end` and read it again, from the newest snapshot that is left.

        Source: UnifiedLog.truncateTo, ProducerStateManager.truncateAndReload.
        """
        if end >= self.log_end:
            return
        written, stopped_at = self.producers, self.log_end
        self._truncate(end)
        self.log_start = min(self.log_start, end)
        self.producers = self._rebuilt(now, self.snapshots)
        self._keep_transaction_index(written, stopped_at, self.log_end)

    def snapshot_taken(self, offset: int) -> None:
        """Take note that a producer snapshot was written at `offset`, as it is where a segment begins."""
        self.snapshots.add(offset)

    # -- time --------------------------------------------------------------------------------------------------------
    def pass_time(self, now: int) -> None:
        """Let the periodic check for idle producers run as often as it would have until `now`."""
        if self.next_sweep is None:
            self.next_sweep = now + self._sweep_ms
        elif now >= self.next_sweep:
            swept_at = now - (now - self.next_sweep) % self._sweep_ms
            self.producers.expire(swept_at, self._expiration_ms)
            for producer_id, known in list(self.verifications.items()):
                if swept_at - known.created_at >= self._expiration_ms:
                    del self.verifications[producer_id]
            self.next_sweep = swept_at + self._sweep_ms

    def sweep_since(self, stopped_at: int, now: int) -> None:
        """Let the check for idle producers run as often as it may have since the broker stopped."""
        self.next_sweep = stopped_at + self._sweep_ms
        self.pass_time(now)

    def forget_idle(self, now: int) -> None:
        """Drop the producers that are idle for too long at `now`."""
        self.producers.expire(now, self._expiration_ms)

    def forget(self, producer_ids: Iterable[int]) -> None:
        """Drop these producers, except those with an open transaction."""
        for producer_id in producer_ids:
            if not self.producers.get(producer_id).in_transaction:
                self.producers.states.pop(producer_id, None)

    # -- restarts ----------------------------------------------------------------------------------------------------
    def restart(self, now: int, found: list[DataBatch | MarkerBatch], tampering: Tampering, *, clean: bool) -> None:
        """Stop the broker and start it again.

        `found` lies beyond the log's end when it comes back. Clean: a snapshot is written at the end and no segment is
        recovered. Unclean: the last segment is read again, which ends with a snapshot too, so either way the newest
        batch of a producer is what remains, unless the files were touched.
        """
        if clean and self.log_end > self.log_start:
            self.snapshots.add(self.log_end)  # in an empty log there is nothing a snapshot would add
        stopped_at, written = self.log_end, self.producers
        had_snapshots = bool(self.snapshots - tampering.deleted_snapshots)
        for batch in found:
            if isinstance(batch, MarkerBatch):
                self._history.add_marker(batch)
                self.log_end = batch.offset + 1
            else:
                self._history.add_data(batch)
                self.log_end = batch.last_offset + 1
        self._lose_tail(tampering, clean=clean)
        readable = self.snapshots - tampering.deleted_snapshots - tampering.corrupted_snapshots
        if not clean:
            # Recovery feeds the whole segment, also below the log start, and writes a snapshot that is loaded next.
            recovered = ProducerStateManager(self._profile)
            recovered.replicate(self._history.between(0, self.log_end))
            self.producers = self._load(recovered, now)
            self.producers.aborted = recovered.aborted
        elif not had_snapshots:
            # A clean log without any snapshot is treated as one from before snapshots: nothing is read.
            self.producers = ProducerStateManager(self._profile)
        elif self.log_end == stopped_at and self.log_end in readable:
            self.producers = self._load(written, now)
        else:
            self.producers = self._rebuilt(now, readable)
        if clean:
            # The transaction index is not checked: rows stay even where the log was truncated below them.
            self._keep_transaction_index(written, stopped_at, stopped_at)
        self.snapshots = {self.log_end}
        self.verifications = {}
        self.next_sweep = now + self._sweep_ms

    def loaded_at(self, log_end: int, now: int, *, above: int) -> None:
        """Begin as a replica of a shared history that has just loaded its log up to `log_end`, with a snapshot there.

        A snapshot is used only where it lies above the log start, `above`.
        """
        self.log_end, self.snapshots = log_end, {log_end}
        if log_end > above:
            self.producers = self._snapshot_at(log_end, now)

    def _load(self, written: ProducerStateManager, now: int) -> ProducerStateManager:
        """Read back the snapshot at the log's end; one at or below the log start is not used."""
        if self.log_end <= self.log_start:
            return ProducerStateManager(self._profile)
        return written.reloaded(self.log_start, now, self._expiration_ms)

    def _rebuilt(self, now: int, snapshots: set[int]) -> ProducerStateManager:
        """Load the newest usable snapshot and read the log from there."""
        usable = [offset for offset in snapshots if self.log_start < offset <= self.log_end]
        rebuilt = ProducerStateManager(self._profile)
        start = self.log_start
        if usable:
            start = max(usable)
            rebuilt = self._snapshot_at(start, now)
        rebuilt.replicate(self._history.between(start, self.log_end))
        return rebuilt

    def _snapshot_at(self, offset: int, now: int) -> ProducerStateManager:
        written = ProducerStateManager(self._profile)
        written.replicate(self._history.between(0, offset))
        return written.reloaded(self.log_start, now, self._expiration_ms)

    def _keep_transaction_index(self, written: ProducerStateManager, stopped_at: int, end: int) -> None:
        """Keep the rows the transaction index had below `end`: it is a file of its own, whatever producer state does."""
        kept = [row for row in written.aborted if row.last_offset < end]
        self.producers.aborted = kept + [row for row in self.producers.aborted if row.last_offset >= stopped_at]

    def _lose_tail(self, tampering: Tampering, *, clean: bool) -> None:
        cuts = [
            tampering.truncated_to_offset,
            tampering.torn_batch_offset,
        ]  # what is not whole is no batch to any start
        if not clean:
            cuts.append(tampering.corrupted_batch_offset)
        self._truncate(min([self.log_end, *(cut for cut in cuts if cut is not None)]))

    def _truncate(self, end: int) -> None:
        self._history.truncate(end)
        self.log_end = end
        self.snapshots = {offset for offset in self.snapshots if offset <= end}
