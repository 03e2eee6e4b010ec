"""Saving what reading a partition gave, as the partition is put together."""

import copy
import secrets
import tempfile
from collections.abc import Sequence
from contextlib import closing
from io import BytesIO
from typing import BinaryIO, cast

import crc32c
from msgspec.structs import replace

from kaudit.analysis.saved_state.partition_index import (
    PartitionIndex,
    SavedRange,
    SavedSegment,
    encode_index,
)
from kaudit.analysis.saved_state.saved_partition import SavedPartition
from kaudit.analysis.saved_state.state_files import INDEX, planned_index, ranges_of, read_range_bytes
from kaudit.analysis.scan.chunk_codec import pack_chunk
from kaudit.analysis.scan.chunk_plan import ChunkSpec
from kaudit.analysis.scan.chunk_rows import ChunkRows
from kaudit.source.layout import PartitionDirectory
from kaudit.source.schemes import filesystem, writable_filesystem
from kaudit.source.uri import Uri

MOST_FILES = 16
"""With more files of rows than this, all rows that are still needed go into one."""
_HELD_BYTES = 8 << 20
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
            crc=crc32c.crc32c(packed),
        )
        self._ranges.append(replace(entry, file=_NEW))
        self._rows.write(packed)

    def _settled(self, rows: ChunkRows) -> ChunkRows | None:
        """Return what of a range no longer depends on what is appended: at the end of the last segment the valid batches."""
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

    def save(self) -> None:
        """All ranges have been taken: write what is new of them, then the index; then remove what that does not name."""
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
        )
        if index != former and (index.ranges or former is not None):
            self._write(index, former)

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
                    packed = read_range_bytes(source, entry)
            self._ranges[number] = replace(entry, file=_NEW, at=copied.tell())
            copied.write(packed)
        if self._rows is not None:
            self._rows.close()
        self._rows = copied

    def _write(self, index: PartitionIndex, former: PartitionIndex | None) -> None:
        directory = Uri.parse(self._saved.directory)
        store = writable_filesystem(directory)
        store.make_directory(directory)
        if self._rows is not None:
            self._rows.seek(0)
            store.put(directory / index.files[-1], self._rows)
        store.put(directory / INDEX, BytesIO(encode_index(index)))
        self._remove_others(directory, index, former)

    @staticmethod
    def _remove_others(directory: Uri, index: PartitionIndex, former: PartitionIndex | None) -> None:
        """Remove files that no index names: those of the former one now, those of a run that was killed a day later.

        Another run, or a speculative copy of this task, may have written one whose index is still to come.
        """
        store = writable_filesystem(directory)
        own = {INDEX, *index.files}
        known = () if former is None else former.files
        now = store.status(directory / INDEX).modified_ms or 0
        for entry in store.entries(directory):
            place = directory / entry.name
            if entry.name in own:
                continue
            if entry.name in known or (store.status(place).modified_ms or now) < now - _ABANDONED_MS:
                store.remove(place)


def _spool() -> BinaryIO:
    """Return a file that is in memory as long as it is small."""
    return cast("BinaryIO", tempfile.SpooledTemporaryFile(_HELD_BYTES))
