"""Batches of a log as replays take them: every field, of each kind, and what cannot be read."""

import struct
import zlib
from typing import Any

import pytest

from kaudit.audits.log_events.placement import LoggedBatch
from kaudit.replay.reconstruction.log_rows import LogRow, LogRows
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import find_input
from kaudit.source.schemes import open_segment
from tests.logs import BASE_TIMESTAMP, Batch, data, marker

APPEND_TIME = 0x08
NO_COORDINATOR = -1
DATA = {
    "leader_epoch": 3, "timestamp": BASE_TIMESTAMP, "producer_id": 7, "producer_epoch": 1, "is_transactional": False,
    "log_append_time": False, "commit": None, "coordinator_epoch": NO_COORDINATOR,
}  # fmt: skip


def message(offset: int, magic: int, attributes: int = 0) -> bytes:
    timestamp = struct.pack(">q", BASE_TIMESTAMP) if magic else b""
    content = bytes((magic, attributes)) + timestamp + struct.pack(">ii", -1, 5) + b"value"
    return struct.pack(">qiI", offset, 4 + len(content), zlib.crc32(content)) + content


def rows_of(directory, *segments: tuple[int, bytes]) -> tuple[list[LogRow], LogRows]:
    path = directory / "orders-0"
    path.mkdir()
    for base, content in segments:
        (path / f"{base:020d}.log").write_bytes(content)
    (partition,) = find_input(ScanOptions([str(directory)])).partitions
    rows = LogRows(partition, open_segment)
    return list(rows), rows


def test_every_field_of_data_and_markers(tmp_path):
    batches = [
        data(7, 1, 5, 3, leader_epoch=3),
        data(7, 1, 8, transactional=True, base_offset=3, leader_epoch=3),
        marker(7, 1, coordinator_epoch=4, base_offset=4, leader_epoch=3),
        marker(7, 1, commit=False, coordinator_epoch=5, base_offset=5, leader_epoch=4),
        Batch(count=2, base_offset=6, attributes=APPEND_TIME, leader_epoch=4),
    ]
    encoded = [batch.encode() for batch in batches]
    found, _ = rows_of(tmp_path, (0, b"".join(encoded)))
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    modified = path.stat().st_mtime_ns // 1_000_000
    positions = [sum(map(len, encoded[:number])) for number in range(len(encoded))]
    of_each: list[dict[str, Any]] = [
        {"base_offset": 0, "last_offset": 2, "base_sequence": 5},
        {"base_offset": 3, "last_offset": 3, "base_sequence": 8, "is_transactional": True},
        {"base_offset": 4, "last_offset": 4, "base_sequence": -1, "is_transactional": True, "commit": True,
         "coordinator_epoch": 4},
        {"base_offset": 5, "last_offset": 5, "base_sequence": -1, "is_transactional": True, "commit": False,
         "coordinator_epoch": 5, "leader_epoch": 4},
        {"base_offset": 6, "last_offset": 7, "base_sequence": -1, "producer_id": -1, "producer_epoch": -1,
         "log_append_time": True, "leader_epoch": 4},
    ]  # fmt: skip
    assert found == [
        LogRow(**{**DATA, "source": f"{path}@{position}", "modified_ms": modified, **fields})
        for position, fields in zip(positions, of_each, strict=True)
    ]
    assert [row.record_count for row in found] == [3, 1, 1, 1, 2]
    sequences = [7, 8, -1, -1, -1]  # the last one, of data alone
    assert [row.logged for row in found] == [
        LoggedBatch(
            row.base_offset,
            row.last_offset,
            BASE_TIMESTAMP,
            row.producer_id,
            row.producer_epoch,
            last,
            row.leader_epoch,
        )
        for row, last in zip(found, sequences, strict=True)
    ]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_have_no_producer_and_a_wrapper_begins_behind_what_came_before(tmp_path, magic):
    """The offset of a compressed wrapper is that of its last message; nobody says how many it has."""
    gzip = 1
    content = message(10, magic) + message(14, magic, gzip) + message(15, magic)
    found, _ = rows_of(tmp_path, (10, content))
    assert [(row.base_offset, row.last_offset) for row in found] == [(10, 10), (11, 14), (15, 15)]
    assert {(row.producer_id, row.leader_epoch, row.commit) for row in found} == {(-1, -1, None)}


def test_a_wrapper_that_comes_first_begins_with_its_segment(tmp_path):
    found, _ = rows_of(tmp_path, (10, message(14, 1, 1)), (20, message(24, 1, 1)))
    assert [(row.base_offset, row.last_offset) for row in found] == [(10, 14), (20, 24)]


def test_damage_is_counted_and_passed_over(tmp_path):
    first, second = data(7, 1, 0).encode(), data(7, 1, 1, base_offset=1).encode()
    broken = bytearray(data(7, 1, 9, base_offset=1).encode())
    broken[-1] ^= 1
    found, rows = rows_of(tmp_path, (0, first + bytes(broken) + second), (2, data(7, 1, 2, base_offset=2).encode()))
    assert [row.base_sequence for row in found] == [0, 1, 2]
    assert (rows.damages, rows.unreadable) == (1, [])


def test_a_segment_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path):
    rows_of(tmp_path, (0, data(7, 1, 0).encode()), (1, data(7, 1, 1, base_offset=1).encode()))
    (partition,) = find_input(ScanOptions([str(tmp_path)])).partitions
    gone, kept = partition.segments
    for error, reason in ((OSError(5, "Input/output error"), "Input/output error"), (OSError(), "OSError")):

        def open_source(segment, error=error):
            if segment is gone:
                raise error
            return open_segment(segment)

        rows = LogRows(partition, open_source)
        assert [(row.source, row.base_sequence) for row in rows] == [(f"{kept.path}@0", 1)]
        assert rows.unreadable == [f"{gone.path}: {reason}"]
