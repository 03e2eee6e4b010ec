"""What putting a partition's first ranges together came to, as bytes: the next audit goes on from there.

The state of producers, open transactions, gaps and observations so far. What reading back makes is of the classes named
here and of the model, and calls nothing else.
"""

import copy

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.partition.replay import PartitionReplay
from kaudit.reading.chunk_codec import ModelUnpickler, load_model
from kaudit.reading.run_batches import RunFetcher
from kaudit.reading.saved_partition import DamagedStateError
from kaudit.reading.shuffle_codec import pack
from kaudit.source.layout import PartitionDirectory
from kaudit.source.snapshots import list_snapshots

_CLASSES = frozenset((
    ("collections", "Counter"),
    ("kaudit.audits.repeats.non_idempotent_repeats", "RepeatDetector"),
    ("kaudit.audits.repeats.restarts", "RestartTracker"),
    ("kaudit.audits.repeats.sessions", "SessionTracker"),
    ("kaudit.partition.replay", "PartitionReplay"),
    ("kaudit.audits.sequences.producer_table", "ProducerTable"),
))  # fmt: skip
"""Those that are neither structs nor tuples; none does anything when it is made."""


def pack_replay(replay: PartitionReplay, segment: int, position: int) -> bytes | None:
    """Pack a replay that was fed all up to a position of a segment, its last, and perhaps the bytes behind it.

    None where it depends on damage before that position of which nothing valid follows.
    """
    pending = replay.continuity.pending
    if any(number != segment or damage.position < position for number, damage in pending):
        return None
    resting = copy.copy(replay)
    resting.directory = replace(replay.directory, segments=(), side_files=(), checkpoints=(), leftover_files=())
    resting.continuity = replace(replay.continuity, segments=(), pending=[])
    resting.transitions = copy.copy(replay.transitions)
    resting.transitions.fetch_run = None  # type: ignore[assignment]  # given when it is unpacked
    resting.snapshots = replace(replay.snapshots, files=())
    resting.kept, resting.still_growing = None, False
    return pack(resting)


def unpack_replay(
    data: bytes, directory: PartitionDirectory, fetch_run: RunFetcher, snapshots_compared: int
) -> PartitionReplay:
    """Return what was packed, for the same partition as it is now.

    Raises:
        DamagedStateError: it is something else.

    """
    try:
        replay = load_model(data, _ReplayUnpickler)
        replay.directory = directory
        replay.continuity.segments = directory.segments
        replay.transitions.fetch_run = fetch_run
        replay.snapshots.files = list_snapshots(directory)[snapshots_compared:]
    except Exception as error:  # noqa: BLE001 - a damaged pickle raises whatever its bytes lead to
        raise DamagedStateError(f"a checkpoint is damaged: {error}") from None
    if not isinstance(replay, PartitionReplay):
        raise DamagedStateError("a checkpoint is damaged")
    return replay


class _ReplayUnpickler(ModelUnpickler):
    """Makes a replay and what it is made of."""

    def find_class(self, module: str, name: str) -> object:
        if (module, name) in _CLASSES:
            return super(ModelUnpickler, self).find_class(module, name)
        if name == "_frombuffer":
            return _own_array
        return super().find_class(module, name)


def _own_array(buffer: bytes, dtype: "np.dtype[np.void]", shape: tuple[int, ...], order: str) -> NDArray[np.void]:
    """Return an array with memory of its own: the table of producers grows in place."""
    assert order == "C"
    return np.frombuffer(buffer, dtype).reshape(shape).copy()
