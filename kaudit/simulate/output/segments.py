"""A replica's segments with their indexes, as a broker leaves them behind.

Source: LogSegment.append (when an index gets a row), OffsetIndex, TimeIndex, TransactionIndex.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from kaudit.formats.sidefiles.indexes import ABORTED_TXN, ABORTED_TXN_VERSION, OFFSET_ENTRY, TIME_ENTRY
from kaudit.simulate.cluster.replica_log import ReplicaLog, StoredBatch
from kaudit.simulate.encode.record_batch import placed

INDEX_INTERVAL_BYTES = 4096
"""index.interval.bytes: an index row at most every so many bytes."""
_INDEX_ROW = OFFSET_ENTRY.struct()
_TIME_ROW = TIME_ENTRY.struct()
_TRANSACTION_ROW = ABORTED_TXN.struct()
_NO_TIMESTAMP = -1


class SegmentFiles(NamedTuple):
    """One segment: its base offset and the contents of its files, `transactions` empty where there is no .txnindex."""

    base_offset: int
    log: bytes
    offsets: bytes
    times: bytes
    transactions: bytes


def segments_of(log: ReplicaLog) -> Iterator[SegmentFiles]:
    """Yield a replica's segments in order."""
    bounds = [*log.segments, log.log_end]
    for base, following in pairwise(bounds):
        batches = log.batches[log.position(base) : log.position(following)]
        content, offsets, times = _indexed(base, batches)
        rows = b"".join(
            _TRANSACTION_ROW.pack(
                ABORTED_TXN_VERSION, row.producer_id, row.first_offset, row.last_offset, row.last_stable_offset
            )
            for row in log.memory.producers.aborted
            if base <= row.last_offset < following
        )
        yield SegmentFiles(base, content, offsets, times, rows)


def _indexed(base: int, batches: list[StoredBatch]) -> tuple[bytes, bytes, bytes]:
    content: list[bytes] = []
    offsets, times = bytearray(), bytearray()
    position = since_row = 0
    latest, latest_offset, indexed = _NO_TIMESTAMP, base, _NO_TIMESTAMP
    for batch in batches:
        if batch.max_timestamp > latest:
            latest, latest_offset = batch.max_timestamp, batch.last_offset
        if since_row > INDEX_INTERVAL_BYTES:
            offsets += _INDEX_ROW.pack(batch.last_offset - base, position)
            if latest > indexed:
                times += _TIME_ROW.pack(latest, latest_offset - base)
                indexed = latest
            since_row = 0
        content.append(placed(batch.data, batch.base_offset, batch.leader_epoch))
        position += len(batch.data)
        since_row += len(batch.data)
    if latest > indexed:
        # A segment that is closed gets its greatest timestamp as the last row.
        times += _TIME_ROW.pack(latest, latest_offset - base)
    return b"".join(content), bytes(offsets), bytes(times)
