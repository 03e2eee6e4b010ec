"""Small segments read together: what a chunk costs by itself is what some thousand batches cost.

They are read together if their bytes, one after the other, read like one segment's without a fault. Otherwise each is read
by itself, so the results do not depend on it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import zip_longest

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.model.batch import Batches, concatenate, last_offsets
from kaudit.reading.batch_content import malformed_batches
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import ChunkSpec, OpenSource
from kaudit.reading.chunk_rows import ChunkRange, ChunkRows
from kaudit.reading.chunk_summary import compress
from kaudit.reading.segment import ByteRange
from kaudit.reading.unread_segments import require_whole
from kaudit.source.bytes import HeldBytes
from kaudit.source.layout import SegmentFile

SMALL_BYTES = 64 << 10
"""Longest segment that is read with others."""
TOGETHER_BYTES = 1 << 20
"""Most bytes of segments that are read together."""


def join_small(plan: Sequence[ChunkSpec], most_bytes: int, snapshot_offsets: Sequence[int]) -> Iterator[ChunkSpec]:
    """Yield a plan of whole segments, small ones that follow one another as one spec of at most `most_bytes`.

    A state is compared at each of `snapshot_offsets`, ascending: one that lies between batches of a segment keeps it apart.
    """
    most_bytes = min(most_bytes, TOGETHER_BYTES)
    group: list[ChunkSpec] = []
    size = 0
    for spec, following in zip_longest(plan, plan[1:]):
        # the last segment may be growing, and has no end that a snapshot could lie beyond
        small = following is not None and _is_small(spec) and not _snapshot_inside(spec, following, snapshot_offsets)
        size += spec.end
        if group and not (small and size <= most_bytes and group[-1].segment + 1 == spec.segment):
            yield _together(group)
            group = []
        if small:
            size = size if group else spec.end
            group.append(spec)
        else:
            yield spec


def _snapshot_inside(spec: ChunkSpec, following: ChunkSpec, offsets: Sequence[int]) -> bool:
    """Whether a state is compared between batches of a segment, and not at its first."""
    after = bisect_right(offsets, spec.file.base_offset)
    return bisect_left(offsets, following.file.base_offset, after) > after


def _is_small(spec: ChunkSpec) -> bool:
    start = spec.log_start_offset
    plain = spec.file.text is None and spec.file.fetched is None
    plain = plain and spec.saved is None and spec.start == 0
    return plain and spec.end <= SMALL_BYTES and (start is None or start <= spec.file.base_offset)


def _together(group: Sequence[ChunkSpec]) -> ChunkSpec:
    end = sum(spec.end for spec in group)
    return replace(group[0], stop=end, end=end, joined=[spec.file for spec in group[1:]])


def apart(spec: ChunkSpec) -> Iterator[ChunkSpec]:
    """Yield what `join_small` joined, a spec a segment."""
    for number, file in enumerate([spec.file, *spec.joined], spec.segment):
        yield replace(spec, segment=number, file=file, stop=file.size, end=file.size, joined=())


def read_together(spec: ChunkSpec, open_source: OpenSource) -> ChunkRows | None:
    """Read, verify and compress several segments as one; None if they have to be read one by one."""
    files = [spec.file, *spec.joined]
    joined = _content(files, open_source)
    batches = None if joined is None else _sound_batches(joined, spec.file.base_offset, verify=spec.verify)
    if batches is None or not len(batches):
        return None
    starts = np.cumsum([0, *(file.size for file in files)])
    begins = np.searchsorted(batches["position"], starts[:-1])
    if not _is_seamless(batches, begins, starts[:-1], [file.base_offset for file in files]):
        return None
    if malformed_batches(batches, spec.segment, joined if spec.decode else None)[0]:
        return None
    lengths = np.diff(begins, append=len(batches))
    own = batches.replaced("position", batches["position"] - np.repeat(starts[:-1], lengths))
    rows = compress(
        own,
        ChunkRange(spec.segment, 0, spec.end, spec.end),
        log_start_offset=None,
        latest_timestamp=spec.latest_timestamp,
        segments=np.repeat(np.arange(spec.segment, spec.segment + len(files), dtype=np.int32), lengths),
        digests=spec.digests,
    )
    rows.joined, rows.decoded = len(spec.joined), spec.decode
    return rows


def batches_in_order(segments: Sequence[SegmentFile], open_source: OpenSource) -> Iterator[tuple[int, Batches]]:
    """Yield the batches of whole segments, with the base offset of the first segment they are of; small ones are read together.

    Without the damage among them. Positions are not those in a file. Raises OSError.
    """
    for group in _groups(segments):
        joined = _content(group, open_source) if len(group) > 1 else None
        batches = None if joined is None else _sound_batches(joined, group[0].base_offset, verify=True)
        if batches is not None:
            yield group[0].base_offset, batches
            continue
        for segment in group:
            with closing(open_source(segment)) as source:
                where = ByteRange(0, segment.size, segment.size)
                for piece in stream_batches(source, where, expected_offset=None):
                    yield segment.base_offset, piece.batches


def _groups(segments: Sequence[SegmentFile]) -> Iterator[list[SegmentFile]]:
    group: list[SegmentFile] = []
    size = 0
    for segment in segments:
        small = 0 < segment.size <= SMALL_BYTES and segment.text is None and segment.fetched is None
        if group and not (small and size + segment.size <= TOGETHER_BYTES):
            yield group
            group, size = [], 0
        if small:
            group.append(segment)
            size += segment.size
        else:
            yield [segment]
    if group:
        yield group


def _content(files: Sequence[SegmentFile], open_source: OpenSource) -> HeldBytes | None:
    """The bytes of files one after the other; None if one cannot be read whole: reading it by itself says which, and why."""
    content = memoryview(bytearray(sum(file.size for file in files)))
    start = 0
    try:
        for file in files:
            with closing(open_source(file)) as source:
                if source.read_into(0, content[start : start + file.size]) < file.size:
                    require_whole(file, source)
            start += file.size
    except OSError:
        return None
    return HeldBytes(content)


def _sound_batches(content: HeldBytes, base_offset: int, *, verify: bool) -> Batches | None:
    """The batches of bytes that hold nothing else; None where there is damage among them."""
    where = ByteRange(0, content.size(), content.size())
    pieces = list(stream_batches(content, where, expected_offset=base_offset, verify=verify))
    if any(piece.damages or piece.still_growing for piece in pieces):
        return None
    return concatenate([piece.batches for piece in pieces])


def _is_seamless(batches: Batches, begins: NDArray[np.intp], starts: NDArray[np.int64], bases: Sequence[int]) -> bool:
    """Whether a batch begins where each segment does, with the offset the segment is named after, and none is missing."""
    if int(batches["magic"].min()) < CURRENT_MAGIC or int(begins[-1]) >= len(batches):
        return False
    firsts = batches["base_offset"]
    lasts = last_offsets(batches)
    begins_each = batches["position"][begins].tolist() == starts.tolist()
    return begins_each and not (firsts[1:] != lasts[:-1] + 1).any() and firsts[begins[1:]].tolist() == list(bases[1:])
