"""The batches of one partition's log, as far as producer state can be rebuilt from any offset.

Packed, since attempts may be any number: 47 bytes a batch instead of a Python object.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterator

from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch

_ROW = struct.Struct("<qqqhiiqBi")
_pack = _ROW.pack
# producer id, base offset, last offset, epoch, base sequence, last sequence, timestamp, kind, coordinator epoch
_PLAIN, _TRANSACTIONAL, _ABORT, _COMMIT = range(4)
_NO_COORDINATOR_EPOCH = -1


class History:
    """Batches with a producer id in offset order; offsets of others need not be known."""

    def __init__(self) -> None:
        self._rows = bytearray()

    def __len__(self) -> int:
        return len(self._rows) // _ROW.size

    def add_data(self, batch: DataBatch) -> None:
        """Append a batch of records."""
        self._rows += _pack(
            batch.producer_id,
            batch.base_offset,
            batch.last_offset,
            batch.producer_epoch,
            batch.base_sequence,
            batch.last_sequence,
            batch.max_timestamp,
            _TRANSACTIONAL if batch.is_transactional else _PLAIN,
            _NO_COORDINATOR_EPOCH,
        )

    def add_marker(self, marker: MarkerBatch) -> None:
        """Append an end of transaction marker."""
        offset, kind = marker.offset, _COMMIT if marker.commit else _ABORT
        self._rows += _pack(
            marker.producer_id,
            offset,
            offset,
            marker.producer_epoch,
            0,
            0,
            marker.timestamp,
            kind,
            marker.coordinator_epoch,
        )

    def truncate(self, offset: int) -> None:
        """Forget every batch that reaches `offset` or beyond."""
        del self._rows[self._first_reaching(offset) * _ROW.size :]

    def between(self, start: int, end: int) -> Iterator[DataBatch | MarkerBatch]:
        """Yield what ends at `start` or later and before `end`, in order; a batch that straddles `start` is whole."""
        for at in range(self._first_reaching(start) * _ROW.size, self._first_reaching(end) * _ROW.size, _ROW.size):
            pid, base, last, epoch, base_sequence, last_sequence, timestamp, kind, coordinator = _ROW.unpack_from(
                self._rows, at
            )
            if kind in (_ABORT, _COMMIT):
                yield MarkerBatch(pid, epoch, coordinator, base, timestamp, kind == _COMMIT)
            else:
                yield DataBatch(pid, epoch, base_sequence, last_sequence, base, last, timestamp, kind == _TRANSACTIONAL)

    def base_of(self, offset: int) -> int:
        """Return the base offset of the batch that holds `offset`; `offset` itself where that is not known."""
        index = self._first_reaching(offset)
        base = _ROW.unpack_from(self._rows, index * _ROW.size)[1] if index < len(self) else offset
        return int(min(base, offset))

    def _first_reaching(self, offset: int) -> int:
        """Index of the first batch whose last offset is `offset` or more."""
        rows = self._rows
        return bisect_left(range(len(self)), offset, key=lambda index: _ROW.unpack_from(rows, index * _ROW.size)[2])
