"""The rows of ranges that follow one another in a segment as those of one range, without reading the log again.

They are what `compress` would make of the batches of all of them (chunk_summary.py), so that it does not matter to a
replay whether it gets the rows of each range or joined ones. A task that reads many ranges sends far fewer rows that way:
a run that goes on from range to range is one row, with ten boundary batches in place of ten in each range.

Only what is certain without the bytes is joined. Ranges are left apart where there is damage, or where the end of the one
is not confirmed as the beginning of the next; where offsets do not ascend; at a producer snapshot, as the state there is
compared; at the end of a segment; and where texts or a cluster's answers leave something out.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.model.columns import Column, Columns, joined
from kaudit.reading.chunk_rows import ChunkRows, Counts, Outcome
from kaudit.reading.digest_leaves import join_leaves
from kaudit.reading.non_idempotent_rows import join_non_idempotent
from kaudit.reading.producer_grouping import group
from kaudit.reading.rows import GAP, RUN, TAIL_BATCHES, Rows
from kaudit.reading.run_rows import MOST_TAILS, RunIndexes, columns_of_boundaries, goes_on

MOST_ROW_BYTES = 64 << 20
"""Rows are joined until they take so much: what remains of a range whose runs are short."""

_OF_FIRST = ("producer_id", "producer_epoch", "is_transactional")
_SUMMED = ("batches", "records", "bytes", "partial_batches")


class JoinedRanges(Struct, frozen=True):
    """The outcomes of `ranges` consecutive ranges: one outcome if they were joined."""

    ranges: int
    outcomes: Sequence[Outcome]


def join_ranges(found: Iterable[Sequence[Outcome]], snapshot_offsets: Sequence[int]) -> Iterator[JoinedRanges]:
    """Join what came of the ranges of one segment, in their order, as far as that is exact.

    `snapshot_offsets`: where a state is compared, ascending. No more than MOST_ROW_BYTES of rows and a range are held.
    """
    held: list[ChunkRows] = []
    ranges, size = 0, 0
    for outcomes in found:
        rows = _alone(outcomes, snapshot_offsets)
        if held and (rows is None or not _follows(held[-1], rows, snapshot_offsets)):
            yield JoinedRanges(ranges, [join(held)])
            held, ranges, size = [], 0, 0
        if rows is None:
            yield JoinedRanges(1, outcomes)
            continue
        held.append(rows)
        ranges, size = ranges + 1, size + rows.row_bytes()
        if size >= MOST_ROW_BYTES:
            held = [join(held)]
            size = held[0].row_bytes()
            if size > MOST_ROW_BYTES * 3 // 4:
                yield JoinedRanges(ranges, held)
                held, ranges, size = [], 0, 0
    if held:
        yield JoinedRanges(ranges, [join(held)])


def _alone(outcomes: Sequence[Outcome], snapshot_offsets: Sequence[int]) -> ChunkRows | None:
    """Return a range's rows if others may be joined to them."""
    if len(outcomes) != 1 or not isinstance(outcomes[0], ChunkRows):
        return None
    rows = outcomes[0]
    whole = rows.ordered and rows.read_to == rows.stop and not rows.still_growing and rows.not_read is None
    plain = not rows.damages and not rows.coverage_gaps and not rows.joined
    # rows that were saved are known by their ranges
    plain = plain and not rows.is_saved
    if not whole or not plain or rows.first_offset is None or rows.last_offset is None:
        return None
    return None if _between(snapshot_offsets, rows.first_offset, rows.last_offset) else rows


def _follows(rows: ChunkRows, following: ChunkRows, snapshot_offsets: Sequence[int]) -> bool:
    """Whether the second range goes on where the first one ends."""
    assert rows.last_offset is not None
    assert following.first_offset is not None
    return (
        (following.segment, following.start) == (rows.segment, rows.stop)
        and following.first_offset > rows.last_offset
        and not following.wrapper_first
        and not _between(snapshot_offsets, rows.last_offset, following.first_offset)
    )


def _between(offsets: Sequence[int], before: int, last: int) -> bool:
    return any(before < offset <= last for offset in offsets)


def join(parts: Sequence[ChunkRows]) -> ChunkRows:
    """Return the rows of ranges that `join_ranges` may join, as if they were read as one."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(part.offsets_present for part in parts)]).tolist()
    for part, present in zip(parts, before, strict=False):
        part.count_from(present)
    first, last = parts[0], parts[-1]
    markers = joined([part.markers for part in parts])
    markers = markers[group(markers["producer_id"]).order]
    runs, boundary = _join_runs(parts, markers)
    counts = Counts()
    for part in parts:
        counts.add(part.counts)
    return ChunkRows(
        first.segment,
        first.start,
        last.read_to,
        last.stop,
        runs=runs,
        boundary_batches=boundary,
        markers=markers,
        gaps=_gaps(parts),
        leader_epochs=_leader_epochs(parts),
        non_idempotent=join_non_idempotent([part.non_idempotent for part in parts]),
        counts=counts,
        offsets_present=before[-1],
        marker_offsets=sum(part.marker_offsets for part in parts),
        cleaned_offsets=sum(part.cleaned_offsets for part in parts),
        cleaned_to=max(part.cleaned_to for part in parts),
        first_offset=first.first_offset,
        first_position=first.first_position,
        last_offset=last.last_offset,
        last_position=last.last_position,
        wrapper_first=first.wrapper_first,
        malformed=[malformed for part in parts for malformed in part.malformed],
        more_malformed=sum(part.more_malformed for part in parts),
        decoded=first.decoded,
        listed_aborts=first.listed_aborts.union(*(part.listed_aborts for part in parts)),
        leaves=None
        if first.leaves is None
        else join_leaves([part.leaves for part in parts if part.leaves is not None]),
        last_batch=last.last_batch,
        batch_starts=np.concatenate([part.batch_starts for part in parts]),
        tails=np.concatenate([part.tails for part in parts])[: MOST_TAILS * TAIL_BATCHES],
        least_beyond=min((part.least_beyond for part in parts if part.least_beyond is not None), default=None),
    )


def _join_runs(parts: Sequence[ChunkRows], markers: Columns) -> tuple[Columns, Columns]:
    """Return the runs of all parts, those that go on from part to part as one, and their boundary batches."""
    boundary = joined([part.boundary_batches for part in parts])
    boundary_before = np.cumsum([0, *(len(part.boundary_batches) for part in parts)]).tolist()
    runs = joined(
        [part.runs.plus(count, "boundary_start") for part, count in zip(parts, boundary_before, strict=False)]
    )
    if not len(runs):
        return runs, boundary
    order = group(runs["producer_id"]).order
    part_of = np.repeat(np.arange(len(parts)), [len(part.runs) for part in parts]).take(order)
    runs = runs[order]
    going_on = goes_on(runs, boundary, markers) & (part_of[1:] != part_of[:-1])
    starts = np.flatnonzero(np.append(True, ~going_on))
    counts = runs["boundary_count"].astype(np.int64)
    ends = np.cumsum(counts)
    batches = np.repeat(runs["boundary_start"] - (ends - counts), counts) + np.arange(int(ends[-1]))
    begins = np.zeros(len(batches), dtype=np.bool_)
    begins[(ends - counts).take(starts)] = True
    # of a series of boundary batches the first and last five are those of the batches that they are of
    indexes = RunIndexes.of(batches, begins)
    boundary = boundary[indexes.boundary_batches()]
    return _one_run_each(runs, starts, boundary), boundary


def _one_run_each(runs: Columns, starts: NDArray[np.intp], boundary: Columns) -> Columns:
    """Return one run for those from each start to the next; `boundary` are the boundary batches of the result."""
    columns: dict[str, Column] = {name: runs[name].take(starts) for name in _OF_FIRST}
    summed = {name: np.add.reduceat(runs[name], starts) for name in _SUMMED}
    times = {
        "min_timestamp": np.minimum.reduceat(runs["min_timestamp"], starts),
        "max_timestamp": np.maximum.reduceat(runs["max_timestamp"], starts),
    }
    return Columns(RUN, len(starts), columns | summed | times | columns_of_boundaries(boundary, summed["batches"]))


def _gaps(parts: Sequence[ChunkRows]) -> Rows:
    gaps: list[Rows] = []
    for index, part in enumerate(parts):
        before = parts[index - 1].last_offset if index else None
        if before is not None and part.first_offset is not None and part.first_offset > before + 1:
            seam = (before + 1, part.first_offset - 1, part.first_position, part.segment)
            gaps.append(np.array([seam], dtype=GAP))
        gaps.append(part.gaps)
    return np.concatenate(gaps)


def _leader_epochs(parts: Sequence[ChunkRows]) -> Rows:
    starts = np.concatenate([part.leader_epochs for part in parts])
    changes = np.ones(len(starts), dtype=np.bool_)
    changes[1:] = starts["leader_epoch"][1:] != starts["leader_epoch"][:-1]
    return starts[changes]
