"""A scan in numbers, of partitions made by hand."""

import pytest
from msgspec.structs import replace

from kaudit.model.finding import Finding
from kaudit.model.result import BrokerVersions, PartitionSummary, UnlistedFindings
from kaudit.model.severity import Confidence, Severity
from kaudit.reading.chunk_rows import Counts
from kaudit.scanning.summaries import partition_summary, segment_rows, total
from kaudit.scanning.versions import newest_profile
from kaudit.source.layout import FetchedRange, PartitionDirectory, SegmentFile, Unreadable
from tests.scanning.test_not_covered import NOTHING_WRONG

NEWEST = newest_profile(BrokerVersions("auto", None, None, None, ()))
SEGMENTS = [SegmentFile(f"/{base}.log", f"{base}.log", base, size, 5) for base, size in ((10, 100), (20, 7), (30, 0))]
DIRECTORY = PartitionDirectory("orders", 3, "b1", "/d", "/d/orders-3", "", SEGMENTS)


def summary(directory, asked=None, **more):
    part = replace(NOTHING_WRONG, directory=directory, counts=Counts(batches=4, records=9, bytes=55), **more)
    return partition_summary(part, NEWEST, log_start_offset=asked)


def test_the_numbers_of_a_partition():
    assert summary(DIRECTORY, producers=2, runs=3, compacted=True) == PartitionSummary(
        topic="orders", partition=3, replica="b1", log_start_offset=10, log_end_offset=100, last_stable_offset=100,
        compacted=True, segments=3, bytes=107, batches=4, records=9, producers=2, runs=3,
    )  # fmt: skip


def test_of_a_partition_that_brokers_sent_the_bytes_are_those_read():
    fetched = replace(SEGMENTS[0], fetched=FetchedRange("b:9092", "orders", 3, 10, 10, 100))
    found = summary(replace(DIRECTORY, segments=[fetched]))
    assert (found.segments, found.bytes) == (0, 55)
    assert list(segment_rows(replace(DIRECTORY, segments=[fetched]), ())) == []


@pytest.mark.parametrize(
    ("log_start", "asked", "removed", "whole", "start"),
    [
        (None, None, [], True, 10),
        (12, None, [], True, 12),
        (5, None, [], True, 10),
        (12, 0, [], True, 0),
        (12, 40, [], True, 40),
        # what retention deleted while it was read
        (12, None, ["/10.log"], True, 20),
        (25, None, ["/10.log"], True, 25),
        (None, None, ["/10.log", "/20.log", "/30.log"], True, 10),
        # of segments by themselves nobody knows what lay before them
        (None, None, [], False, None),
        (12, None, ["/10.log"], False, 12),
    ],
)
def test_where_the_log_starts(log_start, asked, removed, whole, start):
    directory = replace(DIRECTORY, log_start_offset=log_start, whole_directory=whole)
    found = summary(directory, asked, removed=[Unreadable(path, "deleted") for path in removed])
    assert found.log_start_offset == start
    assert summary(replace(directory, segments=[])).log_start_offset == log_start


def test_what_became_of_each_segment():
    unread = [Unreadable("/20.log", "no such file", vanished=True)]
    found = list(segment_rows(DIRECTORY, unread))
    assert [(row.segment, row.base_offset, row.bytes, row.status, row.reason) for row in found] == [
        ("10.log", 10, 100, "read", None), ("20.log", 20, 7, "vanished", "no such file"), ("30.log", 30, 0, "empty", None),
    ]  # fmt: skip
    assert {(row.topic, row.partition, row.replica, row.modified) for row in found} == {("orders", 3, "b1", 5)}
    (first, *_) = segment_rows(DIRECTORY, [Unreadable("/10.log", "permission denied")])
    assert (first.path, first.status, first.reason) == ("/10.log", "unreadable", "permission denied")


def test_totals():
    def finding(severity):
        return Finding("KA001", "crc-mismatch", severity, Confidence.CERTAIN, "made")

    parts = [
        summary(DIRECTORY, producers=2, runs=3),
        summary(replace(DIRECTORY, segments=SEGMENTS[:1]), producers=5, runs=4),
        summary(replace(DIRECTORY, partition=4, segments=[]), producers=1, runs=1),
    ]
    severities = [Severity.ERROR, Severity.WARNING, Severity.ERROR, Severity.NOTE, Severity.ERROR]
    unlisted = [
        UnlistedFindings("KA001", Severity.WARNING, "orders", range(10)),
        UnlistedFindings("KA002", Severity.NOTE, None, range(5)),
    ]
    found = total(parts, [finding(severity) for severity in severities], unlisted)
    assert (found.partitions, found.segments, found.bytes, found.batches, found.records) == (3, 4, 207, 12, 27)
    # replicas have the same producers
    assert (found.producers, found.runs, found.omitted) == (5 + 1, 8, 15)
    assert found.findings == {"error": 3, "warning": 11, "note": 6}
    assert total([], []).findings == {"error": 0, "warning": 0, "note": 0}
