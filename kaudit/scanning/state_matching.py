"""Which saved ranges of a partition are still valid for its segments, decided by file metadata before anything is read."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import pairwise

from msgspec import Struct

from kaudit.model.batch import last_offsets
from kaudit.model.result import StateUse
from kaudit.partition.range_saver import snapshots_of
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import ChunkSpec, OpenSource
from kaudit.reading.chunk_rows import LastBatch
from kaudit.reading.chunk_summary import last_batch_of
from kaudit.reading.saved_partition import (
    DamagedStateError,
    FileIdentity,
    OtherFormatStateError,
    SavedPartition,
    SavedPiece,
    SavedRows,
    Settings,
)
from kaudit.reading.segment import ByteRange
from kaudit.reading.state_files import (
    Checkpoint,
    PartitionIndex,
    SavedRange,
    SavedSegment,
    read_index,
)
from kaudit.source.layout import PartitionDirectory, SegmentFile, list_snapshots
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri

_PIECE_BYTES = 32 << 20
"""Packed rows that are loaded at once, about."""


def match_partition(  # noqa: PLR0913 - independent inputs
    own: Uri,
    settings: Settings,
    directory: PartitionDirectory,
    plan: Sequence[ChunkSpec],
    open_source: OpenSource,
    *,
    resumes: bool,
) -> SavedPartition:
    """Return what is saved of a partition in its directory of a state and holds now.

    `plan`: one spec a segment that is not empty, whole. `resumes`: nobody needs the rows but the audit itself. What cannot be
    read of the state counts as not there.
    """
    files = [_identity(segment.path) for segment in directory.segments]
    use = StateUse()
    snapshots = [_identity(file.path) for file in list_snapshots(directory)]
    try:
        found = read_index(own)
    except OtherFormatStateError:
        found = None
    except (DamagedStateError, OSError):
        found = None
        use.damaged += 1
    if found is None or found[0].settings != settings:
        use.new = len(plan)
        return SavedPartition(str(own), settings, files, use, snapshots=snapshots)
    matching = _Matching(directory, plan, files, found[0], open_source)
    held = matching.held(use)
    checkpoint = found[0].checkpoint if resumes else None
    covered = 0 if checkpoint is None or not matching.resumes(checkpoint, held, snapshots) else checkpoint.ranges
    pieces = [piece for each in held for piece in _pieces(each, 0, covered)]
    resumed = len(pieces)
    pieces += [piece for each in held for piece in _pieces(each, covered, len(found[0].ranges))]
    rows = SavedRows(str(own), found[1])
    return SavedPartition(str(own), settings, files, use, rows, pieces, resumed, snapshots)


def _identity(path: str) -> FileIdentity:
    """Return what distinguishes a local file from one that takes its place; stores have only sizes and times."""
    uri = Uri.parse(path).absolute()
    if not uri.is_local:
        return FileIdentity()
    try:
        status = filesystem(uri).status(uri)
    except OSError:
        return FileIdentity()
    return FileIdentity(status.inode, status.changed_ns)


class _Saved(Struct):
    """A saved segment and its ranges: all of its own, or of those read together that begin with it.

    `number` is the place of the first of them among the index's.
    """

    segment: SavedSegment
    ranges: list[SavedRange]
    is_last: bool
    number: int = 0
    within: int | None = None
    """Index of the segment before that it was read together with."""


class _Held(Struct, frozen=True):
    """Ranges of a segment that hold; `number` as in _Saved."""

    spec: ChunkSpec
    ranges: Sequence[SavedRange]
    number: int


class _Matching:
    def __init__(
        self,
        directory: PartitionDirectory,
        plan: Sequence[ChunkSpec],
        files: Sequence[FileIdentity],
        index: PartitionIndex,
        open_source: OpenSource,
    ) -> None:
        self._directory = directory
        self._plan = {spec.segment: spec for spec in plan}
        self._last = plan[-1].segment if plan else -1
        self._identities = {segment.base_offset: file for segment, file in zip(directory.segments, files, strict=True)}
        self._open = open_source
        self._index = index
        self._saved = _by_base_offset(index)
        self._snapshots = [file.base_offset for file in list_snapshots(directory)]

    def held(self, use: StateUse) -> list[_Held]:
        """Return what holds, in order, and count what became of each segment."""
        found: list[_Held] = []
        together: set[int] = set()
        for number, spec in self._plan.items():
            saved = self._saved.get(spec.file.base_offset)
            if number in together:
                use.unchanged += 1
            elif saved is None:
                use.new += 1
            elif saved.ranges and saved.ranges[0].joined:
                group = range(number, number + saved.ranges[0].joined + 1)
                if self._is_whole_group(group, saved.ranges[0]):
                    found.append(_Held(spec, saved.ranges, saved.number))
                    together.update(group)
                    use.unchanged += 1
                else:
                    use.read_again += 1
            elif not saved.ranges or not all(self._holds(spec, entry) for entry in saved.ranges):
                use.read_again += 1
            elif self._is_same(spec.file, saved.segment):
                use.unchanged += 1
                found.append(_Held(spec, saved.ranges, saved.number))
            elif self._goes_on(spec, saved):
                use.grown += 1
                found.append(_Held(spec, saved.ranges, saved.number))
            else:
                use.read_again += 1
        there = {spec.file.base_offset for spec in self._plan.values()}
        use.dropped = sum(base not in there for base, saved in self._saved.items() if saved.segment.size)
        return found

    def resumes(self, checkpoint: Checkpoint, held: Sequence[_Held], snapshots: Sequence[FileIdentity]) -> bool:
        """Whether a checkpoint is of what is there now: it takes the same segments with the same numbers."""
        covered = self._index.ranges[: checkpoint.ranges]
        if sum(min(len(each.ranges), max(checkpoint.ranges - each.number, 0)) for each in held) != len(covered):
            return False
        directory, last = self._directory, covered[-1].segment + covered[-1].joined
        if checkpoint.log_start_offset != directory.log_start_offset or len(directory.segments) <= last:
            return False
        if checkpoint.is_compacted != (directory.first_dirty_offset is not None):
            return False
        same = all(map(self._is_same, directory.segments[:last], self._index.segments))
        now, compared = snapshots_of(directory, snapshots), len(checkpoint.snapshots)
        return (
            same
            and directory.segments[last].base_offset == self._index.segments[last].base_offset
            and now[:compared] == checkpoint.snapshots
            and all(file.base_offset >= checkpoint.end_offset for file in now[compared:])
        )

    def _is_same(self, file: SegmentFile, saved: SavedSegment) -> bool:
        identity = self._identities[file.base_offset]
        return saved == SavedSegment(file.name, file.base_offset, file.size, file.modified_ms, identity)

    @staticmethod
    def _holds(spec: ChunkSpec, entry: SavedRange) -> bool:
        return entry.holds(spec.log_start_offset, spec.latest_timestamp)

    def _is_whole_group(self, group: range, entry: SavedRange) -> bool:
        """Whether segments that were read together are there as they were, with no snapshot inside of one by now."""
        specs = [self._plan.get(number) for number in group]
        first = specs[0]
        if None in specs or first is None or not self._holds(first, entry):
            return False
        last_offset = -1 if entry.last_batch is None else entry.last_batch.last_offset
        begins = {spec.file.base_offset for spec in specs if spec is not None}
        if any(first.file.base_offset < offset <= last_offset and offset not in begins for offset in self._snapshots):
            return False
        return all(
            spec is not None
            and (saved := self._saved.get(spec.file.base_offset)) is not None
            and (saved.ranges == [entry] or saved.within == entry.segment)
            and self._is_same(spec.file, saved.segment)
            for spec in specs
        )

    def _goes_on(self, spec: ChunkSpec, saved: _Saved) -> bool:
        """Whether the file has only grown since it was read: it was the last segment then, and no cleaner can have rewritten it."""
        last = saved.ranges[-1].last_batch if saved.ranges else None
        if not saved.is_last or last is None or spec.file.size < last.end:
            return False
        inode = self._identities[spec.file.base_offset].inode
        if spec.segment != self._last and not (inode and inode == saved.segment.file.inode):
            return False
        return self._find(spec, last) == last

    def _find(self, spec: ChunkSpec, last: LastBatch) -> LastBatch | None:
        """Return the batch at the place of the last one that was read, None if no valid one begins there."""
        try:
            with closing(self._open(spec.file)) as source:
                where = ByteRange(last.position, last.end, spec.end)
                for piece in stream_batches(source, where, expected_offset=None, verify=spec.verify):
                    if len(piece.batches):
                        return last_batch_of(piece.batches, last_offsets(piece.batches))
        except OSError:
            return None  # reading shows what is the matter
        return None


def _by_base_offset(index: PartitionIndex) -> Mapping[int, _Saved]:
    """Return the saved segments, those of them first whose ranges make up the segment from its first byte."""
    last = max((number for number, segment in enumerate(index.segments) if segment.size), default=-1)
    saved = [_Saved(segment, [], number == last) for number, segment in enumerate(index.segments)]
    for place, entry in enumerate(index.ranges):
        if not saved[entry.segment].ranges:
            saved[entry.segment].number = place
        saved[entry.segment].ranges.append(entry)
        for number in range(entry.segment + 1, entry.segment + entry.joined + 1):
            saved[number].within = entry.segment
    for each in saved:
        if any(one.stop != other.start for one, other in pairwise(each.ranges)) or (
            each.ranges and each.ranges[0].start != 0
        ):
            each.ranges = []
    return {each.segment.base_offset: each for each in saved}


def _pieces(held: _Held, first: int, end: int) -> list[SavedPiece]:
    """Return those of a segment's ranges whose place in the index is from `first` to before `end`.

    Several are one piece as long as their rows are few.
    """
    found: list[SavedPiece] = []
    expected = next_offset = held.spec.file.base_offset
    own = range(max(first - held.number, 0), min(end - held.number, len(held.ranges)))
    start, size = 0, 0
    for number, entry in enumerate(held.ranges):
        size += entry.length
        if entry.last_batch is not None:
            next_offset = entry.last_batch.last_offset + 1
        if number in own:
            if size < _PIECE_BYTES and number != own[-1]:
                continue
            found.append(SavedPiece(held.spec.segment, start, entry.stop, expected, next_offset, entry.joined))
        start, size, expected = entry.stop, 0, next_offset
    return found
