"""Where a log begins and ends that was judged, and which of several replicas counts."""

import numpy as np
import pytest
from msgspec.structs import replace

from kaudit.listings.partition_join import replica_places
from kaudit.listings.timeline import MissingEntries
from kaudit.model.damage import MissingCause
from kaudit.partition.digests import AuditedLog, partition_digest
from kaudit.reading.log_tail import log_end
from kaudit.scanning.block_histories import BlockHistories
from kaudit.source.layout import PartitionDirectory, SegmentFile
from tests.scanning.test_not_covered import NOTHING_WRONG


def directory(*segments, log_start=None):
    files = [SegmentFile(f"/{base}.log", f"{base}.log", base, size, 0) for base, size in segments]
    return PartitionDirectory("orders", 3, "b1", "/d", "/d/orders-3", "", files, log_start_offset=log_start)


@pytest.mark.parametrize(
    ("segments", "next_offset", "log_start", "end"),
    [
        ([(10, 9), (20, 9)], 25, 0, 25),
        # a segment was rolled and nothing written to it yet
        ([(10, 9), (20, 0)], 15, 0, 20),
        ([(10, 9), (20, 0)], 25, 0, 25),
        ([(10, 9), (20, 9)], 15, 0, 15),
        # without a batch it ends where it begins
        ([(10, 9), (20, 9)], None, 0, 10),
        ([(10, 9), (20, 9)], None, 12, 12),
        ([(10, 0), (20, 0)], None, 12, 20),
        ([(10, 0)], None, 0, 10),
        ([], None, 7, 7),
        ([], None, 0, 0),
    ],
)
def test_where_a_log_ends(segments, next_offset, log_start, end):
    assert log_end(directory(*segments), next_offset, log_start) == end


@pytest.mark.parametrize(
    ("log_start", "begins_at", "next_offset", "bounds"),
    [
        (None, None, 25, (10, 25)),
        (12, None, 25, (12, 25)),
        (5, None, 25, (10, 25)),
        (12, 14, 25, (14, 25)),
        (None, 3, 25, (10, 25)),
        (None, 30, 25, (25, 25)),
        (None, None, None, (10, 10)),
        (40, None, None, (40, 40)),
    ],
)
def test_which_offsets_were_judged(log_start, begins_at, next_offset, bounds):
    judged = AuditedLog(directory((10, 9), (20, 9), log_start=log_start), next_offset, begins_at, True, False)
    found = partition_digest(judged, None, 64)
    assert (found.start_offset, found.end_offset) == bounds
    assert (found.topic, found.partition, found.replica) == ("orders", 3, "b1")
    assert (found.batches, found.digest, found.compacted, found.damaged) == (0, None, True, False)
    assert partition_digest(replace(judged, damaged=True, compacted=False), None, 64).damaged
    assert (found.ranges is None) == (bounds[0] == bounds[1])


def test_of_replicas_the_one_that_reaches_furthest_counts_the_first_of_equal_ones():
    def part(partition, replica, end, topic="orders"):
        own = PartitionDirectory(topic, partition, replica, f"/{replica}", "", "", [])
        return replace(NOTHING_WRONG, directory=own, log_end_offset=end)

    parts = [part(0, "b1", 5), part(0, "b2", 7), part(0, "b3", 7), part(1, "b1", None), part(1, "b2", 0), part(2, "b1", 1),
             part(0, "b9", 1, "payments")]  # fmt: skip
    places = replica_places(parts, BlockHistories())
    assert [place.key for place in places] == [
        (one.directory.topic, one.directory.partition, one.directory.replica) for one in parts
    ]
    assert [place.counted for place in places] == [False, True, False, True, False, True, True]
    assert {place.blocks for place in places} == {None}
    assert replica_places([part(1, "b1", None), part(1, "b2", 1)], BlockHistories())[1].counted


@pytest.mark.parametrize(
    ("base", "log_start", "first_sequence", "missing"),
    [
        (0, None, 5, []),
        (10, None, 5, [(0, 9, 10)]),
        (10, 12, 5, [(0, 11, 12)]),
        (10, 3, 5, [(0, 9, 10)]),
        # a producer that begins at sequence 0 begins in this log
        (10, None, 0, []),
        (10, None, -1, []),
    ],
)
def test_what_lay_before_the_log(base, log_start, first_sequence, missing):
    part = replace(NOTHING_WRONG, directory=directory((base, 9), log_start=log_start))
    runs = np.array(
        [(20, 25, first_sequence)], dtype=[(n, int) for n in ("first_offset", "last_offset", "first_sequence")]
    )
    markers = np.empty(0, dtype=[("offset", int)])
    found = list(MissingEntries(part).of_producer(runs, markers))  # type: ignore[arg-type]
    assert [(entry.first_offset, entry.last_offset, entry.offsets) for entry in found] == missing
    assert {entry.cause for entry in found} <= {MissingCause.LOG_START}
    assert list(MissingEntries(part).of_producer(runs[:0], markers)) == []  # type: ignore[arg-type]
