"""The batches of a producer around a place in the log, read again, and what their records are recognised by."""

from collections.abc import Sequence
from contextlib import closing
from itertools import chain
from typing import NamedTuple

from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.crc_algebra import records_crcs
from kaudit.model.batch import Batches, concatenate
from kaudit.model.batch_fields import CODEC_MASK, CONTROL_FLAG, TRANSACTIONAL_FLAG
from kaudit.model.log_rows import BoundaryBatch
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource, boundary_from
from kaudit.reading.run_batches import boundary_batches
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory

NEIGHBOURS = 64
"""Batches of a producer compared on either side of a place: many times what clients have in flight."""
_BLOCK_BYTES = 1 << 20
_HELD_BLOCKS = 32
"""Blocks kept: places compared with one another are near one another."""
NEAR_BYTES = 1 << 20
FAR_BYTES = 8 << 20
"""Bytes of the log in which they are looked for where the nearest NEAR_BYTES hold too few."""


class Side(NamedTuple):
    """The producer's batches on one side of a place, in offset order."""

    batches: list[BoundaryBatch]
    keys: list[tuple[int, ...]]
    """Of each its records' CRC and size, its record count, offsets and codec: equal for equal records."""
    times: list[int]
    """Base timestamps: with equal records all timestamps are equal if these are. Brokers leave them alone."""


class ProducerBatches:
    """Reads batches of producers again that are outside transactions: up to `reaches` bytes, more while there are too few."""

    def __init__(
        self,
        directory: PartitionDirectory,
        open_source: OpenSource,
        reaches: Sequence[int] = (NEAR_BYTES, FAR_BYTES),
    ) -> None:
        self._directory = directory
        self._open = open_source
        self._reaches = reaches
        self._blocks: dict[tuple[int, int], Batches] = {}

    def before(self, last: BoundaryBatch, producer_id: int, epoch: int) -> Side:
        """Return the last batches of the epoch up to `last`.

        Raises:
            OSError: a segment cannot be read any more.

        """
        end = last.position + 1
        for reach in self._reaches:
            ranges, room = [], reach
            for number in range(last.segment, -1, -1):
                stop = end if number == last.segment else self._directory.segments[number].size
                ranges.append((number, ByteRange(max(stop - room, 0), stop, stop)))
                room -= stop
                if room <= 0:
                    break
            side = _joined(
                [self._read(*where, producer_id, epoch) for where in reversed(ranges)], slice(-NEIGHBOURS, None)
            )
            if room > 0 or len(side.batches) == NEIGHBOURS:
                break
        return side

    def after(self, first: BoundaryBatch, producer_id: int, epoch: int) -> Side:
        """Return the first batches of the epoch from `first` on; raises as `before`."""
        segments = self._directory.segments
        for reach in self._reaches:
            ranges, room = [], reach
            for number in range(first.segment, len(segments)):
                begin, end = first.position if number == first.segment else 0, segments[number].size
                ranges.append((number, ByteRange(begin, min(begin + room, end), end)))
                room -= end - begin
                if room <= 0:
                    break
            side = _joined([self._read(*where, producer_id, epoch) for where in ranges], slice(NEIGHBOURS))
            if room > 0 or len(side.batches) == NEIGHBOURS:
                break
        return side

    def _read(self, segment: int, where: ByteRange, producer_id: int, epoch: int) -> Side:
        parts = []
        for number in range(where.start // _BLOCK_BYTES, -(-where.stop // _BLOCK_BYTES)):
            batches = self._block(segment, number)
            own = (batches["producer_id"] == producer_id) & (batches["producer_epoch"] == epoch)
            own &= (batches["position"] >= where.start) & (batches["position"] < where.stop)
            parts.append(batches[own])
        return _side(concatenate(parts), segment)

    def _block(self, segment: int, number: int) -> Batches:
        """The producers' data batches that start in a block of a segment, in offset order."""
        key = (segment, number)
        if key not in self._blocks:
            if len(self._blocks) >= _HELD_BLOCKS:
                self._blocks.pop(next(iter(self._blocks)))
            parts = []
            file, start = self._directory.segments[segment], number * _BLOCK_BYTES
            with closing(self._open(file)) as source:
                start = boundary_from(source, start, file.size) if start > 0 else 0
                where = ByteRange(start, min((number + 1) * _BLOCK_BYTES, file.size), file.size)
                for piece in stream_batches(source, where, expected_offset=None):
                    batches = piece.batches
                    data = batches["attributes"] & (CONTROL_FLAG | TRANSACTIONAL_FLAG) == 0
                    parts.append(batches[data & (batches["magic"] == CURRENT_MAGIC) & (batches["producer_id"] >= 0)])
            self._blocks[key] = concatenate(parts)
        return self._blocks[key]


def _joined(sides: Sequence[Side], kept: slice) -> Side:
    batches, keys, times = (list(chain.from_iterable(columns))[kept] for columns in zip(*sides, strict=True))
    return Side(batches, keys, times)


def _side(batches: Batches, segment: int) -> Side:
    columns = (
        records_crcs(batches),
        batches["size"],
        batches["record_count"],
        batches["last_offset_delta"],
        batches["attributes"] & CODEC_MASK,
    )
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    # rows read again do not know what lies before them
    return Side(boundary_batches(batches, 0, segment), keys, batches["base_timestamp"].tolist())
