"""Rows of indexes against the segment they belong to, each rule at its bound, and the byte that a finding names.

OffsetIndex and TimeIndex of Kafka: offsets relative to the segment's, rising (strictly in an offset index); timestamps rising
strictly; positions inside the segment.
"""

import struct

import numpy as np
import pytest

from kaudit.audits.sidefiles.index_audit import IndexedSegment, Probe, wrong_offset_rows, wrong_time_rows
from kaudit.engines import local
from kaudit.formats.sidefiles.indexes import OffsetIndex, TimeIndex
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import find_input
from tests.checks.sidefiles.findings import side_file_reports
from tests.logs import Log, data

SEGMENT = IndexedSegment(number=0, base_offset=100, end_offset=150, size=1000)


def times(*rows):
    stamps, offsets = zip(*rows, strict=True)
    return TimeIndex(np.array(stamps, np.int64), np.array(offsets, np.int64), 0, ())


def offsets(*rows):
    relative, positions = zip(*rows, strict=True)
    return OffsetIndex(np.array(relative, np.int64), np.array(positions, np.int64), 0, ())


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([(10, 0), (11, 0), (12, 49)], []),
        ([(10, 0), (10, 3)], [(1, "timestamp 10 follows 10")]),
        ([(10, 0), (12, 3), (11, 4), (9, 5)], [(2, "timestamp 11 follows 12")]),
        ([(10, 3), (11, 2)], [(1, "offset 102 follows 103")]),
        ([(10, 0), (11, 50)], [(1, "offset 150, the segment ends before 150")]),
        ([(10, -1), (11, 0)], [(0, "offset -1 relative to the base")]),
        ([(10, 60), (10, 59)], [
            (1, "timestamp 10 follows 10"),
            (1, "offset 159 follows 160"),
            (0, "offset 160, the segment ends before 150"),
        ]),
    ],
)  # fmt: skip
def test_rows_of_a_time_index(rows, wrong):
    assert list(wrong_time_rows(times(*rows), SEGMENT)) == wrong


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([(0, 0), (1, 0), (49, 999)], []),
        ([(5, 0), (5, 70)], [(1, "offset 105 follows 105")]),
        ([(5, 0), (4, 70)], [(1, "offset 104 follows 105")]),
        ([(5, 70), (6, 69)], [(1, "position 69 follows 70")]),
        ([(5, 0), (6, -1)], [(1, "position -1 follows 0")]),
        ([(5, 0), (6, 1000)], [(1, "position 1000 lies beyond the 1000 bytes of the segment")]),
        ([(5, 0), (50, 70)], [(1, "offset 150, the segment ends before 150")]),
        ([(-3, 0), (6, 70)], [(0, "offset -3 relative to the base")]),
    ],
)
def test_rows_of_an_offset_index(rows, wrong):
    assert list(wrong_offset_rows(offsets(*rows), SEGMENT, [])) == wrong


def test_where_the_log_is_damaged_rows_are_compared_with_each_other_only():
    unknown = IndexedSegment(0, 100, None, None)
    assert list(wrong_time_rows(times((10, 0), (11, 500)), unknown)) == []
    assert list(wrong_offset_rows(offsets((5, 0), (600, 5000)), unknown, [])) == []


@pytest.mark.parametrize(
    ("probe", "wrong"),
    [
        (Probe(1, 106), []),
        (Probe(1, 104), []),  # an append of several batches: the row has the last one's offset
        (Probe(1, 107), [(1, "offset 106 at position 70, where the batch of offset 107 starts")]),
        (Probe(1, None), [(1, "no batch starts at position 70")]),
    ],
)
def test_a_row_points_to_the_batch_of_its_offset_or_one_before(probe, wrong):
    assert list(wrong_offset_rows(offsets((5, 0), (6, 70)), SEGMENT, [probe])) == wrong


def partition(root, time_rows, offset_rows=((1, 69),)):
    """Two segments of ten and five batches of 69 bytes; the indexes of the first have these rows."""
    log = Log()
    for sequence in range(15):
        log.append(data(1, 0, sequence))
    directory = log.write(root / "b" / "t-0", segment_starts=(10,))
    for base in (0, 10):
        (directory / f"{base:020d}.index").write_bytes(b"")
        (directory / f"{base:020d}.timeindex").write_bytes(b"")
    (directory / f"{0:020d}.timeindex").write_bytes(b"".join(struct.pack(">qi", *row) for row in time_rows))
    (directory / f"{0:020d}.index").write_bytes(b"".join(struct.pack(">ii", *row) for row in offset_rows))
    return directory


@pytest.mark.parametrize(
    ("rows", "byte"),
    [
        ([(10, 0), (11, 9)], None),
        ([(10, 0), (11, 1), (11, 2)], 24),
        ([(10, 0), (11, 2), (12, 1), (13, 3)], 24),
        ([(10, 0), (11, 10)], 12),
        ([(10, -2), (11, 9)], 0),
    ],
)
def test_the_byte_of_a_wrong_row_of_a_time_index(rows, byte, tmp_path):
    expected = [] if byte is None else [("KA504", "warning", f"{0:020d}.timeindex", byte)]
    assert side_file_reports(partition(tmp_path, rows)) == expected


@pytest.mark.parametrize(
    ("rows", "byte"),
    [
        ([(0, 0), (9, 621)], None),
        ([(1, 69), (2, 138), (2, 207)], 16),
        ([(1, 69), (2, 140)], 8),
        ([(1, 69), (1, 138)], 8),
        ([(9, 690)], 0),
        ([(0, 69)], 0),
    ],
)
def test_the_byte_of_a_wrong_row_of_an_offset_index(rows, byte, tmp_path):
    expected = [] if byte is None else [("KA503", "warning", f"{0:020d}.index", byte)]
    assert side_file_reports(partition(tmp_path, [(10, 0)], rows)) == expected


def test_an_index_that_ends_inside_a_row(tmp_path):
    directory = partition(tmp_path, [(10, 0), (11, 1)])
    for suffix, whole in (("timeindex", 24), ("index", 8)):
        path = directory / f"{0:020d}.{suffix}"
        path.write_bytes(path.read_bytes() + b"\1\2\3")
        assert ("KA504" if whole == 24 else "KA503", "warning", path.name, whole) in side_file_reports(directory)


def test_indexes_that_are_missing_are_one_note_each(tmp_path):
    directory = partition(tmp_path, [(10, 0)])
    for path in directory.glob("*.timeindex"):
        path.unlink()
    (directory / f"{10:020d}.index").unlink()
    assert side_file_reports(directory) == [
        ("KA503", "note", f"{10:020d}.index", None),
        ("KA504", "note", f"{0:020d}.timeindex", None),
    ]


def is_looked_up(position):
    """The rule of analysis.scan.batch_starts, in whole numbers."""
    return (position * 0x9E3779B1 % 2**32) * position < 2**18 * 2**32


def large_partition(root, changed=None):
    """A segment of 600 batches of 4 KiB, and its index: the row of `changed` points a byte behind where it should."""
    log = Log()
    for sequence in range(600):
        log.append(data(1, 0, sequence, payload=bytes(4000)))
    directory = log.write(root / "b" / "t-0")
    size = (directory / f"{0:020d}.log").stat().st_size // 600
    rows = [(number, number * size + (number == changed)) for number in range(600)]
    (directory / f"{0:020d}.index").write_bytes(b"".join(struct.pack(">ii", *row) for row in rows))
    (directory / f"{0:020d}.timeindex").write_bytes(b"")
    return directory, size


@pytest.mark.parametrize("chunk_bytes", [None, 100_000])
def test_rows_are_looked_up_among_batches_that_reading_left(tmp_path, chunk_bytes):
    directory, size = large_partition(tmp_path)
    assert side_file_reports(directory, chunk_bytes=chunk_bytes) == []
    looked_up = [number for number in range(600) if is_looked_up(number * size + 1)]
    assert all(number in looked_up for number in range(2**18 // size))
    assert 100 < len(looked_up) < 300
    left_out = next(number for number in range(599, 0, -1) if number not in looked_up)
    for changed, position in ((looked_up[-1], looked_up[-1] * 8), (left_out, None)):
        directory, _ = large_partition(tmp_path / str(changed), changed)
        expected = [] if position is None else [("KA503", "warning", f"{0:020d}.index", position)]
        assert side_file_reports(directory, chunk_bytes=chunk_bytes) == expected


def test_an_index_that_changed_is_compared_with_what_an_earlier_audit_read(tmp_path):
    directory, _ = large_partition(tmp_path)
    state = str(tmp_path / "state")
    assert side_file_reports(directory, state=state) == []
    large_partition(tmp_path, 20)
    assert side_file_reports(directory, state=state) == [("KA503", "warning", f"{0:020d}.index", 160)]


def test_a_row_of_a_batch_that_was_being_appended_is_not_wrong(tmp_path, monkeypatch):
    directory, size = large_partition(tmp_path)
    log = directory / f"{0:020d}.log"
    content = log.read_bytes()
    last = max(number for number in range(600) if is_looked_up(number * size))
    log.write_bytes(content[: last * size + 100])
    listed = find_input(ScanOptions([str(directory)]))
    log.write_bytes(content)
    monkeypatch.setattr(local, "find_evidence", lambda options: (options, listed))
    assert side_file_reports(directory) == []
