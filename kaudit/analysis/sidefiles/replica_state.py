"""Rescan for producers whose snapshot entry did not fit: the log is read again for them, as a replica reads it."""

from collections.abc import Callable, Iterable
from contextlib import closing

import numpy as np
from msgspec import Struct, field

from kaudit.analysis.scan.batch_stream import ByteRange, stream_batches
from kaudit.broker.producer_state.producer_state_entry import MarkerBatch
from kaudit.broker.producer_state.producer_state_manager import ProducerStateManager
from kaudit.broker.producer_state.rebuild import FIELDS, producer_batch, producer_rows
from kaudit.broker.releases.profile import Profile, VersionRange
from kaudit.model.batch import Batches
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import PartitionDirectory, SegmentFile

_MAGIC_2 = 2


class ReplicaState(Struct):
    """What replicas of the versions in question hold at an offset, and which of `asked` batch ends are in the log."""

    versions: tuple[ProducerStateManager, ...]
    asked: frozenset[tuple[int, int]]
    """(producer id, last offset) of the batches a snapshot names."""
    present: set[tuple[int, int]] = field(default_factory=set)
    markers: set[tuple[int, int]] = field(default_factory=set)
    """Those of `present` that are markers."""
    first_offset: int | None = None

    def take(self, batches: Batches) -> None:
        """Replicate these batches."""
        for row in producer_rows(batches):
            batch = producer_batch(row)
            if batch is None:
                continue
            key = (row[_PRODUCER_ID], row[_BASE_OFFSET] + row[_LAST_OFFSET_DELTA])
            if key in self.asked:
                self.present.add(key)
                if isinstance(batch, MarkerBatch):
                    self.markers.add(key)
            for producers in self.versions:
                producers.replicate((batch,))


_BASE_OFFSET, _LAST_OFFSET_DELTA, _PRODUCER_ID = (
    FIELDS.index(name) for name in ("base_offset", "last_offset_delta", "producer_id")
)


def replica_state(  # noqa: PLR0913, PLR0917 - independent inputs, named at each call
    directory: PartitionDirectory,
    open_source: Callable[[SegmentFile], ByteSource],
    until: int,
    producer_ids: Iterable[int],
    versions: VersionRange,
    asked: frozenset[tuple[int, int]],
) -> ReplicaState:
    """Read the log up to offset `until` for these producers. Raises OSError."""
    state = ReplicaState(tuple(ProducerStateManager(profile) for profile in _distinct(versions)), asked)
    wanted = np.fromiter(producer_ids, dtype=np.int64)
    for segment in directory.segments:
        if segment.base_offset >= until:
            break
        with closing(open_source(segment)) as source:
            for piece in stream_batches(source, ByteRange(0, segment.size, segment.size), expected_offset=None):
                batches = piece.batches
                if state.first_offset is None and len(batches):
                    state.first_offset = int(batches["base_offset"][0])
                chosen = (batches["base_offset"] < until) & (batches["magic"] == _MAGIC_2)
                chosen &= np.isin(batches["producer_id"], wanted)
                state.take(batches[chosen])
    return state


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
