"""What a chunk's batches are compressed to, but for the rows of producers: counts, gaps, leader epochs, bounds."""

import numpy as np
import pytest

from kaudit.model.columns import Columns
from kaudit.reading.chunk_rows import ChunkRange, Counts, LastBatch
from kaudit.reading.chunk_summary import compress
from tests.logs import BASE_TIMESTAMP, Log, data, marker
from tests.properties.test_law import decode

CHUNK = ChunkRange(3, 0, 900, 1000)
LATEST = BASE_TIMESTAMP + 10**6


def placed(*batches):
    """A log of batches at the offsets given, a millisecond apart, the first one at BASE_TIMESTAMP + 1."""
    log = Log()
    for offset, batch in batches:
        log.next_offset = offset
        log.append(batch)
    return log


LOG = placed(
    (10, data(7, 0, 0, 2)),
    (12, data(-1, -1, -1, 3)),
    (15, marker(7, 0)),
    (20, data(7, 0, 2, 3, kept=1, leader_epoch=1)),
    (23, data(8, 0, 0, 2, kept=0, leader_epoch=1)),
    (26, data(9, 0, 0, 2, leader_epoch=4)),
)
SIZES = [len(batch.encode()) for batch in LOG.batches]
STARTS = [sum(SIZES[:number]) for number in range(len(SIZES))]


def summed(log_start=None, latest=LATEST, batches=None, **options):
    given = decode(LOG) if batches is None else batches
    return compress(given, CHUNK, log_start_offset=log_start, latest_timestamp=latest, **options)


def test_everything_that_is_counted():
    assert summed().counts == Counts(
        batches=6, records=2 + 3 + 1 + 1 + 0 + 2, bytes=sum(SIZES), largest_batch=max(SIZES), without_producer=1,
        partial_batches=2, empty_batches=1, markers=1, max_timestamp=BASE_TIMESTAMP + 6, min_timestamp=BASE_TIMESTAMP + 1,
        broker_timestamp=BASE_TIMESTAMP + 3, broker_timestamps=1,
    )  # fmt: skip


def test_where_rows_lie():
    rows = summed()
    assert (rows.segment, rows.start, rows.read_to, rows.stop) == CHUNK
    assert (rows.first_offset, rows.last_offset) == (10, 27)
    assert (rows.first_position, rows.last_position) == (0, STARTS[5])
    assert (rows.ordered, rows.wrapper_first, rows.offsets_present) == (True, False, 2 + 3 + 1 + 3 + 2 + 2)
    crc = int(decode(LOG)["crc"][5])
    assert rows.last_batch == LastBatch(STARTS[5], SIZES[5], 26, 27, 4, crc)
    assert rows.gaps.tolist() == [(16, 19, STARTS[3], 3), (25, 25, STARTS[5], 3)]
    names = ("leader_epoch", "base_offset", "last_offset", "position", "segment")
    assert [tuple(row[name] for name in names) for row in rows.leader_epochs] == [
        (0, 10, 11, 0, 3), (1, 20, 22, STARTS[3], 3), (4, 26, 27, STARTS[5], 3),
    ]  # fmt: skip


def test_rows_without_a_gap():
    rows = summed(batches=decode(LOG)[:3])
    assert (rows.offsets_present, rows.gaps.tolist(), rows.last_offset) == (6, [], 15)
    assert rows.leader_epochs["base_offset"].tolist() == [10]
    assert rows.markers["present_before"].tolist() == [5]


def test_offsets_that_batches_before_cover():
    rows = summed()
    runs = list(zip(rows.runs["producer_id"].tolist(), rows.runs["present_before_first"].tolist(), strict=True))
    assert runs == [(7, 0), (7, 6), (8, 9), (9, 11)]
    assert rows.markers["present_before"].tolist() == [5]


@pytest.mark.parametrize(
    ("log_start", "first", "covered"),
    [(10, 10, 13), (11, 10, 13), (12, 12, 11), (27, 26, 2), (28, None, 0)],
)
def test_batches_wholly_below_the_log_start_offset_are_only_counted(log_start, first, covered):
    rows = summed(log_start)
    assert (rows.first_offset, rows.offsets_present, rows.counts.batches) == (first, covered, 6)
    assert rows.last_batch is not None
    assert rows.last_batch.base_offset == 26


@pytest.mark.parametrize(
    ("later", "least", "greatest", "beyond"), [(6, 1, 6, None), (5, 1, 5, 6), (1, 1, 1, 2), (0, None, None, 1)]
)
def test_times_beyond_the_latest_are_not_counted(later, least, greatest, beyond):
    def moment(number):
        return None if number is None else BASE_TIMESTAMP + number

    rows = summed(latest=BASE_TIMESTAMP + later)
    assert rows.least_beyond == moment(beyond)
    expected = (-1, -1) if least is None else (moment(least), moment(greatest))
    assert (rows.counts.min_timestamp, rows.counts.max_timestamp) == expected


def test_no_batches():
    rows = summed(batches=decode(LOG)[:0])
    assert (rows.counts, rows.first_offset, rows.last_batch, rows.least_beyond) == (Counts(), None, None, None)
    assert (rows.ordered, rows.offsets_present, len(rows.batch_starts)) == (True, 0, 0)


def test_batches_that_do_not_ascend_are_only_counted():
    batches = decode(LOG)[[0, 2, 1]]
    rows = summed(batches=batches)
    assert (rows.ordered, rows.counts.batches, rows.offsets_present, len(rows.runs)) == (False, 3, 0, 0)
    assert (rows.first_position, rows.last_position) == (0, STARTS[2])
    twice = summed(batches=decode(LOG)[[0, 0]])
    assert not twice.ordered


def changed(**fields):
    """The log's batches with other values: of each field by the number of the batch."""
    batches = decode(LOG)
    columns = {name: batches[name].copy() for name in batches.dtype.names or ()}
    for name, values in fields.items():
        for number, value in values.items():
            columns[name][number] = value
    return Columns(batches.dtype, len(batches), columns)


def test_attributes_that_are_counted():
    # 8: LogAppendTime. 64: a delete horizon in place of the base timestamp; the cleaner's lies ahead of the records
    batches = changed(
        attributes={0: 64 | 8, 1: 64, 3: 64, 4: 8},
        base_timestamp={0: BASE_TIMESTAMP + 2, 1: BASE_TIMESTAMP + 2, 4: BASE_TIMESTAMP + 99},
    )
    counts = summed(batches=batches).counts
    assert (counts.log_append_time, counts.delete_horizons, counts.markers) == (2, 1, 1)


def test_messages_of_old_formats():
    # no producer ids, and wrappers that name their last offset only
    batches = changed(magic={0: 0, 1: 1, 2: 1}, record_count={0: -1, 1: -1})
    rows = summed(batches=batches)
    assert (rows.counts.legacy_batches, rows.counts.compressed_legacy, rows.counts.records) == (3, 2, 1 + 1 + 0 + 2)
    assert (rows.counts.without_producer, rows.counts.partial_batches, rows.counts.empty_batches) == (0, 2, 1)
    assert rows.wrapper_first
    assert rows.leader_epochs["leader_epoch"].tolist() == [1, 4]


def test_a_wrapper_begins_behind_its_neighbour():
    batches = changed(magic={5: 1}, record_count={5: -1}, base_offset={5: 27}, last_offset_delta={5: 0})
    rows = summed(batches=batches)
    assert rows.gaps["first_missing"].tolist() == [16]
    assert (rows.first_offset, rows.last_offset, rows.offsets_present, rows.wrapper_first) == (10, 27, 14, False)


def test_rows_of_several_segments():
    rows = summed(batches=decode(LOG)[:3], segments=np.array([4, 5, 6], dtype=np.int32))
    assert rows.leader_epochs["segment"].tolist() == [4]
    assert rows.markers["segment"].tolist() == [6]
    assert rows.batch_starts["segment"].tolist() == [4, 5, 6]
    assert rows.batch_starts["base_offset"].tolist() == [10, 12, 15]
    assert rows.batch_starts["position"].tolist() == STARTS[:3]


def test_digests_only_where_they_are_asked_for():
    assert summed().leaves is None
    assert summed(digests=True).leaves is not None
