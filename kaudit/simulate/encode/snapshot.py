"""Producer snapshots as brokers write them. Source of the format: ProducerStateManager.writeSnapshot."""

from collections.abc import Iterable

from msgspec.structs import astuple

from kaudit.formats.log.crc32c import crc32c
from kaudit.formats.sidefiles.producer_snapshot import ENTRY, HEADER, VERSION
from kaudit.model.producer_snapshot import SnapshotEntry

_ENTRY = ENTRY.struct(*SnapshotEntry.__struct_fields__)
_HEAD = HEADER.struct("version", "crc")
_COUNT = HEADER.struct("count")


def producer_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    """Encode a whole .snapshot."""
    rows = [_ENTRY.pack(*astuple(entry)) for entry in entries]
    body = _COUNT.pack(len(rows)) + b"".join(rows)
    return _HEAD.pack(VERSION, crc32c(body)) + body
