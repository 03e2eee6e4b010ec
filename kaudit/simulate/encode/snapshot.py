"""Producer snapshots as brokers write them. Source of the format: ProducerStateManager.writeSnapshot."""

import struct
from collections.abc import Iterable

from kaudit.formats.log.crc32c import crc32c
from kaudit.formats.sidefiles.producer_snapshot import VERSION
from kaudit.model.producer_snapshot import SnapshotEntry

_ENTRY = struct.Struct(">qhiqiqiq")
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")


def producer_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    """Encode a whole .snapshot."""
    rows = [
        _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.offset_delta,
            entry.timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(rows)) + b"".join(rows)
    return _HEAD.pack(VERSION, crc32c(body)) + body
