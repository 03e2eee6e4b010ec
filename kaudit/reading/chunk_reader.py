"""A chunk of a segment to rows: the function every engine schedules, and its serial form for disordered partitions."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import reduce
from typing import NamedTuple

import numpy as np

from kaudit.model.batch import Batches, concatenate, last_offsets
from kaudit.model.coverage import NO_LINES, TextLines
from kaudit.model.damage import LogDamage
from kaudit.model.result import CoverageGap
from kaudit.reading.batch_content import malformed_batches
from kaudit.reading.batch_order import OrderFilter
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import ChunkSpec, OpenSource, boundary_from
from kaudit.reading.chunk_rows import ChunkRange, ChunkRows
from kaudit.reading.chunk_summary import compress
from kaudit.reading.segment import ByteRange, Piece
from kaudit.reading.unread_segments import require_whole
from kaudit.source.bytes import ByteSource
from kaudit.source.kafka.fetched_segment import NO_ABORTS

CHUNK_BYTES = 32 << 20
"""Target size of a chunk: large enough to compress, small enough for several to be in flight."""

CHUNK_BATCHES = 1 << 18
"""Most batches of a chunk that is read in order."""


def read_chunk(spec: ChunkSpec, source: ByteSource, most_batches: int = sys.maxsize) -> ChunkRows:
    """Read, verify and compress one chunk; after `most_batches` batches, only up to where another chunk may begin.

    The rows' `stop` is lower than the chunk's if the chunk has more.
    """
    (rows,) = _compressed(spec, _read(spec, source, most_batches), (), source)
    return rows


def read_parts(spec: ChunkSpec, source: ByteSource, cuts: Sequence[int]) -> Iterator[ChunkRows]:
    """Read a chunk and compress it in parts: the batches below the first of these offsets, from there to the next, ...

    `cuts` ascend, as the chunk's offsets do.
    """
    yield from _compressed(spec, _read(spec, source, sys.maxsize), cuts, source)


class _Read(NamedTuple):
    """The pieces of a chunk that ends at `stop`."""

    pieces: list[Piece]
    stop: int


def _read(spec: ChunkSpec, source: ByteSource, most_batches: int) -> _Read:
    pieces: list[Piece] = []
    at, stop, expected_offset, room = spec.start, spec.stop, _expected(spec), most_batches
    while at < stop:
        for piece in stream_batches(
            source, ByteRange(at, stop, spec.end), expected_offset=expected_offset, verify=spec.verify
        ):
            pieces.append(piece)
            at, room = piece.read_to, room - len(piece.batches)
            if room <= 0 and at < stop:
                stop = min(boundary_from(source, at, spec.end), stop)
                room, expected_offset = sys.maxsize, _after(piece.batches)
                break
    return _Read(pieces, stop)


def _after(batches: Batches) -> int | None:
    return int(last_offsets(batches[-1:])[0]) + 1 if len(batches) else None


def _compressed(spec: ChunkSpec, read: _Read, cuts: Sequence[int], source: ByteSource) -> Iterator[ChunkRows]:
    batches = [piece.batches for piece in read.pieces]
    damages = [damage for piece in read.pieces for damage in piece.damages]
    read_to = read.pieces[-1].read_to if read.pieces else spec.start
    coverage_gaps = frozenset[CoverageGap]().union(*(piece.coverage_gaps for piece in read.pieces))
    start, rest = spec.start, concatenate(batches)
    for part, following in _below(rest, cuts):
        position = int(following["position"][0])
        own, damages = _parted(damages, position)
        rows = rows_of(spec, source, part, own, ChunkRange(spec.segment, start, position, position))
        rows.coverage_gaps = coverage_gaps
        yield rows
        start, rest = position, following
    rows = rows_of(spec, source, rest, damages, ChunkRange(spec.segment, start, read_to, read.stop))
    rows.still_growing = any(piece.still_growing for piece in read.pieces)
    rows.coverage_gaps = coverage_gaps
    rows.text_lines = reduce(TextLines.and_also, (piece.text_lines for piece in read.pieces), NO_LINES)
    rows.listed_aborts = NO_ABORTS.union(*(piece.listed_aborts for piece in read.pieces))
    yield rows


def _below(batches: Batches, cuts: Sequence[int], before: int | None = None) -> Iterator[tuple[Batches, Batches]]:
    """Split batches in offset order at each cut; yield (part below the cut, rest), neither of them empty.

    A part may be empty if a batch with base offset `before` precedes these batches.
    """
    for offset in cuts:
        index = int(np.searchsorted(batches["base_offset"], offset))
        if index < len(batches) and (index > 0 or (before is not None and before < offset)):
            part, batches, before = batches[:index], batches[index:], None
            yield part, batches


def _parted(damages: list[LogDamage], position: int) -> tuple[list[LogDamage], list[LogDamage]]:
    """Return the damages before a position, and those at or after it."""
    before = [damage for damage in damages if damage.position < position]
    return before, [damage for damage in damages if damage.position >= position]


def read_serially(specs: Sequence[ChunkSpec], open_source: OpenSource, cuts: Sequence[int] = ()) -> Iterator[ChunkRows]:
    """Read a whole partition's segments one after the other, settling the order of batches that break it.

    `specs` are one spec a segment, whole; `cuts` as for read_parts. Slower than chunks side by side; for partitions
    whose offsets do not ascend or whose damage crosses a chunk's end.
    """
    order = OrderFilter()
    for number, spec in enumerate(specs):
        last_segment = number == len(specs) - 1
        following = None if last_segment else specs[number + 1].file.base_offset
        order.enter_segment(spec.file.base_offset, following)
        with closing(open_source(spec.file)) as source:
            yield from _read_segment(spec, source, order, cuts, last_segment=last_segment)
            require_whole(spec.file, source)


def _read_segment(
    spec: ChunkSpec, source: ByteSource, order: OrderFilter, cuts: Sequence[int], *, last_segment: bool
) -> Iterator[ChunkRows]:
    start, read_to, growing = spec.start, spec.start, False
    held: list[Batches] = []
    damages: list[LogDamage] = []
    coverage_gaps: frozenset[CoverageGap] = frozenset()
    text_lines = NO_LINES
    listed_aborts = NO_ABORTS
    for piece, settled, found in _in_order(spec, source, order):
        rest = settled
        damages.extend(found)
        if piece is not None:
            read_to = piece.read_to
            growing = growing or piece.still_growing
            coverage_gaps |= piece.coverage_gaps
            text_lines = text_lines.and_also(piece.text_lines)
            listed_aborts |= piece.listed_aborts
        for part, following in _below(settled, cuts, int(held[-1]["base_offset"][-1]) if held else None):
            position = int(following["position"][0])
            own, damages = _parted(damages, position)
            rows = rows_of(
                spec, source, concatenate([*held, part]), own, ChunkRange(spec.segment, start, position, position)
            )
            rows.coverage_gaps = coverage_gaps
            yield rows
            start, held, rest = position, [], following
        held += [rest] if len(rest) else []
        # a text has no positions of its own: it ends where it began, and its batches are counted
        if piece is not None and (read_to - start >= CHUNK_BYTES or sum(map(len, held)) >= CHUNK_BATCHES):
            rows = rows_of(spec, source, concatenate(held), damages, ChunkRange(spec.segment, start, read_to, read_to))
            rows.coverage_gaps = coverage_gaps
            yield rows
            start, held, damages = read_to, [], []
    rows = rows_of(spec, source, concatenate(held), damages, ChunkRange(spec.segment, start, read_to, read_to))
    rows.still_growing = growing and last_segment
    rows.listed_aborts = listed_aborts
    rows.coverage_gaps = coverage_gaps
    rows.text_lines = text_lines
    yield rows


def _in_order(
    spec: ChunkSpec, source: ByteSource, order: OrderFilter
) -> Iterator[tuple[Piece | None, Batches, list[LogDamage]]]:
    """Yield each piece of a segment with the batches whose place it settled and all damage; the rest without a piece."""
    for piece in stream_batches(
        source, ByteRange(spec.start, spec.stop, spec.end), expected_offset=_expected(spec), verify=spec.verify
    ):
        batches, disorder = order.feed(piece.batches)
        yield piece, batches, piece.damages + disorder
    # batches held back for the batches after them belong to this segment: settle them before the next one begins
    yield None, *order.finish()


def rows_of(
    spec: ChunkSpec, source: ByteSource | None, batches: Batches, damages: list[LogDamage], read: ChunkRange
) -> ChunkRows:
    """Compress the valid batches of a range, with the damage found in it. `source` is for records, if they are decoded."""
    rows = compress(
        batches,
        read,
        log_start_offset=spec.log_start_offset,
        latest_timestamp=spec.latest_timestamp,
        digests=spec.digests,
    )
    _attach(rows, sorted(damages, key=lambda damage: damage.position), batches)
    rows.malformed, rows.more_malformed = malformed_batches(batches, spec.segment, source if spec.decode else None)
    rows.decoded = spec.decode
    return rows


def _attach(rows: ChunkRows, damages: list[LogDamage], batches: Batches) -> None:
    """Give the rows their damages, each with the offset expected at its place."""
    rows.damages = damages
    if not damages:
        return
    positions, ends = batches["position"], last_offsets(batches) + 1
    if (positions[1:] < positions[:-1]).any():  # a swapped pair is in offset order here, not in file order
        order = np.argsort(positions, kind="stable")
        positions, ends = positions[order], ends[order]
    before = np.searchsorted(positions, [damage.position for damage in damages]) - 1
    rows.expected_offsets = [int(ends[index]) if index >= 0 else None for index in before.tolist()]


def _expected(spec: ChunkSpec) -> int | None:
    return spec.file.base_offset if spec.start == 0 else spec.expected_offset
