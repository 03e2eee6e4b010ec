"""Records whose timestamps lie in the future of the files that hold them."""

from typing import Final

import numpy as np
from msgspec.structs import replace

from kaudit.model.batch_fields import LOG_APPEND_TIME_FLAG
from kaudit.model.record_loss import FutureRecords
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.log_tail import batches_from, producers_records
from kaudit.source.layout import PartitionDirectory

MARGIN_MS: Final = 86_400_000
"""How far clients' clocks may be ahead: what retention keeps for a day longer is no trouble."""
_FIRST_TIMES_MS: Final = 1_455_000_000_000
"""Records have timestamps since 0.10 (February 2016): a file that says it was written before has no time of its own."""
MAX_BYTES: Final = 1 << 30
"""Segments are read up to so many bytes of one partition: those beyond are not looked at."""


def future_records(directory: PartitionDirectory, clock_ms: int, open_source: OpenSource) -> FutureRecords | None:
    """Return the records that are dated more than MARGIN_MS after they can have been written; None without any.

    `clock_ms` is the newest time that a broker wrote, -1 if none did. A file was written last at the time of its modification: a
    copy's is later. The time of a broker (LogAppendTime) is taken for wrong only if the last batch has an earlier one of a broker.

    Raises:
        OSError: a segment cannot be read.

    """
    found: FutureRecords | None = None
    left = MAX_BYTES
    last_appended_ms = _last_append_time(directory, open_source)
    for number, segment in enumerate(directory.segments):
        written_by = max(segment.modified_ms, clock_ms)
        left -= segment.size
        if segment.modified_ms < _FIRST_TIMES_MS or left < 0:
            continue
        own = _in_segment(directory, number, written_by, last_appended_ms, open_source)
        if own is not None:
            found = own if found is None else _joined(found, own)
    return found


def _last_append_time(directory: PartitionDirectory, open_source: OpenSource) -> int | None:
    """Return the time that a broker gave the last batch; None if a client did."""
    last: int | None = None
    for batches in batches_from(directory, open_source, directory.segments[-1].base_offset):
        by_broker = batches["attributes"][-1] & LOG_APPEND_TIME_FLAG
        last = int(batches["max_timestamp"][-1]) if by_broker else None
    return last


def _in_segment(
    directory: PartitionDirectory, number: int, written_by: int, last_appended_ms: int | None, open_source: OpenSource
) -> FutureRecords | None:
    segment = directory.segments[number]
    alone = replace(directory, segments=(segment,))
    first, last, records, newest, broker_ahead = -1, -1, 0, -1, False
    for batches in batches_from(alone, open_source, segment.base_offset):
        counts = producers_records(batches)
        by_broker = batches["attributes"] & LOG_APPEND_TIME_FLAG != 0
        ahead = (batches["max_timestamp"] > written_by + MARGIN_MS) & (counts > 0)
        if last_appended_ms is None or last_appended_ms > written_by + MARGIN_MS:
            ahead &= ~by_broker
        chosen = np.flatnonzero(ahead)
        if not len(chosen):
            continue
        first = int(batches["base_offset"][chosen[0]]) if first < 0 else first
        last = int(batches["base_offset"][chosen[-1]]) + int(counts[chosen[-1]]) - 1
        records += int(counts[chosen].sum())
        newest = max(newest, int(batches["max_timestamp"][chosen].max()))
        broker_ahead = broker_ahead or bool(by_broker[chosen].any())
    if not records:
        return None
    return FutureRecords(first, last, records, number, 1, segment.size, newest, written_by, broker_ahead)


def _joined(before: FutureRecords, after: FutureRecords) -> FutureRecords:
    return FutureRecords(
        first_offset=before.first_offset,
        last_offset=after.last_offset,
        records=before.records + after.records,
        segment=before.segment,
        segments=before.segments + 1,
        kept_bytes=before.kept_bytes + after.kept_bytes,
        newest_ms=max(before.newest_ms, after.newest_ms),
        written_by_ms=max(before.written_by_ms, after.written_by_ms),
        broker_ahead=before.broker_ahead or after.broker_ahead,
    )
