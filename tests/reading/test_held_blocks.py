"""Places of files read by blocks that are held: the same bytes, in fewer readings."""

import pathlib
import random

import pytest

from kaudit.reading.held_blocks import HeldBlocks, HeldRange
from kaudit.source.layout import SegmentFile
from kaudit.source.schemes import open_segment
from tests.failing_reads import counted_reads

SIZE = 300_000


@pytest.fixture
def files(tmp_path):
    found = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.log"
        path.write_bytes(random.Random(name).randbytes(SIZE))
        found.append(SegmentFile(str(path), path.name, 0, SIZE, 0))
    return found


def read(source, position, size):
    buffer = memoryview(bytearray(size))
    count = source.read_into(position, buffer)
    return bytes(buffer[:count])


def test_the_bytes_are_those_of_the_file(files):
    with HeldBlocks(open_segment) as held:
        for number in range(500):
            choose = random.Random(number)
            file = files[choose.randrange(2)]
            position, size = choose.randrange(SIZE + 10), choose.choice([1, 61, 5_000, 70_000, 200_000])
            with pathlib.Path(file.path).open("rb") as plain:
                plain.seek(position)
                expected = plain.read(size)
            source = held(file)
            assert read(source, position, size) == expected
            source.close()


def test_places_near_one_another_are_one_reading(files, monkeypatch):
    reads = counted_reads(monkeypatch)
    with HeldBlocks(open_segment) as held:
        for position in range(0, 60_000, 100):
            source = held(files[0])
            assert len(read(source, position, 100)) == 100
            source.close()
    assert reads.count == 2  # opened, and one block


def test_a_failure_is_that_of_the_file(files, monkeypatch):
    reads = counted_reads(monkeypatch)
    reads.failing = 2
    with HeldBlocks(open_segment) as held:
        source = held(files[0])
        with pytest.raises(OSError, match="Input/output error"):
            read(source, 0, 10)
        assert len(read(source, 0, 10)) == 10  # the next reading may work


def test_ranges_are_those_of_the_file_and_what_they_share_is_read_once(files, monkeypatch):
    choose = random.Random(1)
    reads = counted_reads(monkeypatch)
    held = HeldRange(open_segment, 20_000)
    for _ in range(500):
        file, start = files[choose.randrange(2)], choose.randrange(SIZE)
        stop = start + choose.randrange(1, 10_000)
        data, first, end = held.read(file, start, stop)
        assert bytes(data[first:end]) == pathlib.Path(file.path).read_bytes()[start:stop]
    before = reads.count
    for start in range(0, 50_000, 1_000):
        data, first, end = held.read(files[0], start, start + 10_000)
        assert bytes(data[first:end]) == pathlib.Path(files[0].path).read_bytes()[start : start + 10_000]
    assert held.read(files[0], 49_000, 50_000)[1:] != (0, 0)
    assert reads.count - before == 2 * 50  # each opens the file, and reads what is new
