"""Offset, time and transaction indexes of a segment: `%020d.index`, `%020d.timeindex` and `%020d.txnindex`.

Source of the formats: Kafka's AbstractIndex, OffsetIndex, TimeIndex, TransactionIndex and AbortedTxn. An active offset or time
index is preallocated: zeros after the last row are healthy, and are cut off when it is closed.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import Damage, ParsedRows, Reason
from kaudit.formats.wire_format import WireFormat
from kaudit.model.schema import Int16, Int32, Int64

Int64Column = NDArray[np.int64]


class OffsetIndexEntry(NamedTuple):
    """A row of a .index (OffsetIndex)."""

    relative_offset: Int32
    position: Int32


class TimeIndexEntry(NamedTuple):
    """A row of a .timeindex (TimeIndex)."""

    timestamp: Int64
    relative_offset: Int32


OFFSET_ENTRY: Final = WireFormat(OffsetIndexEntry)
TIME_ENTRY: Final = WireFormat(TimeIndexEntry)


class OffsetIndex(Struct, frozen=True, eq=False):
    """Rows of a .index: offsets relative to the segment's base offset, and byte positions in its .log.

    A row is written per append: its position is where the append starts, its offset the last one in it, which in magic
    0, 1 and on followers may lie several batches further on.

    Both columns have shape (n,) and hold what is stored (-2^31..2^31-1); order and meaning are not checked here. `padding_rows` counts the
    all-zero rows after the last one, `damage` lists a row cut short (a broker then rebuilds the index).
    """

    relative_offsets: Int64Column
    positions: Int64Column
    padding_rows: int
    damage: tuple[Damage, ...]

    def first(self, rows: int) -> "OffsetIndex":
        """Return the index with its first rows only."""
        return replace(self, relative_offsets=self.relative_offsets[:rows], positions=self.positions[:rows])


class TimeIndex(Struct, frozen=True, eq=False):
    """Rows of a .timeindex: the greatest timestamp (ms) so far and the offset of its record, relative to the base.

    Columns have shape (n,) and hold what is stored; `padding_rows` and `damage` as in OffsetIndex.
    """

    timestamps: Int64Column
    relative_offsets: Int64Column
    padding_rows: int
    damage: tuple[Damage, ...]

    def first(self, rows: int) -> "TimeIndex":
        """Return the index with its first rows only."""
        return replace(self, timestamps=self.timestamps[:rows], relative_offsets=self.relative_offsets[:rows])


def parse_offset_index(data: Buffer) -> OffsetIndex:
    """Decode a whole .index. Never raises."""
    rows, padding_rows, damage = _rows(data, np.dtype(OFFSET_ENTRY.descr))
    return OffsetIndex(
        rows["relative_offset"].astype(np.int64), rows["position"].astype(np.int64), padding_rows, damage
    )


def parse_time_index(data: Buffer) -> TimeIndex:
    """Decode a whole .timeindex. Never raises."""
    rows, padding_rows, damage = _rows(data, np.dtype(TIME_ENTRY.descr))
    return TimeIndex(rows["timestamp"].astype(np.int64), rows["relative_offset"].astype(np.int64), padding_rows, damage)


def _rows(data: Buffer, layout: np.dtype[Any]) -> tuple[NDArray[Any], int, tuple[Damage, ...]]:
    """Rows up to the zero padding, the number of padding rows, and the torn row if there is one."""
    count, left = divmod(len(data), layout.itemsize)
    damage: tuple[Damage, ...] = ()
    if left:
        end = len(data)
        damage = (Damage(end - left, end, Reason.TRUNCATED, f"{left} bytes of a row of {layout.itemsize}"),)
    rows = np.frombuffer(data, layout, count)
    # A row of zeros says "offset base at byte 0" or "at time 0": no broker ever writes one.
    used = np.flatnonzero(rows.view(f"V{layout.itemsize}") != np.void(bytes(layout.itemsize)))
    filled = int(used[-1]) + 1 if used.size else 0
    return rows[:filled], count - filled, damage


class AbortedTxnRow(NamedTuple):
    """One row as stored (AbortedTxn)."""

    version: Int16
    producer_id: Int64
    first_offset: Int64
    last_offset: Int64
    last_stable_offset: Int64


ABORTED_TXN: Final = WireFormat(AbortedTxnRow)
ABORTED_TXN_VERSION: Final = 0
"""The only version there ever was."""
_ABORTED_TXN: Final = ABORTED_TXN.struct()


class AbortedTxn(Struct, frozen=True):
    """One row, as written. `last_offset` is the abort marker's; `position` the row's byte in the file.

    `last_stable_offset` is the first offset of the oldest other open transaction, else the marker's plus one
    (brokers before 2.2.1, and 2.3.0, computed it differently: KAFKA-7866).
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    position: int


TransactionIndex = ParsedRows[AbortedTxn]
"""Damage is a torn last row (readers ignore it) or a row of an unknown version."""


def parse_transaction_index(data: Buffer) -> TransactionIndex:
    """Decode a whole .txnindex. Never raises; the order of the rows is not checked here."""
    whole = len(data) // ABORTED_TXN.size * ABORTED_TXN.size
    rows: list[AbortedTxn] = []
    damage: list[Damage] = []
    for index, (version, *fields) in enumerate(_ABORTED_TXN.iter_unpack(memoryview(data)[:whole])):
        position = index * ABORTED_TXN.size
        if version == ABORTED_TXN_VERSION:
            rows.append(AbortedTxn(fields[0], fields[1], fields[2], fields[3], position))
        else:
            damage.append(
                Damage(position, position + ABORTED_TXN.size, Reason.VERSION, f"row version {version}, only 0 exists")
            )
    if whole != len(data):
        left = len(data) - whole
        damage.append(Damage(whole, len(data), Reason.TRUNCATED, f"{left} bytes of a row of {ABORTED_TXN.size}"))
    return TransactionIndex(tuple(rows), tuple(damage))
