"""Saving what reading a partition gave, as the partition is put together.

A replay of a partition's first ranges as bytes: the state of producers, open transactions, gaps and observations so far.

The next audit goes on from there instead of loading the rows of these ranges.
"""

import copy
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from io import BytesIO
from typing import BinaryIO, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.repeats.non_idempotent_repeats import RepeatDetector
from kaudit.audits.repeats.restarts import FIRST_BATCH, RestartTracker
from kaudit.audits.sequences.producer_table import ROW, ProducerTable
from kaudit.audits.sequences.transition_audit import TransitionAudit
from kaudit.audits.sidefiles.snapshot_states import SnapshotWatch
from kaudit.audits.transactions.transaction_spans import ENDED_TRANSACTION, OPEN_TRANSACTION, TransactionSpans
from kaudit.crc import crc32c
from kaudit.formats.sidefiles.producer_snapshot import ENTRY_DTYPE
from kaudit.model.damage import MalformedBatch
from kaudit.model.result import CoverageGap
from kaudit.model.transactions import EmptyMarker
from kaudit.partition.continuity import Continuity
from kaudit.partition.digests import AuditedBatches
from kaudit.partition.replay import PartitionReplay
from kaudit.reading.batch_starts import BATCH_START
from kaudit.reading.chunk_codec import TABLES, pack_chunk
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_rows import ChunkRows, Counts
from kaudit.reading.digest_leaves import BATCH
from kaudit.reading.rows import LEADER_EPOCH_START, NON_IDEMPOTENT_BATCH, Rows
from kaudit.reading.run_batches import RunFetcher
from kaudit.reading.saved_partition import DamagedStateError, FileIdentity, SavedPartition
from kaudit.reading.state_files import (
    INDEX,
    Checkpoint,
    PartitionIndex,
    SavedRange,
    SavedSegment,
    encode_index,
    planned_index,
    ranges_of,
    read_packed,
)
from kaudit.reading.struct_codec import Custom, StructCodec
from kaudit.source.kafka.fetched_segment import Aborted
from kaudit.source.layout import PartitionDirectory, list_snapshots
from kaudit.source.schemes import filesystem, writable_filesystem
from kaudit.source.uri import Uri


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


MOST_FILES = 16
"""Most files of rows; beyond, all rows that are still needed are written into one."""
_HELD_BYTES = 8 << 20
_RANGE_BYTES = 64 << 10
"""Fixed cost of loading a range and feeding its rows (about 1 ms), in bytes of packed rows."""
_CHECKPOINT_BYTES = 3 * _RANGE_BYTES
"""Putting together fewer bytes of packed rows costs no more than a checkpoint."""
_ABANDONED_MS = 86_400_000
_NEW = -1
"""In place of a file's index: the file that is being written."""


class RangeSaver:
    """Takes the ranges of one partition in order, before they are put together, and saves them once all are.

    What cannot be held or written is an OSError; a DamagedStateError says that the state is not what it was when reading
    was planned.
    """

    def __init__(self, directory: PartitionDirectory, plan: Sequence[ChunkSpec], saved: SavedPartition) -> None:
        self._directory = directory
        self._saved = saved
        self._last = plan[-1] if plan else None
        self._ranges: list[SavedRange] = []
        self._rows: BinaryIO | None = None
        self._checkpoint: Checkpoint | None = None

    def resume(self, fetch_run: RunFetcher) -> PartitionReplay:
        """Return what the first pieces came to, as it was saved, and take their ranges."""
        assert self._saved.rows is not None
        index = planned_index(self._saved.rows).index
        checkpoint = index.checkpoint
        assert checkpoint is not None
        place = Uri.parse(self._saved.directory) / checkpoint.file
        with closing(filesystem(place).open(place)) as source:
            data = read_packed(source, 0, checkpoint.length, checkpoint.crc)
        replay = unpack_replay(data, self._directory, fetch_run, len(checkpoint.snapshots))
        self._ranges = list(index.ranges[: checkpoint.ranges])
        self._checkpoint = checkpoint
        return replay

    def add(self, rows: ChunkRows) -> None:
        """Take a range's rows; those that come from the state stay where they are."""
        if rows.is_saved:
            assert self._saved.rows is not None
            base_offset = self._directory.segments[rows.segment].base_offset
            self._ranges += [
                replace(entry, segment=rows.segment)
                for entry in ranges_of(self._saved.rows, base_offset, rows.start, rows.stop)
            ]
            return
        settled = self._settled(rows)
        if settled is None:
            return
        if self._rows is None:
            self._rows = _spool()
        packed = pack_chunk([settled])
        entry = SavedRange.of(
            settled,
            self._directory.log_start_offset,
            at=self._rows.tell(),
            length=len(packed),
            crc=crc32c(packed),
        )
        self._ranges.append(replace(entry, file=_NEW))
        self._rows.write(packed)

    def _settled(self, rows: ChunkRows) -> ChunkRows | None:
        """Return the part of a range that appended bytes cannot change: at the end of the last segment, its valid batches."""
        last = self._last
        if last is None or rows.segment != last.segment or rows.stop != last.stop:
            return rows
        if rows.last_batch is None:
            return None
        settled = copy.copy(rows)
        settled.stop = settled.read_to = rows.last_batch.end
        count = sum(damage.position < settled.stop for damage in rows.damages)
        settled.damages, settled.expected_offsets = rows.damages[:count], rows.expected_offsets[:count]
        settled.still_growing = False
        return settled

    def close(self) -> None:
        """Let go of what was not saved."""
        if self._rows is not None:
            self._rows.close()

    def save(self, replay: PartitionReplay) -> None:
        """All ranges have been taken: write what is new of them, then the index; then remove what that does not name.

        `replay` was fed all of them. What it came to is saved where that is less than the rows that it was made of.
        """
        former = None if self._saved.rows is None else planned_index(self._saved.rows).index
        used = {entry.file for entry in self._ranges}
        names = [] if former is None else [name for number, name in enumerate(former.files) if number in used]
        if len(names) > MOST_FILES:
            self._take_over(former)
            names = []
        if self._rows is not None:
            names.append(f"rows-{secrets.token_hex(8)}")
        index = PartitionIndex(
            self._saved.settings,
            self._directory.directory.encode(errors="surrogateescape"),
            self._segments(),
            [replace(entry, file=self._number(entry, names, former)) for entry in self._ranges],
            names,
            self._checkpoint,
        )
        packed = self._next_checkpoint(replay)
        if packed is not None:
            index = replace(index, checkpoint=self._describe(packed, replay))
        unchanged = former is not None and packed is None and replace(former, checkpoint=self._checkpoint) == index
        if not unchanged and (index.ranges or former is not None):
            self._write(index, former, packed)

    def _next_checkpoint(self, replay: PartitionReplay) -> bytes | None:
        """Return a checkpoint of all ranges where loading the rows since the last one would cost more than making it."""
        last, lengths = self._checkpoint, [entry.length + _RANGE_BYTES for entry in self._ranges]
        covered, length = (0, 0) if last is None else (last.ranges, last.length)
        if not lengths or replay.log_end_offset is None or not is_less_to_load(length, sum(lengths[covered:])):
            return None
        packed = pack_replay(replay, self._ranges[-1].segment, self._ranges[-1].stop)
        return packed if packed is not None and is_less_to_load(len(packed), sum(lengths)) else None

    def _describe(self, packed: bytes, replay: PartitionReplay) -> Checkpoint:
        assert replay.log_end_offset is not None
        snapshots = snapshots_of(self._directory, self._saved.snapshots)
        compared = len(snapshots) - len(replay.snapshots.files)
        return Checkpoint(
            len(self._ranges),
            f"checkpoint-{secrets.token_hex(8)}",
            len(packed),
            crc32c(packed),
            replay.log_end_offset,
            self._directory.log_start_offset,
            self._directory.first_dirty_offset is not None,
            snapshots[:compared],
        )

    def _segments(self) -> list[SavedSegment]:
        return [
            SavedSegment(segment.name, segment.base_offset, segment.size, segment.modified_ms, file)
            for segment, file in zip(self._directory.segments, self._saved.files, strict=True)
        ]

    @staticmethod
    def _number(entry: SavedRange, names: Sequence[str], former: PartitionIndex | None) -> int:
        if entry.file == _NEW:
            return len(names) - 1
        assert former is not None
        return names.index(former.files[entry.file])

    def _take_over(self, former: PartitionIndex | None) -> None:
        """Copy the rows that lie in former files."""
        assert former is not None
        copied: BinaryIO = _spool()
        for number, entry in enumerate(self._ranges):
            if entry.file == _NEW:
                assert self._rows is not None
                self._rows.seek(entry.at)
                packed = self._rows.read(entry.length)
            else:
                place = Uri.parse(self._saved.directory) / former.files[entry.file]
                with closing(filesystem(place).open(place)) as source:
                    packed = read_packed(source, entry.at, entry.length, entry.crc)
            self._ranges[number] = replace(entry, file=_NEW, at=copied.tell())
            copied.write(packed)
        if self._rows is not None:
            self._rows.close()
        self._rows = copied

    def _write(self, index: PartitionIndex, former: PartitionIndex | None, checkpoint: bytes | None) -> None:
        directory = Uri.parse(self._saved.directory)
        store = writable_filesystem(directory)
        store.make_directory(directory)
        if self._rows is not None:
            self._rows.seek(0)
            store.put(directory / index.files[-1], self._rows)
        if checkpoint is not None and index.checkpoint is not None:
            store.put(directory / index.checkpoint.file, BytesIO(checkpoint))
        store.put(directory / INDEX, BytesIO(encode_index(index)))
        self._remove_others(directory, index, former)

    @staticmethod
    def _remove_others(directory: Uri, index: PartitionIndex, former: PartitionIndex | None) -> None:
        """Remove files that no index names: those of the former one now, those of a run that was killed a day later.

        Another run, or a speculative copy of this task, may have written one whose index is still to come.
        """
        store = writable_filesystem(directory)
        own = {INDEX, *index.names}
        known = () if former is None else former.names
        now = store.status(directory / INDEX).modified_ms or 0
        for entry in store.entries(directory):
            place = directory / entry.name
            if entry.name in own:
                continue
            if entry.name in known or (store.status(place).modified_ms or now) < now - _ABANDONED_MS:
                store.remove(place)


def is_less_to_load(checkpoint_bytes: int, rows_bytes: int) -> bool:
    """Return whether a checkpoint of `checkpoint_bytes` saves more than it costs, given the bytes of the rows to load without it."""
    return rows_bytes >= max(checkpoint_bytes, _CHECKPOINT_BYTES)


def _spool() -> BinaryIO:
    """Return a file that is in memory as long as it is small."""
    return cast("BinaryIO", tempfile.SpooledTemporaryFile(_HELD_BYTES))


def snapshots_of(directory: PartitionDirectory, identities: Sequence[FileIdentity]) -> list[SavedSegment]:
    """Return what a partition's snapshots are by, in their order."""
    sizes = {file.name: file.size for file in directory.side_files}
    return [
        SavedSegment(file.name, file.base_offset, sizes[file.name], file.modified_ms, identity)
        for file, identity in zip(list_snapshots(directory), identities, strict=True)
    ]
