"""Offset and time indexes compared with the segments they belong to."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.sidefiles.log_facts import LogFacts, SideFileReader, broken_off_at
from kaudit.formats.sidefiles.indexes import OffsetIndex, TimeIndex, parse_offset_index, parse_time_index
from kaudit.model.damage import MissingCause
from kaudit.model.side_files import IndexBeyondLogEnd, IndexFault, IndexKind, MissingIndexes
from kaudit.reading.batch_starts import is_kept
from kaudit.source.layout import SegmentFile

_ROW_BYTES = {IndexKind.OFFSET: 8, IndexKind.TIME: 12}
_BASE_DIGITS = 20

_WrongRow = tuple[int, str]
"""A row's number and what is wrong with it."""


class IndexedSegment(Struct, frozen=True):
    """The segment an index is compared with. `end_offset` is exclusive, None where damage in the log hides it.

    `size` bytes of the `.log`, None if positions in it prove nothing.
    """

    number: int
    base_offset: int
    end_offset: int | None
    size: int | None


class Probe(Struct, frozen=True):
    """The base offset of the batch that starts at the position of one row, None if none does."""

    row: int
    base_offset: int | None


def compare_indexes(
    files: SideFileReader, log: LogFacts, names: Mapping[str, SegmentFile]
) -> Iterator[IndexFault | IndexBeyondLogEnd | MissingIndexes]:
    """Yield the first fault of each index, rows beyond the log's end, and the indexes that are missing, of one partition."""
    absent: dict[IndexKind, list[tuple[str, int]]] = {kind: [] for kind in IndexKind}
    for number, segment in enumerate(log.directory.segments):
        for kind in () if segment.deleted or segment.is_cut else IndexKind:
            name = f"{segment.base_offset:0{_BASE_DIGITS}d}.{kind.value}"
            if name not in names:
                if segment.size:  # made with the first append
                    absent[kind].append((name, number))
                continue
            data = files.read(names[name])
            if data is not None:
                yield from _compare(files, log, number, kind, name, data)
    for kind, missing in absent.items():
        if missing:
            yield MissingIndexes(kind, missing)


def _compare(  # noqa: PLR0913, PLR0917 - independent inputs
    files: SideFileReader, log: LogFacts, number: int, kind: IndexKind, name: str, data: bytes
) -> Iterator[IndexFault | IndexBeyondLogEnd]:
    """Yield what is wrong with one index."""
    segment = _indexed(log, number)
    index = parse_offset_index(data) if kind is IndexKind.OFFSET else parse_time_index(data)
    beyond = _rows_beyond(files, log, segment, index.relative_offsets)
    if beyond is not None:
        end = int(index.relative_offsets[beyond:].max()) + segment.base_offset + 1
        lost = not index.padding_rows or _is_broken_off(log)
        at = beyond * _ROW_BYTES[kind]
        yield IndexBeyondLogEnd(kind, name, number, beyond, at, end, log.end_offset, lost)
        index = index.first(beyond)
    index = index.first(_rows_written(log, segment, index))
    if isinstance(index, OffsetIndex):
        current = _current(files, log, segment, index)
        wrong = wrong_offset_rows(index, current, _probed(log, segment, index))
    else:
        wrong = wrong_time_rows(index, segment)
    if index.damage:
        damage = index.damage[0]
        yield IndexFault(kind, name, number, damage.position, damage.detail, None)
        return
    found = next(wrong, None)
    if found is not None and not _left_by_truncation(log, segment, index, found[0]):
        yield IndexFault(kind, name, number, found[0] * _ROW_BYTES[kind], found[1], found[0])


def _rows_beyond(
    files: SideFileReader, log: LogFacts, segment: IndexedSegment, relative: NDArray[np.int64]
) -> int | None:
    """Return the first of the last segment's rows that, with all after it, lie beyond the log's end; None without such rows.

    A log that is truncated keeps them: AbstractIndex.truncateToEntries lowers the number of rows, and leaves the bytes.
    """
    last = len(log.directory.segments) - 1
    is_comparable = segment.size is not None or _is_broken_off(log)
    if segment.number != last or not is_comparable or log.claimed_end is None:
        return None
    inside = np.flatnonzero(relative + segment.base_offset < log.claimed_end)
    first = int(inside[-1]) + 1 if len(inside) else 0
    file = log.directory.segments[last]
    return first if first < len(relative) and files.size_now(file) == file.size else None


def _is_broken_off(log: LogFacts) -> bool:
    """Return whether the last segment was cut by something other than its broker, and nothing else is wrong with it.

    Rows beyond its end are then of what was lost, as the log was never truncated: no leader epoch begins in the segment.
    """
    last = len(log.directory.segments) - 1
    hurt = [each for each in log.damages if each.segment == last]
    begun = log.epoch_steps["base_offset"][1:]  # with the first one nothing changes
    if log.unread or len(hurt) != 1 or (len(begun) and begun[-1] >= log.directory.segments[last].base_offset):
        return False
    return broken_off_at(log.directory, hurt) is not None


def _rows_written(log: LogFacts, segment: IndexedSegment, index: OffsetIndex | TimeIndex) -> int:
    """Return how many rows an open index of the last segment has, without those of a part that was truncated and written anew.

    New rows overwrite those from the first on. The last of them is near the log's end, as a row is written every
    log.index.interval.bytes; those after it rise again from a lower offset.
    """
    relative = index.relative_offsets
    falls = np.flatnonzero(np.diff(relative) <= 0) + 1
    is_open = segment.number == len(log.directory.segments) - 1 and index.padding_rows
    if not is_open or segment.size is None or len(falls) != 1:
        return len(relative)
    first = int(falls[0])
    return first if _is_near_end(log, segment, relative[:first]) else len(relative)


def _left_by_truncation(log: LogFacts, segment: IndexedSegment, index: OffsetIndex | TimeIndex, row: int) -> bool:
    """Return whether an open index's rows from this one on may be of a part of the log that was truncated and written anew.

    A leader epoch then begins in the segment, not after them, and the log has not gone on far enough to overwrite them.
    """
    if segment.number < len(log.directory.segments) - 1 or not index.padding_rows:
        return False
    starts = log.epoch_steps["base_offset"][1:]  # with the first one nothing changes
    first = int(index.relative_offsets[row:].min()) + segment.base_offset
    is_truncated = bool(((starts >= segment.base_offset) & (starts <= first)).any())
    return is_truncated and (not row or _is_near_end(log, segment, index.relative_offsets[:row]))


def _is_near_end(log: LogFacts, segment: IndexedSegment, relative: NDArray[np.int64]) -> bool:
    """Return whether the last of these rows is about as near the log's end as rows are to one another."""
    widest = int(np.diff(relative, prepend=-1).max())
    return log.end_offset - segment.base_offset - 1 - int(relative[-1]) <= 2 * widest


def wrong_offset_rows(index: OffsetIndex, segment: IndexedSegment, probes: Sequence[Probe]) -> Iterator[_WrongRow]:
    """Yield the first row that breaks each rule of an offset index, rule by rule."""
    relative, positions = index.relative_offsets, index.positions
    yield from _negative(relative)
    yield from _not_rising(relative, segment, np.diff(relative) <= 0)
    for row in _first((np.diff(positions) < 0) | (positions[1:] < 0), 1):
        yield row, f"position {positions[row]} follows {positions[row - 1]}"
    if segment.size is not None:
        for row in _first(positions >= segment.size):
            yield row, f"position {positions[row]} lies beyond the {segment.size} bytes of the segment"
    yield from _beyond_end(relative, segment)
    for probe in probes:
        offset = segment.base_offset + int(relative[probe.row])
        if probe.base_offset is None:
            yield probe.row, f"no batch starts at position {positions[probe.row]}"
        elif probe.base_offset > offset:
            there = f"where the batch of offset {probe.base_offset} starts"
            yield probe.row, f"offset {offset} at position {positions[probe.row]}, {there}"


def wrong_time_rows(index: TimeIndex, segment: IndexedSegment) -> Iterator[_WrongRow]:
    """Yield the first row that breaks each rule of a time index, rule by rule."""
    times, relative = index.timestamps, index.relative_offsets
    yield from _negative(relative)
    for row in _first(times[1:] <= times[:-1], 1):
        yield row, f"timestamp {times[row]} follows {times[row - 1]}"
    yield from _not_rising(relative, segment, np.diff(relative) < 0)
    yield from _beyond_end(relative, segment)


def _negative(relative: NDArray[np.int64]) -> Iterator[_WrongRow]:
    for row in _first(relative < 0):
        yield row, f"offset {relative[row]} relative to the base"


def _not_rising(relative: NDArray[np.int64], segment: IndexedSegment, falls: NDArray[np.bool_]) -> Iterator[_WrongRow]:
    for row in _first(falls, 1):
        offset, before = (segment.base_offset + int(relative[number]) for number in (row, row - 1))
        yield row, f"offset {offset} follows {before}"


def _beyond_end(relative: NDArray[np.int64], segment: IndexedSegment) -> Iterator[_WrongRow]:
    if segment.end_offset is not None:
        for row in _first(relative + segment.base_offset >= segment.end_offset):
            offset = segment.base_offset + int(relative[row])
            yield row, f"offset {offset}, the segment ends before {segment.end_offset}"


def _first(wrong: NDArray[np.bool_], first_row: int = 0) -> Iterator[int]:
    """Yield the row of the first True, if there is one; `first_row` is the row of `wrong[0]`."""
    if wrong.any():
        yield int(wrong.argmax()) + first_row


def _indexed(log: LogFacts, number: int) -> IndexedSegment:
    """A segment as its indexes should see it; where its log is damaged or lacks offsets they cannot be compared with it."""
    segments = log.directory.segments
    segment = segments[number]
    hurt = {damage.segment for damage in log.damages} | {gap.segment for gap in log.missing}
    hurt |= {gap.segment - 1 for gap in log.missing if gap.cause is not MissingCause.UNKNOWN or gap.position == 0}
    if log.unread or (number in hurt and not log.compacted):
        return IndexedSegment(number, segment.base_offset, None, None)
    end = segments[number + 1].base_offset if number + 1 < len(segments) else None
    return IndexedSegment(number, segment.base_offset, end, segment.size)


def _current(files: SideFileReader, log: LogFacts, segment: IndexedSegment, index: OffsetIndex) -> IndexedSegment:
    """The segment as it is now: a live log grows, and its index with it, after its size was noted."""
    if segment.size is None or not (index.positions >= segment.size).any():
        return segment
    return replace(segment, size=files.size_now(log.directory.segments[segment.number]))


def _probed(log: LogFacts, segment: IndexedSegment, index: OffsetIndex) -> list[Probe]:
    """Return a probe for each row whose position would be kept if a batch of the log began there."""
    last, stop = log.read_to
    if segment.size is None or segment.number > last or any(damage.segment == segment.number for damage in log.damages):
        return []
    stop = stop if segment.number == last else segment.size
    rows = np.flatnonzero((index.positions >= 0) & (index.positions < stop))
    rows = rows[is_kept(index.positions[rows])]
    if not len(rows):
        return []
    first, after = np.searchsorted(log.batch_starts["segment"], (segment.number, segment.number + 1))
    starts = log.batch_starts[first:after]
    known = dict(zip(starts["position"].tolist(), starts["base_offset"].tolist(), strict=True))
    return [
        Probe(row, known.get(position))
        for row, position in zip(rows.tolist(), index.positions[rows].tolist(), strict=True)
    ]
