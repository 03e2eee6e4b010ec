"""Producer state snapshots, `%020d.snapshot`: what a broker loads at start instead of reading the whole log.

Source of the format: Kafka's ProducerStateManager.readSnapshot / writeSnapshot (4.0+: ProducerSnapshot.json, the same
bytes). The offset in the file's name is the exclusive end of the state.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.crc32c import crc32c
from kaudit.model.producer_snapshot import SnapshotEntry

VERSION: Final = 1
"""The only version there ever was."""
ENTRY_BYTES: Final = 46

_HEADER: Final = struct.Struct(">hIi")  # version, crc, count
_CRC_POSITION: Final = 2
_COUNT_POSITION: Final = 6
_FIELDS: Final = (
    ("producer_id", "i8"),
    ("producer_epoch", "i2"),
    ("last_sequence", "i4"),
    ("last_offset", "i8"),
    ("offset_delta", "i4"),
    ("timestamp", "i8"),
    ("coordinator_epoch", "i4"),
    ("current_txn_first_offset", "i8"),
)
_STORED: Final = np.dtype([(name, f">{kind}") for name, kind in _FIELDS])
ENTRY_DTYPE: Final = np.dtype([(name, f"={kind}") for name, kind in _FIELDS])
"""The columns of ProducerSnapshot.rows: the fields of SnapshotEntry in file order, native integers."""


class ProducerSnapshot(Struct, frozen=True, eq=False):
    """A whole, valid snapshot. `rows` has ENTRY_DTYPE: a million producers as objects would cost 0.9 GB."""

    crc: int
    rows: NDArray[Any]

    def entries(self) -> Iterator[SnapshotEntry]:
        """Yield the rows as objects, in file order."""
        for row in self.rows:
            yield SnapshotEntry(*row.tolist())


def parse_producer_snapshot(data: Buffer) -> ProducerSnapshot:
    """Decode a whole .snapshot file.

    Raises WireError, where a broker warns, deletes the file and takes the next older one: TRUNCATED (fewer bytes than
    the header or its count needs; no bytes at all is a file never synced), VERSION, CRC, COUNT (negative), LENGTH
    (bytes beyond the last entry, under a CRC that holds).
    """
    size = len(data)
    if size < _HEADER.size:
        raise WireError(size, Reason.TRUNCATED, f"snapshot of {size} bytes, its header needs {_HEADER.size}")
    version, crc, count = _HEADER.unpack_from(data)
    if version != VERSION:
        raise WireError(0, Reason.VERSION, f"snapshot version {version}, only {VERSION} exists")
    if count < 0:
        raise WireError(_COUNT_POSITION, Reason.COUNT, f"snapshot of {count} entries")
    end = _HEADER.size + count * ENTRY_BYTES
    if size < end:
        raise WireError(size, Reason.TRUNCATED, f"snapshot of {count} entries needs {end} bytes, has {size}")
    computed = crc32c(memoryview(data)[_COUNT_POSITION:])
    if computed != crc:
        raise WireError(_CRC_POSITION, Reason.CRC, f"snapshot CRC-32C {crc:08x} stored, {computed:08x} computed")
    if size > end:
        raise WireError(end, Reason.LENGTH, f"snapshot of {count} entries ends at byte {end}, has {size}")
    return ProducerSnapshot(crc, np.frombuffer(data, _STORED, count, _HEADER.size).astype(ENTRY_DTYPE))
