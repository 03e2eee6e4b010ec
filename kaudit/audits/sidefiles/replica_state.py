"""Rescan for producers whose snapshot entry did not fit: the log is read again for them, as a replica reads it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.audits.sidefiles.snapshot_states import SHORTEST_EXPIRATION_MS
from kaudit.broker.producer_state.producer_state_entry import MarkerBatch
from kaudit.broker.producer_state.producer_state_manager import ProducerStateManager
from kaudit.broker.producer_state.rebuild import FIELDS, producer_batch, producer_rows
from kaudit.broker.releases.profile import Profile, VersionRange
from kaudit.model.batch import Batches
from kaudit.reading.small_segments import batches_in_order
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import PartitionDirectory, SegmentFile

_MAGIC_2 = 2


class ReplicaState(Struct):
    """What replicas of the versions in question hold at an offset, and which of `asked` batch ends are in the log."""

    versions: tuple[ProducerStateManager, ...]
    forgetful: tuple[ProducerStateManager, ...]
    """The same, had each forgotten a producer whenever it was idle for long enough, and what lies below the log start.

    That may have been all but a marker, when the log start was lower and a broker rebuilt its state from there.
    """
    log_start: int
    asked: frozenset[tuple[int, int]]
    """(producer id, last offset) of the batches a snapshot names."""
    present: set[tuple[int, int]] = field(default_factory=set)
    markers: set[tuple[int, int]] = field(default_factory=set)
    """Those of `present` that are markers."""
    first_offset: int | None = None
    begun: set[int] = field(default_factory=set)
    """Producer ids with a batch from the log start on."""

    def take(self, batches: Batches) -> None:
        """Replicate these batches."""
        rows = [(row, batch) for row in producer_rows(batches) if (batch := producer_batch(row)) is not None]
        batches_of_all = [batch for _, batch in rows]
        for producers in self.versions:
            producers.replicate(batches_of_all)
        for row, batch in rows:
            key = (row[_PRODUCER_ID], row[_BASE_OFFSET] + row[_LAST_OFFSET_DELTA])
            if key in self.asked:
                self.present.add(key)
                if isinstance(batch, MarkerBatch):
                    self.markers.add(key)
            is_deleted = key[1] < self.log_start
            if is_deleted and not isinstance(batch, MarkerBatch):
                continue
            for producers in self.forgetful:
                if is_deleted or batch.producer_id not in self.begun:
                    producers.forget_producer(batch.producer_id)
                producers.expire_producer(batch.producer_id, row[_MAX_TIMESTAMP], SHORTEST_EXPIRATION_MS)
                producers.replicate((batch,))
            if not is_deleted:
                self.begun.add(batch.producer_id)


_BASE_OFFSET, _LAST_OFFSET_DELTA, _MAX_TIMESTAMP, _PRODUCER_ID = (
    FIELDS.index(name) for name in ("base_offset", "last_offset_delta", "max_timestamp", "producer_id")
)


def replica_states(  # noqa: PLR0913, PLR0917 - independent inputs, named at each call
    directory: PartitionDirectory,
    open_source: Callable[[SegmentFile], ByteSource],
    offsets: Sequence[int],
    producer_ids: Iterable[int],
    versions: VersionRange,
    asked: frozenset[tuple[int, int]],
) -> Iterator[ReplicaState]:
    """Read the log once for these producers, and yield the state at each of `offsets`, which ascend: one object that grows.

    Raises OSError.
    """
    profiles = _distinct(versions)
    state = ReplicaState(_managers(profiles), _managers(profiles), directory.log_start_offset or 0, asked)
    wanted = np.fromiter(producer_ids, dtype=np.int64)
    left = deque(offsets)
    for base_offset, batches in batches_in_order(directory.segments, open_source):
        while left and left[0] <= base_offset:
            left.popleft()
            yield state
        if state.first_offset is None and len(batches):
            state.first_offset = int(batches["base_offset"][0])
        rest = _of(batches, wanted)
        while left and len(batches) and left[0] <= batches["base_offset"][-1]:
            behind = int(np.searchsorted(rest["base_offset"], left.popleft()))
            state.take(rest[:behind])
            rest = rest[behind:]
            yield state
        if not left:
            return
        state.take(rest)
    yield from (state for _ in left)


def _of(batches: Batches, producer_ids: NDArray[np.int64]) -> Batches:
    chosen: NDArray[np.bool_] = (batches["magic"] == _MAGIC_2) & np.isin(batches["producer_id"], producer_ids)
    return batches[chosen]


def _managers(profiles: Iterable[Profile]) -> tuple[ProducerStateManager, ...]:
    return tuple(map(ProducerStateManager, profiles))


def _distinct(versions: VersionRange) -> list[Profile]:
    """One profile of each kind that writes other snapshots than the rest."""
    found: dict[tuple[object, ...], Profile] = {}
    for profile in versions.profiles():
        key = (
            profile.marker_replaces_last_batch,
            profile.marker_sets_timestamp,
            profile.offset_delta_from_sequences,
        )
        found.setdefault(key, profile)
    return list(found.values())
