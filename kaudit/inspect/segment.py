"""One file of record batches, or batches from brokers: batch rows, damage, and the bytes of a batch on demand."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self

import numpy as np
from msgspec.structs import replace

from kaudit.broker.partition.log_loading import loading_effect
from kaudit.broker.releases.version import Version
from kaudit.errors import NothingToAuditError
from kaudit.formats.log.batch_header import HEADER_SIZE
from kaudit.formats.log.record_batch import decode_headers
from kaudit.inspect.batch_rows import batch_rows, damage_row, is_batch
from kaudit.inspect.row_filter import RowFilter
from kaudit.inspect.rows import LogFile, Row
from kaudit.model.batch import Batches, last_offsets
from kaudit.model.damage import DamageKind, LogDamage
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.segment import ByteRange, Piece
from kaudit.source.bytes import ByteSource, read_bytes
from kaudit.source.discover import discover
from kaudit.source.file_kinds import SEGMENT, segment_base_offset
from kaudit.source.kafka.options import ClusterOptions
from kaudit.source.layout import FetchedRange, PartitionDirectory
from kaudit.source.schemes import filesystem, open_fetched
from kaudit.source.uri import Uri


def open_source(file: LogFile) -> ByteSource:
    """Open a file of batches, or what stands for one where brokers send them. Raises OSError."""
    if file.fetched is None:
        return filesystem(file.path).open(file.path)
    return open_fetched(file.fetched)


class SegmentReader:
    """Reads one file; memory is one window and what the caller asks for. `version` is of the broker that loads it."""

    def __init__(self, file: LogFile, version: Version | None = None) -> None:
        self.file = file
        self._version = version
        self._source = open_source(file)
        self.size = self._source.size()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._source.close()

    def pieces(self) -> Iterator[Piece]:
        """Yield valid batches and damage in file order."""
        return stream_batches(self._source, ByteRange(0, self.size, self.size), expected_offset=self.file.base_offset)

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the file, fewer at its end."""
        return read_bytes(self._source, position, size)

    def rows(self, wanted: RowFilter) -> Iterator[Row]:
        """Yield the rows asked for: batches (also those whose CRC fails) and damage, in file order."""
        following = _Following(self.file.base_offset)
        for piece in self.pieces():
            broken = sorted(piece.damages, key=lambda damage: damage.position)
            rows = batch_rows(piece.batches[wanted.mask(piece.batches)], self.file)
            if not broken:
                following.take(piece.batches)
                yield from rows
                continue
            waiting = iter(broken)
            damage = next(waiting, None)
            for row in rows:
                while damage is not None and damage.position < _position(row):
                    yield from self._broken(damage, wanted, following.expected(piece.batches, damage.position))
                    damage = next(waiting, None)
                yield row
            while damage is not None:
                yield from self._broken(damage, wanted, following.expected(piece.batches, damage.position))
                damage = next(waiting, None)
            following.take(piece.batches)

    def _broken(self, damage: LogDamage, wanted: RowFilter, expected: int | None) -> Iterator[Row]:
        if not is_batch(damage):
            missing = self._missing(damage, expected)
            lost = damage.resynchronised and missing[0] is not None
            verdict = loading_effect(damage, self._later_segments(), was_batch=lost, version=self._version)
            yield damage_row(damage, self.file, verdict, missing)
            return
        size = damage.end - damage.position if self.file.fetched is None else _MARKER_BYTES
        raw = self.read(damage.position, min(size, _MARKER_BYTES))
        batches = decode_headers(memoryview(raw), np.zeros(1, dtype=np.int64), damage.position)
        if wanted.mask(batches)[0]:
            yield from batch_rows(batches, self.file, crc_valid=False)

    def _missing(self, damage: LogDamage, expected: int | None) -> tuple[int | None, int | None]:
        """Return the first and last offset that the damage replaced, None where they are not known, as for garbage at the end."""
        if not damage.resynchronised:
            return (expected if damage.kind is DamageKind.TORN else None), None
        following = self._base_offset_at(damage.end)
        return (expected, following - 1) if expected is not None and following > expected else (None, None)

    def _base_offset_at(self, position: int) -> int:
        return int.from_bytes(self.read(position, 8), "big", signed=True)

    def _later_segments(self) -> int:
        """Return how many segments beside this one hold later offsets; 0 where the directory is gone. Raises OSError."""
        own = self.file.base_offset
        if own is None or self.file.fetched is not None:
            return 0
        directory = self.file.path.absolute().parent
        try:
            names = [entry.name for entry in filesystem(directory).entries(directory)]
        except FileNotFoundError:
            return 0
        bases = [segment_base_offset(name) for name in names]
        return sum(1 for base in bases if base is not None and base > own)


class _Following:
    """The offset that should come next, after the valid batches so far."""

    def __init__(self, base_offset: int | None) -> None:
        self._next = base_offset

    def take(self, batches: Batches) -> None:
        if len(batches):
            self._next = int(last_offsets(batches)[-1]) + 1

    def expected(self, batches: Batches, position: int) -> int | None:
        """Return the offset that should have stood at `position` of a piece."""
        before = int(np.searchsorted(batches["position"], position))
        return int(last_offsets(batches)[before - 1]) + 1 if before else self._next


_MARKER_BYTES = HEADER_SIZE + 4096
"""Enough to decode the header and any control record."""


def _position(row: Row) -> int:
    position = row["position"]
    assert isinstance(position, int)
    return position


_NEAR_BYTES = 2 << 20
"""Bytes on either side of an offset that hold its neighbours."""
_OF_FILES = ("segment", "position", "end")


def fetched_files(place: Uri, cluster: ClusterOptions, around: int | None) -> Iterator[LogFile]:
    """Yield a stand-in for a segment of each partition of a topic, of those near an offset if that is given.

    Raises:
        UrlError: the cluster has no such topic or partition.
        NothingToAuditError: it cannot be asked.

    """
    layout = discover([str(place)], cluster=cluster)
    for failed in layout.unreadable:
        raise NothingToAuditError(f"nothing to inspect under {failed.path}: {failed.reason}")
    for entry in layout.partitions:
        yield _file(entry, around)


def _file(entry: PartitionDirectory, around: int | None) -> LogFile:
    (segment,) = entry.segments
    assert segment.fetched is not None
    fetched = segment.fetched if around is None else _near(segment.fetched, around)
    return LogFile(
        path=Uri.parse(segment.path),
        kind=SEGMENT,
        topic=entry.topic,
        partition=entry.partition,
        replica=entry.replica,
        base_offset=fetched.first_offset,
        fetched=fetched,
    )


def _near(place: FetchedRange, offset: int) -> FetchedRange:
    distance = max(_NEAR_BYTES // place.bytes_per_offset, 1)
    first = min(max(place.readable_from, offset - distance), place.end_offset)
    # a batch may begin below the first offset that is asked for
    return replace(place, readable_from=first, end_offset=max(min(place.end_offset, offset + distance), first))


def without_places(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield rows whose fields that only files have are None."""
    for row in rows:
        yield {**row, **{name: None for name in _OF_FILES if name in row}}
