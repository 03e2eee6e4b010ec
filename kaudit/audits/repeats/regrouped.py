"""Records without producer ids that are in the log again: how many at most, and those that a client batched anew, as librdkafka does.

Looked for only where whole batches are copied: these show that a client without idempotence sent again. All of a partition is
compared if it is small enough, else what lies around the copies.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.audits.records.repeats import equal_rows
from kaudit.audits.repeats.identities import CONTENT
from kaudit.audits.repeats.records_again import Ranges, ReadAgain, RecordsAgain
from kaudit.model.batch import Batches, last_offsets
from kaudit.model.batch_fields import CONTROL_FLAG, LOG_APPEND_TIME_FLAG
from kaudit.model.log_rows import NonIdempotentBatch
from kaudit.model.producer_patterns import RegroupedRecords, RepeatedBatch, RepeatsAtMost
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import parse_identity
from kaudit.source.layout import PartitionDirectory

AROUND_BYTES = 1 << 20
"""Read before the first copy of a place and after the last one, where a partition is too large to be read."""
_MIN_RECORDS = 2
"""One equal record alone may be chance."""
_MOST_TIMES = 2
"""A record with more timestamps recurs for its own reasons, as those of load generators do."""


def regrouped_records(
    repeated: Sequence[RepeatedBatch], directory: PartitionDirectory, open_source: OpenSource
) -> tuple[list[RegroupedRecords], RepeatsAtMost | None]:
    """Return the records in a row, two or more, that are there again with their timestamps in batches of other sizes.

    And how many are there again at most, None where not all of the partition could be compared.
    """
    if any(segment.text is not None for segment in directory.segments):
        return [], None  # a text shows no records, or not where batches begin
    reader = IdentityReader(parse_identity(CONTENT))
    again = RecordsAgain(directory, open_source, reader, _has_no_producer)
    whole = again.fits()
    try:
        read = again.read(None if whole else _places([each for each in repeated if each.same_times], directory))
    except OSError:
        return [], None  # reported by the audit itself
    # what lies below it was deleted, though its segment is still there
    there = read.offsets >= (directory.log_start_offset or 0)
    appended = (read.batches["attributes"] & LOG_APPEND_TIME_FLAG != 0)[read.numbers]
    counted = [repeat.again.base_offset for repeat in repeated]
    others = there & ~appended & ~np.isin(read.batches["base_offset"], counted)[read.numbers]
    found = list(_in_a_row(read, *_again(read, others, ~appended)))
    if not (whole and read.ended):
        return found, None
    equal = _repeats(read.offsets, there, *read.contents.T)
    return found, RepeatsAtMost(
        equal if appended.any() else _repeats(read.offsets, there, *read.contents.T, read.timestamps), equal
    )


def _has_no_producer(batches: Batches) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (batches["producer_id"] < 0) & (batches["attributes"] & CONTROL_FLAG == 0)
    return found


def _repeats(offsets: NDArray[np.int64], chosen: NDArray[np.bool_], *identity: NDArray[Any]) -> int:
    """Return how many of the chosen records equal an earlier one."""
    _, begins = equal_rows(offsets[chosen], *(column[chosen] for column in identity))
    return int(np.count_nonzero(~begins))


def _again(
    read: ReadAgain, others: NDArray[np.bool_], timed: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indexes of records that equal earlier ones, in the order of the log, and of the first one of each."""
    known = np.flatnonzero(timed)
    order, begins = equal_rows(read.timestamps[known], *read.contents[known].T)
    at = read.timestamps[known][order]
    times = (
        np.add.reduceat(np.append(True, at[1:] != at[:-1])[: len(at)] | begins, np.flatnonzero(begins))
        if len(at)
        else at
    )
    often = np.zeros(len(read.offsets), dtype=np.bool_)
    often[known[order]] = (times > _MOST_TIMES)[np.cumsum(begins) - 1]
    own = np.flatnonzero(others)
    order, begins = equal_rows(read.offsets[own], *read.contents[own].T, read.timestamps[own])
    rows = own[order]
    first = rows[np.flatnonzero(begins)][np.cumsum(begins) - 1] if len(rows) else rows
    again = np.flatnonzero(~begins & ~often[rows])
    again = again[np.argsort(rows[again])]
    return rows[again], first[again]


def _in_a_row(read: ReadAgain, again: NDArray[np.intp], first: NDArray[np.intp]) -> Iterator[RegroupedRecords]:
    """Yield the records that equal earlier ones, and follow one another."""
    offsets = read.offsets[again]
    starts = np.flatnonzero(np.append(True, offsets[1:] != offsets[:-1] + 1)[: len(offsets)])
    ends = np.append(starts[1:], len(offsets))[: len(starts)]
    for start, stop in zip(starts.tolist(), ends.tolist(), strict=True):
        if stop - start >= _MIN_RECORDS:
            originals = read.offsets[first[start:stop]]
            yield RegroupedRecords(
                _batch(read, first[start]),
                _batch(read, again[start]),
                int(originals.min()),
                int(originals.max()),
                int(offsets[start]),
                int(offsets[stop - 1]),
            )


def _batch(read: ReadAgain, record: np.intp) -> NonIdempotentBatch:
    number = int(read.numbers[record])
    row = read.batches[number : number + 1]
    columns = {name: int(row[name][0]) for name in _COLUMNS}
    return NonIdempotentBatch(
        **columns,
        last_offset=int(last_offsets(row)[0]),
        ordinal=-1,
        records_crc=0,
        segment=int(read.segments[number]),
        regresses=False,
    )


_COLUMNS = ("base_offset", "crc", "size", "record_count", "base_timestamp", "max_timestamp", "position")


def _places(copies: Sequence[RepeatedBatch], directory: PartitionDirectory) -> Ranges:
    """Return by segment the ranges of bytes around copies."""
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for repeat in copies:
        one, other = repeat.first, repeat.again
        for segment in range(one.segment, other.segment + 1):
            size = directory.segments[segment].size
            start = max(one.position - AROUND_BYTES, 0) if segment == one.segment else 0
            stop = min(other.position + other.size + AROUND_BYTES, size) if segment == other.segment else size
            found[segment].append((start, stop))
    return found
