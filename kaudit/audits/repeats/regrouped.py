"""Records without producer ids that a client batched anew before it sent them again, as librdkafka does.

Looked for only around copies of whole batches: these show that a client without idempotence sent again.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import NamedTuple

from kaudit.audits.repeats.sessions import merged_ranges
from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.records import read_records
from kaudit.model.batch_fields import CONTROL_FLAG, LOG_APPEND_TIME_FLAG
from kaudit.model.log_rows import NonIdempotentBatch
from kaudit.model.producer_patterns import RegroupedRecords, RepeatedBatch
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource, boundary_from
from kaudit.reading.content_rows import read_batch
from kaudit.reading.record_content import MAX_BATCH_BYTES, content_of
from kaudit.reading.segment import ByteRange
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import PartitionDirectory

AROUND_BYTES = 1 << 20
"""Read before the first copy of a place and after the last one."""
MOST_RECORDS, MOST_BYTES = 200_000, 64 << 20
"""Records of one partition that are compared, and bytes of their batches; what lies beyond is not counted."""
_MIN_RECORDS = 2
"""One equal record alone may be chance."""
_MOST_TIMES = 2
"""A record with more timestamps recurs for its own reasons, as those of load generators do."""


_COLUMNS = ("base_offset", "crc", "size", "record_count", "base_timestamp", "max_timestamp", "position")


class _Record(NamedTuple):
    offset: int
    content: int
    timestamp: int
    batch: NonIdempotentBatch


def regrouped_records(
    repeated: Sequence[RepeatedBatch], directory: PartitionDirectory, open_source: OpenSource
) -> list[RegroupedRecords]:
    """Return the records in a row, two or more, that are there again with their timestamps in batches of other sizes."""
    if any(segment.text is not None for segment in directory.segments):
        return []  # a text shows no records, or not where batches begin
    copies = [repeat for repeat in repeated if repeat.same_times]
    log_start = directory.log_start_offset or 0  # what lies below it was deleted, though its segment is still there
    counted = {repeat.again.base_offset for repeat in repeated}
    first: dict[tuple[int, int], _Record] = {}
    times: defaultdict[int, set[int]] = defaultdict(set)
    again: list[tuple[_Record, _Record]] = []
    try:
        for record in islice(_records(copies, directory, open_source), MOST_RECORDS):
            times[record.content].add(record.timestamp)
            if record.batch.base_offset in counted or record.offset < log_start:
                continue
            original = first.setdefault((record.content, record.timestamp), record)
            if original is not record:
                again.append((original, record))
    except OSError:
        return []  # reported by the audit itself
    return list(_in_a_row([pair for pair in again if len(times[pair[1].content]) <= _MOST_TIMES]))


def _in_a_row(pairs: Sequence[tuple[_Record, _Record]]) -> Iterator[RegroupedRecords]:
    """Yield the pairs whose second records follow one another."""
    group: list[tuple[_Record, _Record]] = []
    for pair in pairs:
        if group and pair[1].offset != group[-1][1].offset + 1:
            yield from _regrouped(group)
            group = []
        group.append(pair)
    yield from _regrouped(group)


def _regrouped(group: Sequence[tuple[_Record, _Record]]) -> Iterator[RegroupedRecords]:
    if len(group) < _MIN_RECORDS:
        return
    originals = [original.offset for original, _ in group]
    (original, record), (_, last) = group[0], group[-1]
    yield RegroupedRecords(original.batch, record.batch, min(originals), max(originals), record.offset, last.offset)


def _records(
    copies: Sequence[RepeatedBatch], directory: PartitionDirectory, open_source: OpenSource
) -> Iterator[_Record]:
    """Yield the records around copies, in offset order. Raises OSError where a segment cannot be read any more."""
    room = MOST_BYTES
    for segment, ranges in sorted(_places(copies, directory).items()):
        with closing(open_source(directory.segments[segment])) as source:
            for batch in _batches(source, segment, directory.segments[segment].size, ranges):
                room -= batch.size
                if room < 0:
                    return
                try:
                    records = list(read_records(read_batch(source, batch.position, batch.size), MAX_BATCH_BYTES))
                except (WireError, ValueError):
                    continue  # reported where records are decoded
                for record in records:
                    yield _Record(record.offset, content_of(record), record.timestamp, batch)


def _batches(
    source: ByteSource, segment: int, size: int, ranges: Sequence[tuple[int, int]]
) -> Iterator[NonIdempotentBatch]:
    """Yield the batches without producer ids, and with their clients' timestamps, that begin in ranges of a segment."""
    for start, stop in ranges:
        begin = boundary_from(source, start, size) if start else 0
        for piece in stream_batches(source, ByteRange(begin, stop, size), expected_offset=None):
            rows = piece.batches
            plain = (rows["magic"] == CURRENT_MAGIC) & (rows["producer_id"] < 0)
            plain &= rows["attributes"] & (CONTROL_FLAG | LOG_APPEND_TIME_FLAG) == 0
            for row in rows[plain]:
                columns = {name: int(row[name]) for name in _COLUMNS}
                last_offset = columns["base_offset"] + max(int(row["last_offset_delta"]), 0)
                yield NonIdempotentBatch(
                    **columns, last_offset=last_offset, ordinal=-1, records_crc=0, segment=segment, regresses=False
                )


def _places(copies: Sequence[RepeatedBatch], directory: PartitionDirectory) -> dict[int, list[tuple[int, int]]]:
    """Return by segment the ranges of bytes around copies, ascending and apart."""
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for repeat in copies:
        one, other = repeat.first, repeat.again
        for segment in range(one.segment, other.segment + 1):
            size = directory.segments[segment].size
            start = max(one.position - AROUND_BYTES, 0) if segment == one.segment else 0
            stop = min(other.position + other.size + AROUND_BYTES, size) if segment == other.segment else size
            found[segment].append((start, stop))
    return {segment: merged_ranges(ranges) for segment, ranges in found.items()}
