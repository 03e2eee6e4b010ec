"""One file of record batches, from front to back: batch rows and damage, and the bytes of a batch on demand."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from kaudit.model.damage import LogDamage
from kaudit.pipeline.inspect.batches import batch_rows, damage_row, is_batch
from kaudit.pipeline.inspect.kinds import Place
from kaudit.pipeline.inspect.wanted import Row, RowFilter
from kaudit.pipeline.stream import Piece, stream_batches
from kaudit.source.bytes import LocalFile
from kaudit.wire.record_batch import HEADER_SIZE, decode_headers


class SegmentReader:
    """Reads one file; memory is one window and what the caller asks for."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._source = LocalFile(Path(place.path))
        self.size = self._source.size()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._source.close()

    def pieces(self) -> Iterator[Piece]:
        """Yield sound batches and damage in file order."""
        return stream_batches(self._source, 0, self.size, self.size, expected_offset=self.place.base_offset)

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the file, fewer at its end."""
        buffer = bytearray(size)
        return bytes(buffer[: self._source.read_into(position, memoryview(buffer))])

    def rows(self, wanted: RowFilter) -> Iterator[Row]:
        """Yield the rows asked for: batches (also those whose CRC fails) and damage, in file order."""
        for piece in self.pieces():
            broken = sorted(piece.damages, key=lambda damage: damage.position)
            rows = batch_rows(piece.batches[wanted.mask(piece.batches)], self.place)
            if not broken:
                yield from rows
                continue
            waiting = iter(broken)
            damage = next(waiting, None)
            for row in rows:
                while damage is not None and damage.position < _position(row):
                    yield from self._broken(damage, wanted)
                    damage = next(waiting, None)
                yield row
            while damage is not None:
                yield from self._broken(damage, wanted)
                damage = next(waiting, None)

    def _broken(self, damage: LogDamage, wanted: RowFilter) -> Iterator[Row]:
        if not is_batch(damage):
            yield damage_row(damage, self.place)
            return
        raw = self.read(damage.position, min(damage.end - damage.position, _MARKER_BYTES))
        batches = decode_headers(memoryview(raw), np.zeros(1, dtype=np.int64), damage.position)
        if wanted.mask(batches)[0]:
            yield from batch_rows(batches, self.place, crc_valid=False)


_MARKER_BYTES = HEADER_SIZE + 4096
"""Enough to decode the header and any control record."""


def _position(row: Row) -> int:
    position = row["position"]
    assert isinstance(position, int)
    return position
