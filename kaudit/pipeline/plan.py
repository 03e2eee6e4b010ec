"""Cutting segments into chunks at batch boundaries."""

from collections.abc import Iterator
from dataclasses import replace

from kaudit.pipeline.read import CHUNK_BYTES, ChunkSpec
from kaudit.pipeline.window import Window
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import PartitionDirectory
from kaudit.wire import resync
from kaudit.wire.record_batch import LOG_OVERHEAD

_PROBE_BYTES = 64 << 10


def whole_segments(
    directory: PartitionDirectory, *, log_start_offset: int | None, verify: bool, latest_timestamp: int
) -> list[ChunkSpec]:
    """One spec a segment, for reading a partition from its first byte to its last; empty segments have none."""
    return [
        ChunkSpec(index, segment, 0, segment.size, segment.size, log_start_offset, verify, latest_timestamp)
        for index, segment in enumerate(directory.segments)
        if segment.size > 0
    ]


def cut(spec: ChunkSpec, source: ByteSource, chunk_bytes: int = CHUNK_BYTES) -> Iterator[ChunkSpec]:
    """Cut a segment into chunks of about `chunk_bytes` at positions where a sound batch begins.

    A position is only a guess that reading the chunk before it confirms: it must end exactly there.
    """
    start = spec.start
    while spec.stop - start > chunk_bytes * 3 // 2:
        boundary = _boundary_after(source, start + chunk_bytes, spec.end)
        if boundary is None or boundary >= spec.stop:
            break
        yield _part(spec, start, boundary)
        start = boundary
    yield _part(spec, start, spec.stop)


def _part(spec: ChunkSpec, start: int, stop: int) -> ChunkSpec:
    return replace(spec, start=start, stop=stop)


def _boundary_after(source: ByteSource, position: int, end: int) -> int | None:
    window = Window(source, end, _PROBE_BYTES)
    while position < end:
        view = window.load(position)
        if not len(view):
            return None
        after = end - (position + len(view))
        for at in resync.candidates(view, 0, after).tolist():
            size = int.from_bytes(view[at + 8 : at + LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
            if window.crc_holds(position + at, size):
                return int(position + at)
        position += max(len(view) - 60, 1)
    return None
