"""A replay of a partition's first ranges as bytes: the state of producers, open transactions, gaps and observations so far.

The next audit goes on from there instead of loading the rows of these ranges.
"""

from collections.abc import Callable, Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.repeats.non_idempotent_repeats import RepeatDetector
from kaudit.audits.repeats.restarts import FIRST_BATCH, RestartTracker
from kaudit.audits.sequences.producer_table import ROW, ProducerTable
from kaudit.audits.sequences.transition_audit import TransitionAudit
from kaudit.audits.sidefiles.snapshot_states import SnapshotWatch
from kaudit.audits.transactions.transaction_spans import ENDED_TRANSACTION, OPEN_TRANSACTION, TransactionSpans
from kaudit.formats.sidefiles.producer_snapshot import ENTRY_DTYPE
from kaudit.model.damage import MalformedBatch
from kaudit.model.result import CoverageGap
from kaudit.model.transactions import EmptyMarker
from kaudit.partition.continuity import Continuity
from kaudit.partition.digests import AuditedBatches
from kaudit.partition.replay import PartitionReplay
from kaudit.reading.batch_starts import BATCH_START
from kaudit.reading.chunk_codec import TABLES
from kaudit.reading.chunk_rows import Counts
from kaudit.reading.digest_leaves import BATCH
from kaudit.reading.rows import LEADER_EPOCH_START, NON_IDEMPOTENT_BATCH, Rows
from kaudit.reading.run_batches import RunFetcher
from kaudit.reading.saved_partition import DamagedStateError
from kaudit.reading.struct_codec import Custom, StructCodec
from kaudit.source.kafka.fetched_segment import Aborted
from kaudit.source.layout import PartitionDirectory, list_snapshots


class _SavedReplay(Struct, array_like=True):
    """The fields of a PartitionReplay but those of the partition as it is: its directory, the segments, what reads them."""

    audited: AuditedBatches | None
    continuity: Continuity
    transitions: TransitionAudit
    spans: TransactionSpans
    empty_marker: EmptyMarker | None
    snapshots: SnapshotWatch
    repeats: RepeatDetector
    starts: RestartTracker
    decoded: bool
    malformed: list[MalformedBatch]
    more_malformed: int
    counts: Counts
    coverage_gaps: frozenset[CoverageGap]
    listed_aborts: Aborted
    batch_starts: list[Rows]
    read_to: tuple[int, int]


def _cannot_fetch(_run: object) -> Iterator[object]:
    raise AssertionError("a replay was not given what reads its runs")


_CODEC: StructCodec[_SavedReplay] = StructCodec(
    _SavedReplay,
    {
        **TABLES,
        "_SavedReplay.batch_starts": BATCH_START,
        "Continuity._steps": LEADER_EPOCH_START,
        "Leaves.begun": BATCH,
        "OpenInSnapshot.positions": np.dtype(np.int64),
        "OpenInSnapshot.rows": ENTRY_DTYPE,
        "ProducerTable": ROW,
        "RepeatDetector._covered": np.dtype(np.bool_),
        "RepeatDetector._recent": NON_IDEMPOTENT_BATCH,
        "RepeatDetector._recurring": np.dtype((np.int64, (2,))),
        "RestartTracker": FIRST_BATCH,
        "TransactionSpans._ended": ENDED_TRANSACTION,
        "TransactionSpans._open": OPEN_TRANSACTION,
    },
    {
        ProducerTable: Custom(lambda table: table.rows, Rows, ProducerTable.of),
        RestartTracker: Custom(RestartTracker.saved, tuple[Rows, bool], lambda saved: RestartTracker.of(*saved)),
        Callable: Custom(lambda _: None, None, lambda _: _cannot_fetch),
    },
)


def pack_replay(replay: PartitionReplay, segment: int, position: int) -> bytes | None:
    """Encode a replay that was fed everything up to a position of its last segment, and perhaps the bytes after it.

    None where it depends on damage before that position that no valid batch follows.
    """
    pending = replay.continuity.pending
    if any(number != segment or damage.position < position for number, damage in pending):
        return None
    own = {name: getattr(replay, name) for name in _SavedReplay.__struct_fields__}
    own["continuity"] = replace(replay.continuity, segments=(), pending=[])
    own["transitions"] = replace(replay.transitions, fetch_run=_cannot_fetch)
    own["snapshots"] = replace(replay.snapshots, files=())
    try:
        return _CODEC.encode(_SavedReplay(**own))
    except UnicodeEncodeError:
        return None  # the path of a snapshot that is not text


def unpack_replay(
    data: bytes, directory: PartitionDirectory, fetch_run: RunFetcher, snapshots_compared: int
) -> PartitionReplay:
    """Return the replay that was encoded, for the same partition as it is now.

    Raises:
        DamagedStateError: the bytes are something else.

    """
    replay = PartitionReplay(directory, fetch_run)
    try:
        saved = _CODEC.decode(data)
    except ValueError as error:
        raise DamagedStateError(f"a checkpoint is damaged: {error}") from None
    for name in saved.__struct_fields__:
        setattr(replay, name, getattr(saved, name))
    replay.continuity.segments = directory.segments
    replay.transitions.fetch_run = fetch_run
    replay.snapshots.files = list_snapshots(directory)[snapshots_compared:]
    return replay
