"""A file that lies in another one, with holes and without: against the bytes that it stands for."""

from itertools import accumulate, product
from random import Random

import pytest

from kaudit.source.archives.parts import FilePart, SparseFile, end_of_whole_batches
from kaudit.source.bytes import CutOffError, read_bytes
from tests.logs import data
from tests.memory import Memory

WHOLE = bytes(range(1, 51))


@pytest.mark.parametrize(("start", "size"), [(0, 50), (0, 0), (7, 20), (49, 1), (50, 0)])
def test_a_part_of_a_file(start, size):
    part, expected = FilePart(Memory(WHOLE), start, size), WHOLE[start : start + size]
    assert part.size() == size
    for at, wanted in product(range(size + 3), range(size + 4)):
        assert read_bytes(part, at, wanted) == expected[at : at + wanted]


@pytest.mark.parametrize(("start", "size", "readable"), [(40, 11, 10), (50, 1, 0), (60, 5, 0), (0, 51, 50)])
def test_a_part_that_the_archive_cuts_off(start, size, readable):
    part = FilePart(Memory(WHOLE), start, size)
    if readable:
        assert read_bytes(part, 0, readable) == WHOLE[start:]
    with pytest.raises(CutOffError) as caught:
        read_bytes(part, 0, size)
    assert caught.value.readable == readable
    assert str(caught.value.strerror) == f"the archive ends after {readable} of its {size} bytes"


def test_bytes_are_announced_where_they_lie_in_the_archive():
    announced = []
    source = Memory(WHOLE)
    source.announce = lambda *places: announced.append(places)  # type: ignore[attr-defined]
    part = FilePart(source, 7, 20)
    part.announce(3, 11)
    part.announce(3, 99)
    assert announced == [(10, 18), (10, 27)]
    FilePart(Memory(WHOLE), 7, 20).announce(3, 11)  # memory takes no notice


@pytest.mark.parametrize("seed", range(12))
def test_holes_are_zeros(seed):
    random = Random(seed)
    ends = sorted(random.sample(range(1, 41), 2 * random.randint(0, 4)))
    holed = [(first, end - first) for first, end in zip(ends[::2], ends[1::2], strict=True)]
    if seed % 2 and holed:  # what lies side by side
        holed[:1] = [(holed[0][0], 1), (holed[0][0] + 1, holed[0][1] - 1)] if holed[0][1] > 1 else holed[:1]
    size = random.randint(ends[-1] if ends else 0, 44)
    stored = sum(length for _, length in holed)
    expected = bytearray(size)
    for (position, length), at in zip(holed, accumulate((length for _, length in holed), initial=5), strict=False):
        expected[position : position + length] = WHOLE[at : at + length]
    file = SparseFile(Memory(WHOLE[: 5 + stored]), 5, size, holed)
    assert file.size() == size
    for at, wanted in product(range(size + 2), range(size + 3)):
        buffer = memoryview(bytearray(b"\xff" * wanted))
        count = file.read_into(at, buffer)
        assert bytes(buffer[:count]) == expected[at : at + wanted]
        assert count == len(expected[at : at + wanted])


def test_holes_of_an_archive_that_is_cut_off():
    file = SparseFile(Memory(WHOLE[:8]), 5, 30, [(10, 3), (20, 3)])
    assert read_bytes(file, 0, 20) == bytes(10) + WHOLE[5:8] + bytes(7)
    with pytest.raises(CutOffError) as caught:
        read_bytes(file, 15, 10)
    assert (caught.value.readable, "of its 30 bytes" in str(caught.value)) == (15, True)


def test_where_the_last_whole_batch_ends():
    batches = [data(7, 0, sequence, payload=b"x" * sequence).at(sequence).encode() for sequence in range(3)]
    content = b"".join(batches)
    ends = [0, *accumulate(map(len, batches))]
    for lead in (b"", b"lead"):
        for end in range(len(content) + 1):
            expected = len(lead) + max(each for each in ends if each <= end)
            assert end_of_whole_batches(Memory(lead + content), len(lead), len(lead) + end) == expected
        for cut in range(0, len(content), 7):
            found = end_of_whole_batches(Memory(lead + content[:cut]), len(lead), len(lead) + len(content))
            # the length of a batch that is cut off after it is believed: what is there of the file is up to the caller
            assert found in {len(lead) + each for each in ends}
            assert found >= len(lead) + max(each for each in ends if each <= cut)


@pytest.mark.parametrize("length", [-1, 0, 8, (1 << 31) - 1])
def test_a_length_that_no_batch_has_ends_the_walk(length):
    batch = bytearray(data(7, 0, 0).encode())
    follows = bytearray(data(7, 0, 1).at(1).encode())
    follows[8:12] = length.to_bytes(4, "big", signed=True)
    content = bytes(batch + follows)
    assert end_of_whole_batches(Memory(content), 0, len(content)) == len(batch)
    assert end_of_whole_batches(Memory(content), 0, 1 << 40) == (
        len(batch) if length != (1 << 31) - 1 else len(batch) + 12 + length
    )
