"""What of a partition's saved ranges holds for the segments that are there now: before anything is read, by what files say of themselves."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import pairwise

from msgspec import Struct

from kaudit.analysis.saved_state.partition_index import (
    PartitionIndex,
    SavedRange,
    SavedSegment,
)
from kaudit.analysis.saved_state.saved_partition import (
    DamagedStateError,
    FileIdentity,
    SavedPartition,
    SavedPiece,
    SavedRows,
    Settings,
)
from kaudit.analysis.saved_state.state_files import directory_of, read_index
from kaudit.analysis.scan.batch_stream import ByteRange, stream_batches
from kaudit.analysis.scan.chunk_plan import ChunkSpec, OpenSource
from kaudit.analysis.scan.chunk_rows import LastBatch
from kaudit.analysis.scan.chunk_summary import last_batch_of
from kaudit.model.batch import last_offsets
from kaudit.model.state_use import StateUse
from kaudit.source.layout import PartitionDirectory, SegmentFile
from kaudit.source.schemes import filesystem
from kaudit.source.snapshots import list_snapshots
from kaudit.source.uri import Uri

_PIECE_BYTES = 32 << 20
"""Packed rows that are loaded at once, about."""


def match_partition(
    state: Uri, settings: Settings, directory: PartitionDirectory, plan: Sequence[ChunkSpec], open_source: OpenSource
) -> SavedPartition:
    """Return what is saved of a partition in a state and holds now. `plan`: one spec a segment that is not empty, whole.

    What cannot be read of the state counts as not there.
    """
    own = directory_of(state, directory.directory)
    files = [_identity(segment) for segment in directory.segments]
    use = StateUse()
    try:
        found = read_index(own)
    except (DamagedStateError, OSError):
        found = None
        use.damaged += 1
    if found is None or found[0].settings != settings:
        use.new = len(plan)
        return SavedPartition(str(own), settings, files, use)
    matching = _Matching(directory, plan, files, found[0], open_source)
    pieces = matching.pieces(use)
    return SavedPartition(str(own), settings, files, use, SavedRows(str(own), found[1]), pieces)


def _identity(segment: SegmentFile) -> FileIdentity:
    """Return what tells a local file from one that takes its place; stores have only sizes and times."""
    uri = Uri.parse(segment.path).absolute()
    if not uri.is_local:
        return FileIdentity()
    try:
        status = filesystem(uri).status(uri)
    except OSError:
        return FileIdentity()
    return FileIdentity(status.inode, status.changed_ns)


class _Saved(Struct):
    """A saved segment and its ranges: all of its own, or of those read together that begin with it."""

    segment: SavedSegment
    ranges: list[SavedRange]
    is_last: bool
    within: int | None = None
    """Index of the segment before that it was read together with."""


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
        self._files = files
        self._open = open_source
        self._saved = _by_base_offset(index)
        self._snapshots = [file.offset for file in list_snapshots(directory)]

    def pieces(self, use: StateUse) -> list[SavedPiece]:
        """Return what holds, in order, and count what became of each segment."""
        found: list[SavedPiece] = []
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
                    found += _pieces(spec, saved.ranges)
                    together.update(group)
                    use.unchanged += 1
                else:
                    use.read_again += 1
            elif not (own := self._held(spec, saved)):
                use.read_again += 1
            elif self._is_same(spec, saved.segment):
                use.unchanged += 1
                found += own
            elif self._goes_on(spec, saved):
                use.grown += 1
                found += own
            else:
                use.read_again += 1
        there = {spec.file.base_offset for spec in self._plan.values()}
        use.dropped = sum(base not in there for base, saved in self._saved.items() if saved.segment.size)
        return found

    def _is_same(self, spec: ChunkSpec, saved: SavedSegment) -> bool:
        file = spec.file
        now = SavedSegment(file.name, file.base_offset, file.size, file.modified_ms, self._files[spec.segment])
        return now == saved

    def _held(self, spec: ChunkSpec, saved: _Saved) -> list[SavedPiece]:
        if not saved.ranges or not all(self._holds(spec, entry) for entry in saved.ranges):
            return []
        return _pieces(spec, saved.ranges)

    @staticmethod
    def _holds(spec: ChunkSpec, entry: SavedRange) -> bool:
        return entry.holds(spec.log_start_offset, spec.latest_timestamp)

    def _is_whole_group(self, group: range, entry: SavedRange) -> bool:
        """Whether segments that were read together are there as they were, with no snapshot between them by now."""
        specs = [self._plan.get(number) for number in group]
        first = specs[0]
        if None in specs or first is None or not self._holds(first, entry):
            return False
        last_offset = -1 if entry.last_batch is None else entry.last_batch.last_offset
        return all(
            spec is not None
            and (saved := self._saved.get(spec.file.base_offset)) is not None
            and (saved.ranges == [entry] or saved.within == entry.segment)
            and self._is_same(spec, saved.segment)
            for spec in specs
        ) and not any(first.file.base_offset < offset <= last_offset for offset in self._snapshots)

    def _goes_on(self, spec: ChunkSpec, saved: _Saved) -> bool:
        """Whether the file has what was read of it and more: it was the last then, and no cleaner can have rewritten it."""
        last = saved.ranges[-1].last_batch if saved.ranges else None
        if not saved.is_last or last is None or spec.file.size < last.end:
            return False
        inode = self._files[spec.segment].inode
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
    for entry in index.ranges:
        saved[entry.segment].ranges.append(entry)
        for number in range(entry.segment + 1, entry.segment + entry.joined + 1):
            saved[number].within = entry.segment
    for each in saved:
        if any(one.stop != other.start for one, other in pairwise(each.ranges)) or (
            each.ranges and each.ranges[0].start != 0
        ):
            each.ranges = []
    return {each.segment.base_offset: each for each in saved}


def _pieces(spec: ChunkSpec, ranges: Sequence[SavedRange]) -> list[SavedPiece]:
    """Return the ranges of a segment, several as one as long as their rows are few."""
    found: list[SavedPiece] = []
    expected = next_offset = spec.file.base_offset
    start, held = ranges[0].start, 0
    for number, entry in enumerate(ranges):
        held += entry.length
        if entry.last_batch is not None:
            next_offset = entry.last_batch.last_offset + 1
        if held >= _PIECE_BYTES or number == len(ranges) - 1:
            found.append(SavedPiece(spec.segment, start, entry.stop, expected, next_offset, entry.joined))
            start, held, expected = entry.stop, 0, next_offset
    return found
