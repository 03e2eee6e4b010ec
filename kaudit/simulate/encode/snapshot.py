"""Producer snapshots as brokers write them. Source of the format: ProducerStateManager.writeSnapshot."""

from collections.abc import Iterable

from crc32c import crc32c

from kaudit.formats.sidefiles.producer_snapshot import ENTRY, HEADER, VERSION
from kaudit.model.side_files import SnapshotEntry

_ENTRY = ENTRY.struct()
_HEAD = HEADER.struct("version", "crc")
_COUNT = HEADER.struct("entry_count")


def producer_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    """Encode a whole .snapshot."""
    rows = [_ENTRY.pack(*entry) for entry in entries]
    body = _COUNT.pack(len(rows)) + b"".join(rows)
    return _HEAD.pack(VERSION, crc32c(body)) + body
