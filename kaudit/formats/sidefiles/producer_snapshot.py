"""Producer state snapshots, `%020d.snapshot`: what a broker loads at start instead of reading the whole log.

Source of the format: Kafka's ProducerStateManager.readSnapshot / writeSnapshot (4.0+: ProducerSnapshot.json, the same
bytes). The offset in the file's name is the exclusive end of the state.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.crc import crc32c
from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.wire_format import WireFormat
from kaudit.model.dtypes import dtype_of
from kaudit.model.schema import Int16, Int32, UInt32
from kaudit.model.side_files import SnapshotEntry

VERSION: Final = 1
"""The only version there ever was."""


class SnapshotHeader(NamedTuple):
    """The start of the file; the CRC-32C covers what follows the crc."""

    version: Int16
    crc: UInt32
    entry_count: Int32


HEADER: Final = WireFormat(SnapshotHeader)
ENTRY: Final = WireFormat(SnapshotEntry)
ENTRY_DTYPE: Final = dtype_of(SnapshotEntry)
"""The columns of ProducerSnapshot.rows: the fields of SnapshotEntry in file order, native integers."""
_STORED: Final = np.dtype(ENTRY.descr)
_HEADER: Final = HEADER.struct()
_HEAD: Final = HEADER.struct("version", "crc")
_COUNT: Final = HEADER.struct("entry_count")
_ENTRY: Final = ENTRY.struct()


class ProducerSnapshot(Struct, frozen=True, eq=False):
    """A whole, valid snapshot. `rows` has ENTRY_DTYPE, shape (n,): a million producers as objects would cost 0.9 GB."""

    crc: int
    rows: NDArray[Any]

    def entries(self) -> Iterator[SnapshotEntry]:
        """Yield the rows as objects, in file order."""
        for row in self.rows:
            yield SnapshotEntry(*row.tolist())


def parse_producer_snapshot(data: Buffer) -> ProducerSnapshot:
    """Decode a whole .snapshot file. Raises as `validate_producer_snapshot` does."""
    crc, count = validate_producer_snapshot(data)
    return ProducerSnapshot(crc, np.frombuffer(data, _STORED, count, HEADER.size).astype(ENTRY_DTYPE))


def validate_producer_snapshot(data: Buffer) -> tuple[int, int]:
    """Check a whole .snapshot file, and return its CRC and the number of its entries.

    Raises WireError, where a broker warns, deletes the file and takes the next older one: TRUNCATED (fewer bytes than
    the header or its count needs; no bytes at all is a file never synced), VERSION, CRC, COUNT (negative), LENGTH
    (bytes beyond the last entry, under a CRC that holds).
    """
    size = len(data)
    if size < HEADER.size:
        raise WireError(size, Reason.TRUNCATED, f"snapshot of {size} bytes, its header needs {HEADER.size}")
    version, crc, count = _HEADER.unpack_from(data)
    if version != VERSION:
        raise WireError(0, Reason.VERSION, f"snapshot version {version}, only {VERSION} exists")
    if count < 0:
        raise WireError(HEADER.offset("entry_count"), Reason.COUNT, f"snapshot of {count} entries")
    end = HEADER.size + count * ENTRY.size
    if size < end:
        raise WireError(size, Reason.TRUNCATED, f"snapshot of {count} entries needs {end} bytes, has {size}")
    computed = crc32c(memoryview(data)[HEADER.offset("entry_count") :])
    if computed != crc:
        raise WireError(HEADER.offset("crc"), Reason.CRC, f"snapshot CRC-32C {crc:08x} stored, {computed:08x} computed")
    if size > end:
        raise WireError(end, Reason.LENGTH, f"snapshot of {count} entries ends at byte {end}, has {size}")
    return crc, count


def producer_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    """Encode a whole .snapshot file."""
    rows = [_ENTRY.pack(*entry) for entry in entries]
    body = _COUNT.pack(len(rows)) + b"".join(rows)
    return _HEAD.pack(VERSION, crc32c(body)) + body
