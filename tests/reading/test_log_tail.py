"""The end of a log, found in a large segment without reading what lies before it."""

import pytest

from kaudit.reading.log_tail import batches_from, last_batches, producers_records
from kaudit.source.bytes import LocalFile
from kaudit.source.discover import discover
from tests.diff.replicas import Copy


@pytest.mark.parametrize("first", [0, 1, 777, 1998, 1999, 2000, 5000])
@pytest.mark.parametrize("rolls", [(), (600, 1400)])
def test_the_batches_are_those_that_end_there_or_later(tmp_path, first, rolls):
    log = Copy(rolls=rolls)
    for number in range(1000):
        log.append(2, 0, b"%d" % number + bytes(5000))
    (directory,) = discover([str(log.write(tmp_path / "b1"))]).partitions
    read = 0

    class Counting(LocalFile):
        def read_into(self, position: int, buffer: memoryview) -> int:
            nonlocal read
            read += len(buffer)
            return super().read_into(position, buffer)

    found = list(batches_from(directory, lambda segment: Counting(segment.path), first))
    offsets = [int(offset) for batches in found for offset in batches["base_offset"]]
    assert offsets == [batch.base_offset for batch in log.batches if batch.last_offset >= first]
    assert all(len(batches) for batches in found)
    assert sum(int(producers_records(batches).sum()) for batches in found) == 2 * len(offsets)
    if first >= 1998:
        assert read < 7 << 20


def test_a_large_last_batch_is_found_where_no_other_begins_behind_the_middle(tmp_path, monkeypatch):
    monkeypatch.setattr("kaudit.reading.log_tail._NEAR_BYTES", 100)
    log = Copy()
    log.append(1, 0, b"a").append(1, 0, bytes(10_000))
    (directory,) = discover([str(log.write(tmp_path / "b1"))]).partitions
    for first, offsets in ((0, [0, 1]), (1, [1]), (2, [])):
        found = batches_from(directory, lambda segment: LocalFile(segment.path), first)
        assert [int(offset) for batches in found for offset in batches["base_offset"]] == offsets


@pytest.mark.parametrize("size", [100, 200_000])
def test_the_last_batches_are_read_without_those_before(tmp_path, size):
    log = Copy()
    for number in range(100):
        log.append(2, 0, b"%d" % number + bytes(5000))
    log.append(1, 0, bytes(size))
    (directory,) = discover([str(log.write(tmp_path / "b1"))]).partitions
    (segment,) = directory.segments
    found = [
        int(offset)
        for some in last_batches(segment, lambda each: LocalFile(each.path))
        for offset in some["base_offset"]
    ]
    assert found[-1] == log.batches[-1].base_offset
    # none begins in the tail of a segment that ends in a batch longer than it: then all are read
    assert (len(found) < 20) is (size == 100)
